"""Path patterns: which search a path is, and the edges that it goes along."""

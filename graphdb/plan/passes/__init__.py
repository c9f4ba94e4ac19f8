"""The passes from a pattern graph to a physical plan: an ordered tuple of functions over one draft."""

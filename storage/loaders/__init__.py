"""From data files to rows: which files, their bytes, their grammar, and the one transaction around it all."""

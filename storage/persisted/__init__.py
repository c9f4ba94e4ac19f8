"""Derived structures on disk, for the next process that opens the same file in the same state."""

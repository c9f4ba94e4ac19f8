"""Terms of a load to ids: one numbering over all its blocks, and what the file has already."""

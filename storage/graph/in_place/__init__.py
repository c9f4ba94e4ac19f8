"""Arrays of neighbour lists that are changed in place."""

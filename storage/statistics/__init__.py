"""Statistics that plans are made from, counted by loads and updated by changes."""

"""Statistics that plans are made from, counted by loads and kept up to date by changes."""

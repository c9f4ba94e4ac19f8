"""Parts of the public Database: what it has methods for, by subject."""

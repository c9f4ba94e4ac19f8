"""The language: text to frozen syntax trees."""

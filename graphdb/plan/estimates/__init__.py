"""How many matches the steps of an order are expected to have."""

"""What stands in a device's memory, and which parts of it where not all fits."""

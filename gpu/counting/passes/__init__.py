"""Sums in passes over lists that do not fit the device, which come by in segments."""

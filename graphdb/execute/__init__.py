"""Executors: what runs a physical plan on a device."""

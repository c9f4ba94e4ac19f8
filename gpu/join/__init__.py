"""The vertex-oriented join on a device, level by level (SGSI §5)."""

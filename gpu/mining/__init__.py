"""Mining on a device: domains of patterns, and the primitives over embedding tables."""

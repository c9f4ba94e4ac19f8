"""The loops of counting, compiled."""

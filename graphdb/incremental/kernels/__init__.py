"""The loops of incremental matching, compiled."""

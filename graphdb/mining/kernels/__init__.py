"""The loops of mining, compiled."""

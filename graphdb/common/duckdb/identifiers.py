"""Names in SQL: identifiers in quotes, and those of our own temporary views and tables."""

from __future__ import annotations

import os

OURS = f"_graphdb_{os.urandom(6).hex()}_"
"""What the names of temporary views and tables begin with that SQL of users could see: nobody guesses it."""


def quoted(identifier: str) -> str:
    """Return an identifier in SQL's quotes."""
    return '"' + identifier.replace('"', '""') + '"'

"""How many examples the tests draw that draw any: one variable scales them all."""

from __future__ import annotations

import os

FUZZ = float(os.environ.get("GRAPHDB_FUZZ", "0.2"))
"""``GRAPHDB_FUZZ``: the number of examples, as a multiple of those that the tests name; by default a fifth of them.

In CI the examples are the same every time, so that more of them would find nothing more the second time; what finds
something is a long run with new ones, of ten times as many and more.
"""

SAME = "GRAPHDB_FUZZ" not in os.environ
"""Whether generators draw the same examples every time: whoever asks for a number of them wants new ones."""


def scaled(usual: int) -> int:
    """Return how many examples are drawn where a test names ``usual`` of them."""
    return max(1, round(usual * FUZZ))

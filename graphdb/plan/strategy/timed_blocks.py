"""How long the blocks of a run take, without what their reader does between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

B = TypeVar("B")


def timed(blocks: Iterator[B], note: Callable[[float], object]) -> Iterator[B]:
    """All blocks of a run; once there are no more, ``note`` gets the seconds that they took.

    A reader that goes away before that leaves nothing noted.
    """
    taken = 0.0
    while True:
        asked = time.monotonic()
        block = next(blocks, None)
        taken += time.monotonic() - asked
        if block is None:
            break
        yield block
    note(taken)

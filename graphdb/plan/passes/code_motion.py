"""Code motion: intersections are computed before the step that uses them, and reused while the steps between proceed.

A step's neighbour lists are put in the order in which their vertices are bound.  The lists that are all bound before
the step's predecessor form a prefix which stays the same while the predecessor scans its values: it is
intersected once (STMatch §VII).  Prefixes are made of each other, so what one step has intersected the next goes on
with, and two steps with the same lists intersect them once.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphdb.plan.checks import Neighbours

Lists = tuple[Neighbours, ...]


def shared_prefixes(joins: Mapping[int, Lists], position: Mapping[int, int]) -> dict[int, tuple[Lists, int]]:
    """Return each step's lists in the order of their binding, and how many of the first are shared (0 for none).

    ``joins`` are the lists of each vertex step, ``position`` tells which step binds a vertex.
    """
    ordered = {i: tuple(sorted(lists, key=lambda near: position[near.of])) for i, lists in joins.items()}
    early = {i: sum(position[near.of] < i - 1 for near in lists) for i, lists in ordered.items()}
    prefixes = {lists[: early[i]] for i, lists in ordered.items()}
    found = {}
    for i, lists in ordered.items():
        # What a later step shares is worth sharing here, though it changes with every binding of the predecessor.
        again = lists in prefixes or any(_same(lists, other) for j, other in ordered.items() if j > i)
        shared = len(lists) if again else early[i]
        found[i] = (lists, shared if shared > 1 else 0)
    return found


def _same(lists: Lists, others: Lists) -> bool:
    """Whether they are equal; most differ already in where they end."""
    return len(lists) == len(others) and (not lists or lists[-1].of == others[-1].of) and lists == others

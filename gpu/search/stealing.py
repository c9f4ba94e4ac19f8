"""What stealing adds to a plan's part of the search (``kernels/search/steal.cuh``; STMatch §V).

Two switches: within blocks, idle warps take half of what a busy warp has left at its shallowest step; across blocks,
busy warps give half of it to blocks that have none.  What is redistributed through the pool is another thing: it is
done ahead, to all, at one step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

Steal = Literal["off", "within", "across"]
"""Who takes work from whom: nobody, warps of a block, or these and blocks too."""
STEALS: tuple[Steal, ...] = ("off", "within", "across")
LEFT = 64
"""Elements of the last step but one that are worth dividing; of earlier ones, two are."""


def carry_text(
    rows: Mapping[int, Sequence[int]], lists: Mapping[int, Sequence[tuple[int, int, int]]]
) -> tuple[str, int]:
    """``carry``: what a batch needs where it is gone on with.

    Parameters
    ----------
    rows
        By step that can be divided: where each row of 32 ids is in a warp's memory.
    lists
        By step: the shared intersections that it, or a later one, reads: where their lengths are in the room, where
        the first one is among those of the warp, and how far it is to the next.

    Returns
    -------
    tuple
        C++, and the most rows that any step has.
    """
    cases = []
    for step, places in rows.items():
        calls = [f"row({place});" for place in (*places, *(lengths for lengths, _, _ in lists[step]))]
        calls += [f"list({lengths}, {keep}, {stride});" for lengths, keep, stride in lists[step]]
        cases.append(f"case {step}: {' '.join(calls)} break;")
    most = max((len(places) + len(lists[step]) for step, places in rows.items()), default=0)
    text = (
        "template <typename Row, typename List>\n"
        "__device__ __forceinline__ void carry(int step, const Row &row, const List &list) {\n"
        f"switch (step) {{ {' '.join(cases)} }} }}"
    )
    return f"const int FIRST = {min(rows, default=1)}, MAIL = {32 * most};\n{text}", most

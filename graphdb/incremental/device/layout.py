"""The tables of incremental matching as a device's kernels see them: constants of :mod:`..frame`, and structures."""

from __future__ import annotations

from enum import IntEnum

from graphdb.gpu.code.launch import VARIANTS
from graphdb.gpu.code.layout import HEADERS, structure
from graphdb.incremental import frame

ROW = ("begin", "size", "room", "before", "after", "both", "marks", "group")
"""``Row`` of ``delta.cuh``: the cells of :data:`..frame.ROW_CELLS`."""
CHANGE = ("relation", "near", "far", "key", "versions")
"""``Change``: the first cells of a record (:data:`..frame.CHANGE_CELLS`) in 32 bits."""
UPDATE = ("label", "source", "target", "inserted")
"""``Update``."""
LISTS = (
    *("late", "late_base", "late_mask", "rows", "neighbours", "codes", "ranges", "table", "stride", "vertices"),
    *("counter_starts", "counters", "pattern_vertices", "needs", "ends", "forwards", "backwards", "words", "marks"),
    "parallel",
)
"""``Lists``."""
BATCH = (
    *("updates", "entries", "keys", "origins", "seats", "dealt", "sorted", "parts"),
    *("changes", "places", "gained", "starts", "groups", "count", "there", "late_room", "room"),
    *("found", "late", "full", "segments", "left", "units", "waiting"),
)
"""``Batch`` of ``delta_lists.cu``."""
BATCH_BYTES = {
    "entries": 4 * len(CHANGE),
    "keys": 8,
    "origins": 4,
    "seats": 4,
    "dealt": 16,
    "sorted": 8,
    "parts": 8,
    "changes": 4 * len(CHANGE),
    "places": 4,
    "gained": 4,
    "starts": 8,
    "groups": 8,
}
"""Bytes of each array of a batch for an entry."""
SEARCH = (
    *("lists", "changes", "starts", "left", "first", "last"),
    *("plans", "plan_starts", "plan_numbers", "steps", "legs", "checks", "copies", "values"),
    *("slots", "levels", "most_legs", "columns", "table_row", "most_plans", "limit", "rows", "state", "stop"),
    *("turns", "queue", "desk", "queue_places"),
)
"""``Search`` of ``delta_search.cu``."""
LEVEL_WORDS = 20
"""``Level``, in words of 64 bits."""
SPAN_WORDS = 4
"""``Leg``, in words of 64 bits."""
MAIL_HEADER = 7
"""Cells of a piece of work before its slots."""
MOST_PIECES = 15
"""Pieces of work that a warp leaves to others at a time, at most."""


class State(IntEnum):
    """What a search's warps have in common."""

    NEXT = 0
    HALT = 1
    WRITTEN = 2
    LOST = 3
    GAINED = 4
    BUSY = 5
    STOLEN = 6


class Desk(IntEnum):
    """How many warps have waited at the queue for work, and how many pieces of it were put there, by all searches."""

    TICKETS = 0
    GIFTS = 1


_CONSTANTS = (
    *("OLD", "NEW", "BOTH", "KEY_SHIFT", "UNIT", "RELATION_BITS", "RANGE_CELLS", "COUNTER_CELLS", "VERTEX_CELLS"),
    *("NEED_CELLS", "PLAN_CELLS", "COPY_CELLS", "STEP_CELLS", "LEG_CELLS", "CHECK_CELLS"),
    *("VERTEX", "EDGE", "UNEQUAL", "NOT_BOTH_EQUAL", "EDGES_DIFFER", "ABOVE"),
)
PLAN_DIVISIBLE, PLAN_FIRST = 14, 15
"""Cells of a plan, here: which of its first steps may be divided, as bits, and the step that is counted first."""
DIVISIBLE = 31
"""Steps of a plan that may be divided, at most: they are bits of a cell."""
_SEARCHES = {
    "MAIL_HEADER": MAIL_HEADER,
    "MOST_PIECES": MOST_PIECES,
    "DIVISIBLE": DIVISIBLE,
    "PLAN_DIVISIBLE": PLAN_DIVISIBLE,
    "PLAN_FIRST": PLAN_FIRST,
}
"""The constants of searches alone."""

HEADERS.update(
    {
        "delta_layout.cuh": "".join(f"const int {name} = {getattr(frame, name)};\n" for name in _CONSTANTS)
        + structure("Row", ROW, 4)
        + structure("Change", CHANGE, 4)
        + structure("Update", UPDATE, 4)
        + structure("Lists", LISTS),
        "delta_batch_layout.cuh": structure("Batch", BATCH),
        "delta_search_layout.cuh": structure("Search", SEARCH)
        + "".join(f"const int {name} = {value};\n" for name, value in _SEARCHES.items())
        + f"enum {{ {', '.join(f'{cell.name} = {cell.value}' for cell in (*State, *Desk))} }};\n",
    }
)
VARIANTS.update({"delta_lists": ({},), "delta_search": ({},)})

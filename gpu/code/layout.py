"""Layouts that Python fills and kernels read: each is one table, which kernels get as a generated header.

An enumeration becomes a C++ ``enum``.  A structure is written in its kernel, where its members have types and comments;
what is generated are static assertions that they stand where the table says.  So a module whose layout differs does not
compile.  :func:`graphdb.gpu.code.launch.source` puts a header of :data:`HEADERS` in the place of its ``#include``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from graphdb.plan.candidates.refinement import ARC, GROUP
from graphdb.plan.physical import CHECK_COLUMNS, Op
from graphdb.storage.graph.pcsr import PARTITION


class Cell(IntEnum):
    """The cells of a join level's descriptor: how many of each there are, where they begin, what there is one of."""

    KIND = 0
    LISTS = 1
    ABOVES = 2
    DIFFERS = 3
    CHECKS = 4
    COLUMNS = 5
    LISTS_AT = 6
    ABOVES_AT = 7
    DIFFERS_AT = 8
    CHECKS_AT = 9
    COLUMNS_AT = 10
    LAYOUT_AT = 11
    BITS = 12
    PARTITIONS = 13
    UNCERTAIN = 14
    RESOURCES = 15
    TYPE_LABEL = 16
    CONSTANTS = 17
    EDGE_PARTITION = 18
    EDGE_VERTEX = 19
    EDGE_OTHER = 20
    FLIP = 21
    LOW = 22
    """The least value that the level binds, …"""
    HIGH = 23
    """… and the one behind the greatest; -1: all."""


class Kind(IntEnum):
    """What a level does: intersect lists, or go through the codes of the data edges between two bound vertices."""

    JOIN = 0
    EDGES = 1


class ListKind(IntEnum):
    """Where a list of a level comes from."""

    NEIGHBOURS = 0
    VALUES = 1
    SHARE = 2
    RANGE = 3


class ListCell(IntEnum):
    """The cells of a list: its kind, its row in the table of partitions, the slot or share that it belongs to."""

    LIST_KIND = 0
    PARTITION = 1
    SLOT = 2
    ELEMENTS = 3
    """The address of its elements, …"""
    LENGTH = 4
    """… how many they are, …"""
    OFFSETS = 5
    """… and the address of the offsets of a shared intersection's rows."""


class PatternCell(IntEnum):
    """The cells of a pattern whose domains are found: how many places and edges it has, and where these begin.

    Of each edge (place, place, code seen from the first); of each place the first one of its orbit, and the row of its
    candidates.
    """

    SIZE = 0
    COUNT = 1
    EDGES_AT = 2
    ORBITS_AT = 17
    SOURCES_AT = 23
    PATTERN_CELLS = 29


class Place(IntEnum):
    """Where a slot is found, besides the columns of a table; a column of the next table is (place, slot)."""

    CONSTANT = -1
    VALUE = -2
    ROW = -3


RUN = (
    *("partitions", "lists", "checks", "uncertain", "constants", "resources", "type_label"),
    *("scans", "scan", "roots", "ends", "elements", "piece", "next", "halt", "stop", "found", "limit"),
    *("shares", "share_ids", "pool", "pool_rows", "pooled", "pool_end", "resumes"),
    *("ring", "block_rows", "blocks", "head", "filled", "ready", "taken", "desk", "mail", "stolen"),
)
"""``Run`` of ``search.cu``."""
LETTER = ("step", "low", "high", "on")
"""``Letter`` of ``steal.cuh``, in words of 32 bits."""

VERTEX = ("number", "near", "first_arc", "last_arc", "candidates", "size", "pieces", "tiles")
"""``Vertex`` of ``refine.cu``; its ``Arc`` and ``Group`` are tables of :mod:`graphdb.plan.candidates.refinement`."""
LEVEL = ("first", "last", "pieces")
"""``Level`` of ``refine.cu``."""

RANKED = ("begin", "less", "more", "ids")
"""``Ranked`` of ``teams.cuh``: the addresses of a relation's arrays by rank."""


LEVEL_WORDS, STACK_WORDS = 4, 1
"""``Stack`` of ``steal.cuh``, in words of 32 bits: so many for each level, and so many besides."""


def _enum(kind: type[IntEnum]) -> str:
    members = ", ".join(f"{member.name} = {member.value}" for member in kind)
    return f"enum {kind.__name__} {{ {members} }};\n"


def _assert(condition: str, name: str) -> str:
    return f'static_assert({condition}, "{name} is not as gpu/code/layout.py says");\n'


def structure(name: str, members: Sequence[str], width: int = 8) -> str:
    """That a structure has these members, each so many bytes, in this order.

    Compilers before CUDA 13 know no offsets in constant expressions: the order is asserted where ``CHECK_OFFSETS`` says
    that the compiler does, as the tests' does.
    """
    size = _assert(f"sizeof({name}) == {width * len(members)}", name)
    offsets = [f"__builtin_offsetof({name}, {member}) == {width * i}" for i, member in enumerate(members)]
    return f"{size}#ifdef CHECK_OFFSETS\n{''.join(_assert(offset, name) for offset in offsets)}#endif\n"


HEADERS = {
    "op.cuh": _enum(Op) + f"const int CHECK_COLUMNS = {CHECK_COLUMNS};\n",
    "partition_layout.cuh": structure("Partition", PARTITION),
    "descriptor.cuh": "".join(map(_enum, (Cell, Kind, ListKind, ListCell, Place)))
    + f"const int LIST_CELLS = {len(ListCell)};\n",
    "domain_layout.cuh": _enum(PatternCell),
    "run_layout.cuh": structure("Run", RUN),
    "stealing_layout.cuh": structure("Letter", LETTER, 4)
    + _assert(f"sizeof(Stack) == 4 * ({LEVEL_WORDS} * LEVELS + {STACK_WORDS})", "Stack"),
    "refinement_layout.cuh": structure("Vertex", VERTEX)
    + structure("Level", LEVEL)
    + structure("Arc", ARC)
    + structure("Group", GROUP),
    "ranked_layout.cuh": structure("Ranked", RANKED) + f"enum {{ RANKED_CELLS = {len(RANKED)} }};\n",
}
"""Generated headers, by the names that kernels include."""

"""Expressions over values of which few differ, for many rows: computed once for each combination of these.

Each row gets the number of its combination in one pass over where the values stand, and what was computed of that is
gathered by it: whatever the expression is, it takes as long as three columns to read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import OfItems, Operation, Vector, names_of
from graphdb.relational.vectors.counted.codes import Codes
from graphdb.relational.vectors.expressions import evaluated
from graphdb.relational.vectors.frames import Frame
from graphdb.relational.vectors.pieces import in_pieces
from graphdb.snapshot.properties import Properties
from graphdb.storage.arrays.texts import gathered, taken

_PIECE = 1 << 18
"""Rows of a piece: what they have is gathered in less than a millisecond."""


def of_few_values(
    columns: Mapping[str, Vector], table: arrow.Table, properties: Properties, check: Callable[[], None], threads: int
) -> dict[str, arrow.ChunkedArray]:
    """Return those columns of the rows of a table that are computed of few combinations of values.

    Raises
    ------
    NotVectorized
        SQL has to compute them.
    """
    found = {}
    for name, vector in columns.items():
        codes = Codes(table, properties)
        if isinstance(vector, Operation | OfItems) and codes.take(vector):
            found[name] = _column(vector, codes, check, threads)
    return found


def _column(vector: Vector, codes: Codes, check: Callable[[], None], threads: int) -> arrow.ChunkedArray:
    numbers, places = codes.numbered(threads, check)
    rows = arrow.table(codes.rows_at(sorted(names_of(vector)), places))
    results = evaluated(vector, Frame.of(rows), codes.properties)

    def of_piece(piece: int) -> arrow.Array:
        some = numbers[piece * _PIECE : (piece + 1) * _PIECE]
        direct = gathered(results, 0, some)
        return taken(results, some) if direct is None else direct[0]

    return arrow.ChunkedArray(in_pieces(of_piece, -(-len(numbers) // _PIECE), threads, check))

"""Statistics of labels for the planner, updated by loads at a cost in proportion to what is new.

Per edge label (``edge_label``): ``triples``; ``resource_triples`` (whose object is a resource); ``subjects`` and
``objects``, distinct; ``max_out_degree`` and ``max_in_degree``, over all objects; ``kinds``, a bit mask with bit
:class:`~graphdb.storage.dictionary.terms.Kind` set for each kind of literal among its objects; ``max_values``, the most
literals that one subject has.  Per vertex label (``vertex_label``): its ``vertices``.

Per edge label and direction (``degree``): a histogram of degrees by powers of two, with the vertices, edges and squared
degrees of each bucket, whence the moments that skewed joins ask for.

Per edge label, direction and vertex label (``label_pair``): how many edges start (or end) at vertices so labelled, and
at how many.  There can be as many pairs as products of labels, so only the :data:`PAIRS` with most edges are stored.

What a small change adds to all of them is appended to a log (:mod:`.tables`).

Every table is a sum (or maximum) over vertices.  A load or update looks at the vertices it touched, finds what they had
before and what they have now, and adds the difference.  What a difference does not tell (whether somebody else has as
many, now that the largest has fewer) is counted anew, for the labels where that can be.  Where much is new,
:mod:`.streaming` counts all triples instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from graphdb.common.values.terms import LITERAL_BASE, RDF_TYPE
from graphdb.storage.arrays.sorted_sets import unique
from graphdb.storage.dictionary.terms import Ids
from graphdb.storage.file.prepared_sql import execute, has_rows
from graphdb.storage.graph.degree_sketch import IN, OUT
from graphdb.storage.statistics import tables

if TYPE_CHECKING:
    import duckdb

PAIRS = 20_000
"""Rows that ``label_pair`` keeps."""

_ENDS = ((OUT, "subject"), (IN, "object"))
_VALUES = {OUT: f"count(*) FILTER (object >= {LITERAL_BASE})", IN: "0"}

_FRESH = " UNION ALL ".join(
    f"SELECT label, {direction} AS direction, {end} AS vertex, 0 AS before, count(*) AS after, {_VALUES[direction]}"
    f" AS literals FROM _graphdb.triple WHERE label IN (SELECT unnest($labels::BIGINT[])) GROUP BY label, {end}"
    for direction, end in _ENDS
)
"""What the vertices of some labels have, as if they had had nothing before."""

_NOW = " UNION ALL ".join(
    f"SELECT label, {direction} AS direction, {end} AS vertex, count(*) AS after, {_VALUES[direction]} AS literals"
    f" FROM _graphdb.triple JOIN (SELECT label, vertex AS {end} FROM delta WHERE direction = {direction} AND NOT fresh)"
    f" USING (label, {end}) GROUP BY label, {end}"
    for direction, end in _ENDS
)
_CHANGED = " UNION ALL ".join(
    f"SELECT label, {direction} AS direction, {end} AS vertex, sum(change)::BIGINT AS change,"
    f" sum({'change * (object >= ' + str(LITERAL_BASE) + ')::BIGINT' if direction == OUT else '0'})::BIGINT AS literals"
    f" FROM changed GROUP BY label, {end}"
    for direction, end in _ENDS
)
_GROWN = f"""
WITH changed AS (
    SELECT label, subject, object, 1 AS change FROM {{added}}
    UNION ALL SELECT label, subject, object, -1 FROM {{removed}}
),
delta AS MATERIALIZED (
    SELECT *, vertex >= CASE WHEN vertex < {LITERAL_BASE} THEN $fresh ELSE $fresh_literals END AS fresh
    FROM ({_CHANGED})
),
now AS ({_NOW})
SELECT label, direction, vertex, 0 AS before, change AS after, literals FROM delta WHERE fresh
UNION ALL
SELECT label, direction, vertex, coalesce(after, 0) - change, coalesce(after, 0), coalesce(now.literals, 0)
FROM (FROM delta WHERE NOT fresh) AS delta LEFT JOIN now USING (label, direction, vertex)
"""
"""What the vertices of new and removed triples had before and have now; those that were in none are not looked for."""

_EDGE_LABELS = f"""
SELECT id, triples, resource_triples, subjects, objects, max_out_degree, max_in_degree,
    coalesce(kinds, 0) AS kinds, max_values
FROM (
    SELECT label AS id, sum(after - before) FILTER (direction = {OUT}) AS triples,
        coalesce(sum(after - before) FILTER (direction = {IN} AND vertex < {LITERAL_BASE}), 0) AS resource_triples,
        sum((after > 0)::BIGINT - (before > 0)::BIGINT) FILTER (direction = {OUT}) AS subjects,
        sum((after > 0)::BIGINT - (before > 0)::BIGINT) FILTER (direction = {IN}) AS objects,
        max(after) FILTER (direction = {OUT}) AS max_out_degree, max(after) FILTER (direction = {IN}) AS max_in_degree,
        max(literals) AS max_values
    FROM temp._graphdb_touched GROUP BY label
) LEFT JOIN ({{kinds}}) USING (id)
"""
_SOME_KINDS = f"""
SELECT label AS id, bit_or(1::UINTEGER << kind) AS kinds
FROM temp._graphdb_touched JOIN _graphdb.literal ON literal.id = vertex
WHERE direction = {IN} AND vertex >= {LITERAL_BASE} AND after > 0 GROUP BY label
"""
_NO_KINDS = "SELECT NULL::BIGINT AS id, NULL::UINTEGER AS kinds LIMIT 0"
"""The kinds of the literals among the objects of labels: joined by themselves, so that DuckDB holds few vertices."""

_DEGREES = """
SELECT label, direction, bucket, sum(vertices) AS vertices, sum(edges) AS edges, sum(squares) AS squares FROM (
    SELECT label, direction, floor(log2(after)) AS bucket,
        count(*) AS vertices, sum(after) AS edges, sum(after * after) AS squares
    FROM temp._graphdb_touched WHERE after <> before AND after > 0 GROUP BY ALL
    UNION ALL
    SELECT label, direction, floor(log2(before)), -count(*), -sum(before), -sum(before * before)
    FROM temp._graphdb_touched WHERE after <> before AND before > 0 GROUP BY ALL
) GROUP BY ALL
"""

_CLASSES = f"SELECT subject AS vertex, object AS class FROM {{triples}} WHERE label = $type AND object < {LITERAL_BASE}"

_FRESH_PAIRS = f"""
SELECT label, class, direction, sum(after) AS edges, count(*) AS vertices
FROM temp.{{touched}} JOIN ({_CLASSES.format(triples="_graphdb.triple")}) USING (vertex) GROUP BY ALL
"""

_ELSEWHERE = " UNION ALL ".join(
    f"SELECT label, {direction} AS direction, {end} AS vertex, count(*) AS degree FROM _graphdb.triple"
    f" WHERE {end} IN (SELECT vertex FROM old) GROUP BY label, {end}"
    for direction, end in _ENDS
)
_CURRENT_PAIRS = f"""
SELECT label, class, direction, sum(after - before) AS edges,
    sum((after > 0)::BIGINT - (before > 0)::BIGINT) AS vertices
FROM temp._graphdb_touched JOIN ({_CLASSES.format(triples="_graphdb.triple")}) USING (vertex)
WHERE after <> before GROUP BY ALL
"""
"""New edges at labelled vertices, where no labels come or go."""

_GROWN_PAIRS = f"""
WITH new_class AS MATERIALIZED ({_CLASSES.format(triples="{added}")}),
lost_class AS MATERIALIZED ({_CLASSES.format(triples="{removed}")}),
kept_class AS (
    SELECT * FROM ({_CLASSES.format(triples="_graphdb.triple")}) SEMI JOIN temp._graphdb_touched USING (vertex)
    EXCEPT FROM new_class
),
old AS (SELECT vertex FROM (FROM new_class UNION FROM lost_class) WHERE vertex < $fresh),
degree AS (
    SELECT label, direction, vertex, before, after FROM temp._graphdb_touched
    UNION ALL
    SELECT label, direction, vertex, degree, degree FROM ({_ELSEWHERE})
    ANTI JOIN temp._graphdb_touched USING (label, direction, vertex)
)
SELECT label, class, direction, sum(edges) AS edges, sum(vertices) AS vertices FROM (
    SELECT label, class, direction, after - before AS edges, (after > 0)::BIGINT - (before > 0)::BIGINT AS vertices
    FROM temp._graphdb_touched JOIN kept_class USING (vertex)
    UNION ALL
    SELECT label, class, direction, after, 1 FROM degree JOIN new_class USING (vertex) WHERE after > 0
    UNION ALL
    SELECT label, class, direction, -before, -1 FROM degree JOIN lost_class USING (vertex) WHERE before > 0
) GROUP BY ALL HAVING sum(edges) <> 0 OR sum(vertices) <> 0
"""
"""New edges at vertices that stay labelled, and all edges of those whose labels come or go."""

LESSENED = """
WITH lost AS (
    SELECT label, direction, max(before) AS had, max(after) AS has FROM temp._graphdb_touched
    GROUP BY ALL HAVING max(before) > max(after)
),
top AS (
    SELECT label, direction, max(bucket) AS bucket, arg_max(vertices, bucket) AS vertices
    FROM _graphdb.degree SEMI JOIN lost USING (label, direction) GROUP BY ALL
),
seen AS (
    SELECT label, direction, count(*) AS vertices FROM temp._graphdb_touched JOIN top USING (label, direction)
    WHERE after > 0 AND floor(log2(after)) = top.bucket GROUP BY ALL
)
SELECT label, direction, had, has, bucket, top.vertices = coalesce(seen.vertices, 0) AS seen_all
FROM lost JOIN top USING (label, direction) LEFT JOIN seen USING (label, direction)
"""
"""Labels and directions where degrees became smaller: the largest that there was and is among those touched, the top
bucket, and whether all vertices in it were touched."""

LOST_LITERALS = f"""
WITH lost AS (
    SELECT label, bit_or(1::UINTEGER << kind) AS kinds FROM {{removed}} JOIN _graphdb.literal ON literal.id = object
    GROUP BY label
),
seen AS (
    SELECT label, bit_or(1::UINTEGER << kind) AS kinds FROM temp._graphdb_touched
    JOIN _graphdb.literal ON literal.id = vertex WHERE direction = {IN} AND after > 0 GROUP BY label
)
SELECT id, triples = resource_triples, resource_triples = 0, max_out_degree, max_values,
    bit_count(label.kinds) = 1 OR lost.kinds & ~coalesce(seen.kinds, 0) = 0
FROM lost JOIN _graphdb.edge_label AS label ON id = lost.label LEFT JOIN seen ON seen.label = lost.label
"""
"""Labels that lost literals: whether none or nothing but literals are left, and whether their kinds surely stay."""

NOTHING = "(SELECT NULL::BIGINT AS label, NULL::BIGINT AS subject, NULL::BIGINT AS object LIMIT 0)"


def refresh(connection: duckdb.DuckDBPyConnection, labels: Ids) -> None:
    """Recompute the statistics of these edge labels (int64), and of the vertex labels if rdf:type is among them.

    Runs in the caller's transaction.
    """
    chosen = {"labels": unique(labels).tolist()}
    tables.merge_log(connection)
    known = known_pairs(connection)
    for table, key in (("edge_label", "id"), ("degree", "label"), ("label_pair", "label")):
        execute(connection, f"DELETE FROM _graphdb.{table} WHERE {key} IN (SELECT unnest($labels::BIGINT[]))", chosen)
    execute(connection, f"CREATE OR REPLACE TEMP TABLE _graphdb_touched AS {_FRESH}", chosen)
    typed = type_label(connection)
    _add_labels(connection)
    if typed is not None and typed in chosen["labels"]:
        execute(connection, "DELETE FROM _graphdb.vertex_label")
        _add_vertex_labels(connection, typed, "_graphdb.triple")
    if typed is not None:
        if known >= PAIRS or typed in chosen["labels"]:
            _refresh_pairs(connection, typed)
        else:
            _add_pairs(connection, _FRESH_PAIRS.format(touched="_graphdb_touched"), {"type": typed}, known)
    execute(connection, "DROP TABLE temp._graphdb_touched")


def change(
    connection: duckdb.DuckDBPyConnection,
    added: str,
    removed: str = NOTHING,
    fresh: int = LITERAL_BASE,
    fresh_literals: int = sys.maxsize,
    literals: bool = True,
) -> None:
    """Add what new triples change, and take away what others did that are gone.

    Runs in the caller's transaction.

    Parameters
    ----------
    added
        A table (label, subject, object) of triples that the graph has by now, and did not have before.
    removed
        A table of those that it had; one may be among the added as well.
    fresh, fresh_literals
        Resources, and literals, from these ids on were in no triple before.
    literals
        Whether there may be literals among the objects.
    """
    triples = {"added": added, "removed": removed}
    tables.merge_log(connection)
    execute(
        connection,
        f"CREATE OR REPLACE TEMP TABLE _graphdb_touched AS {_GROWN.format(**triples)}",
        {"fresh": fresh, "fresh_literals": fresh_literals},
    )
    _add_labels(connection, literals=literals)
    typed = type_label(connection)
    if typed is not None:
        pairs, parameters = _CURRENT_PAIRS, {"type": typed}
        if _has(connection, typed, added) or _has(connection, typed, removed):
            _add_vertex_labels(connection, typed, added, removed)
            pairs, parameters = _GROWN_PAIRS.format(**triples), {"type": typed, "fresh": fresh}
        _change_pairs(connection, typed, pairs, parameters)
    if removed is not NOTHING:

        def largest(label: int, column: str) -> int:
            return _counted(connection, f"SELECT {column} FROM _graphdb.edge_label WHERE id = $label", label)

        for left in degrees_left(lambda: connection, execute(connection, LESSENED).fetchall(), largest):
            _put(connection, *left)
        lost = execute(connection, LOST_LITERALS.format(removed=removed)).fetchall()
        for left in literals_left(lambda: connection, lost):
            _put(connection, *left)
    execute(connection, "DROP TABLE temp._graphdb_touched")


def merge_pairs(
    connection: duckdb.DuckDBPyConnection, typed: int, pairs: str, parameters: dict[str, list[int]]
) -> None:
    """Add to the pairs what a small change brings where there are many; labels are counted by now."""
    tables.merge_log(connection, "label_pair")
    _change_pairs(connection, typed, f"FROM {pairs}", parameters)


def _change_pairs(connection: duckdb.DuckDBPyConnection, typed: int, pairs: str, parameters: Mapping[str, Any]) -> None:
    """Add a SELECT of pairs to those that are known; count all anew where that would miss too many."""
    known = known_pairs(connection)
    if known < PAIRS:
        _add_pairs(connection, pairs, parameters, known)
    elif _much_new(connection):
        _refresh_pairs(connection, typed)
    else:  # pairs that were dropped cannot be added to
        tables.merge(connection, "label_pair", pairs, parameters, only_known=True)


def known_pairs(connection: duckdb.DuckDBPyConnection) -> int:
    """Return how many pairs are stored."""
    [(rows,)] = execute(connection, "SELECT count(*) FROM _graphdb.label_pair").fetchall()
    return int(rows)


def _has(connection: duckdb.DuckDBPyConnection, label: int, triples: str) -> bool:
    if triples is NOTHING:
        return False
    return has_rows(connection, f"{triples} WHERE label = {int(label)}")


def type_label(connection: duckdb.DuckDBPyConnection) -> int | None:
    """Return the edge label rdf:type, if the data has it."""
    found = execute(connection, "SELECT id FROM _graphdb.resource WHERE iri = ?", [RDF_TYPE]).fetchall()
    return found[0][0] if found else None


def _add_labels(connection: duckdb.DuckDBPyConnection, *, literals: bool = True) -> None:
    """Add what was touched to the tables of edge labels and degrees."""
    tables.merge(connection, "edge_label", _EDGE_LABELS.format(kinds=_SOME_KINDS if literals else _NO_KINDS))
    tables.merge(connection, "degree", _DEGREES)


def _add_vertex_labels(connection: duckdb.DuckDBPyConnection, typed: int, added: str, removed: str = NOTHING) -> None:
    classes = (
        f"SELECT class, 1 AS change FROM ({_CLASSES.format(triples=added)})"
        f" UNION ALL SELECT class, -1 FROM ({_CLASSES.format(triples=removed)})"
    )
    counts = f"SELECT class AS id, sum(change) AS vertices FROM ({classes}) GROUP BY class HAVING sum(change) <> 0"
    tables.merge(connection, "vertex_label", counts, {"type": typed})


def _refresh_pairs(connection: duckdb.DuckDBPyConnection, typed: int) -> None:
    """Count all pairs anew."""
    execute(connection, "DELETE FROM _graphdb.label_pair")
    here = execute(connection, f"SELECT id FROM {tables.readable(connection, 'edge_label')}").fetchall()
    every = {"labels": [label for (label,) in here]}
    execute(connection, f"CREATE OR REPLACE TEMP TABLE _graphdb_every AS {_FRESH}", every)
    _add_pairs(connection, _FRESH_PAIRS.format(touched="_graphdb_every"), {"type": typed})
    execute(connection, "DROP TABLE temp._graphdb_every")


def _add_pairs(
    connection: duckdb.DuckDBPyConnection, pairs: str, parameters: Mapping[str, Any], known: int = 0
) -> None:
    """Add to the pairs, ``known`` or fewer by now, and keep those with most edges.

    Where others are dropped, note how many triples there were then.
    """
    changed = tables.merge(connection, "label_pair", pairs, parameters)
    if known + changed > PAIRS and known_pairs(connection) > PAIRS:
        execute(
            connection,
            "DELETE FROM _graphdb.label_pair WHERE (label, class, direction) NOT IN (SELECT (label, class, direction)"
            " FROM _graphdb.label_pair ORDER BY edges DESC, label ASC, class ASC, direction ASC LIMIT $most)",
            {"most": PAIRS},
        )
        note_pairs(connection)


def note_pairs(connection: duckdb.DuckDBPyConnection) -> None:
    """Note how many triples there are where not all pairs are stored."""
    execute(connection, f"INSERT OR REPLACE INTO _graphdb.meta VALUES ('{_COUNTED}', ({_TRIPLES})::VARCHAR)")


_COUNTED = "pairs_counted"
_TRIPLES = f"SELECT coalesce(sum(triples), 0)::BIGINT FROM {tables.current('edge_label')}"


def _much_new(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether a tenth of the triples came or went since all pairs were counted: dropped pairs are missed."""
    [(now, then)] = execute(
        connection, f"SELECT ({_TRIPLES}), (SELECT value::BIGINT FROM _graphdb.meta WHERE key = '{_COUNTED}')"
    ).fetchall()
    return then is None or abs(now - then) * 10 >= then


def degrees_left(
    file: Callable[[], duckdb.DuckDBPyConnection],
    lessened: Iterable[tuple[Any, ...]],
    largest: Callable[[int, str], int],
) -> Iterator[tuple[int, str, int]]:
    """Yield (label, column, value) of largest degrees by what is left: as rows like :data:`LESSENED` tell, or counted.

    ``file`` returns the connection to a file that has the triples of the change, ``largest`` what a column of
    ``edge_label`` says of a label.
    """
    for label, direction, had, has, bucket, seen_all in lessened:
        column, (_, end) = MAXIMA[direction], _ENDS[direction]
        if largest(label, column) > had:
            continue
        # The top bucket holds degrees from 2**bucket on, and none above what was the largest.
        bound = has if seen_all else 1 << bucket if had == 1 << bucket or bucket == 0 else None
        yield label, column, _counted(file(), _MOST.format(end=end), label) if bound is None else bound


def literals_left(
    file: Callable[[], duckdb.DuckDBPyConnection], lost: Iterable[tuple[Any, ...]]
) -> Iterator[tuple[int, str, int]]:
    """Yield the same of kinds, and of the most literals of a subject, by rows like :data:`LOST_LITERALS`."""
    for label, none, only, degree, values, certain in lost:
        if not certain or none:
            yield label, "kinds", 0 if none else _counted(file(), _KINDS, label)
        if values > 1 or none:
            yield label, "max_values", 0 if none else degree if only else _counted(file(), _MOST_VALUES, label)


def _put(connection: duckdb.DuckDBPyConnection, label: int, column: str, value: int) -> None:
    execute(connection, f"UPDATE _graphdb.edge_label SET {column} = ? WHERE id = ?", [value, label])


def _counted(connection: duckdb.DuckDBPyConnection, sql: str, label: int) -> int:
    return int(execute(connection, sql, {"label": label}).fetchall()[0][0] or 0)


_MOST = "SELECT max(n) FROM (SELECT count(*) AS n FROM _graphdb.triple WHERE label = $label GROUP BY {end})"
MAXIMA = {OUT: "max_out_degree", IN: "max_in_degree"}
"""The columns of ``edge_label`` that have largest degrees, by direction."""
_MOST_VALUES = (
    "SELECT max(n) FROM (SELECT count(*) AS n FROM _graphdb.triple"
    f" WHERE label = $label AND object >= {LITERAL_BASE} GROUP BY subject)"
)
_KINDS = (
    "SELECT bit_or(1::UINTEGER << kind) FROM _graphdb.triple JOIN _graphdb.literal ON literal.id = object"
    " WHERE label = $label"
)

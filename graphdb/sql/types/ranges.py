"""Compiles ranges: to lists where they fit in memory, to rows in blocks, and to their sizes without either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeGuard

from graphdb.common.errors import GraphDBError, MemoryLimitError, NotSupportedError, TypeMismatchError, with_place
from graphdb.common.values.types import INTEGER, Base, list_of
from graphdb.grammar import syntax as ast
from graphdb.sql.compiler import Compiler
from graphdb.sql.computing import ITEMS
from graphdb.sql.value import SqlValue


def whole(c: Compiler, node: ast.Expression) -> str:
    """Compile what must be an integer or null."""
    value = c.compile(node)
    if value.type.base is Base.NULL:
        return "CAST(NULL AS BIGINT)"
    if value.type.base is not Base.INTEGER:
        raise c.mismatch(f"a list's index is an integer, found {value.type}", node)
    return value.sql


LONGEST = 10_000_000
"""Items that a list can have: as Python's numbers they take some 400 MB.  A text can be ten times as long."""


_Fails: TypeAlias = list[tuple[str, str, type[GraphDBError] | None]]
"""Conditions in SQL on which something fails, what it says then, and the kind of error."""


def series(c: Compiler, node: ast.FunctionCall, *, every_row: bool = False) -> SqlValue:
    """Return a range as a list; ``every_row`` says that each row needs one of its own, even if they are the same.

    Raises
    ------
    NotSupportedError
        It is too long for SQL, or may be within a lambda: one list after the other is made in Python.
    """
    first, last, step, fails = _bounds(c, node)
    distance = _distance(c, node.arguments)
    fails_anyway = distance is not None and len(node.arguments) == 2 and distance > LONGEST
    if fails_anyway or (distance is not None and distance <= (_BLOCK if every_row else ITEMS)):
        return SqlValue(_series(c, node, (first, last, step), fails), list_of(INTEGER))
    if c.computing is None or c.of_items:
        raise NotSupportedError("a range that may be long is not supported here in SQL", position=node.span.start)
    failures = _failures(c, node, fails)
    items = f"CASE WHEN {' OR '.join(when for when, _, _ in fails)} THEN 0 ELSE {_items(first, last, step)} END"
    fit = c.computing().fits(f"CAST({items} AS BIGINT)", volatile=distance is not None)
    # Short lists of all rows of a chunk fit: nobody is asked, row by row.
    short = f"abs(CAST({last} AS HUGEINT) - {first}) <= {_BLOCK}"
    found = f"generate_series({first}, {last}, {step})"
    sql = f"CASE {failures} WHEN {short} THEN {found} WHEN {fit} THEN {found} END"
    return SqlValue(sql, list_of(INTEGER))


def _items(first: str, last: str, step: str) -> str:
    """Return the SQL of how many numbers a range has, which are fewer than :data:`LONGEST`."""
    apart = f"(CAST({last} AS HUGEINT) - {first})"
    return f"CASE WHEN sign({apart}) = -sign({step}) THEN 0 ELSE {apart} // {step} + 1 END"


def is_range(node: ast.Expression, c: Compiler) -> TypeGuard[ast.FunctionCall]:
    """Whether an expression makes a range."""
    called = isinstance(node, ast.FunctionCall) and node.name.lower() == "range" and 2 <= len(node.arguments) <= 3
    return called and node not in c.scope.known


def size(c: Compiler, node: ast.Expression) -> SqlValue | None:
    """Return how many items a range has, without making them; None for what is no range."""
    if not is_range(node, c):
        return None
    first, last, step, fails = _bounds(c, node)
    return SqlValue(f"CASE {_failures(c, node, fails)} ELSE CAST({_items(first, last, step)} AS BIGINT) END", INTEGER)


def _series(c: Compiler, node: ast.FunctionCall, bounds: tuple[str, str, str], fails: _Fails) -> str:
    """Return the SQL of a list of numbers, or of its failure."""
    first, last, step = bounds
    failures = _failures(c, node, fails)
    # A branch that is not taken may be computed: then it is short.
    end = f"CASE WHEN {fails[2][0]} THEN {first} ELSE {last} END"
    return f"CASE {failures} ELSE generate_series({first}, {end}, {step}) END"


_BLOCK = 1024
"""Numbers of a range that are made together where each becomes a row."""


def blocks(c: Compiler, node: ast.Expression) -> tuple[Mapping[str, str], str] | None:
    """Return a range whose numbers become rows as SQL in two steps; None for what is no range, or a short one.

    It is None, too, where only the data knows that the bounds are integers: then Python makes the list.

    A list lies in memory whole, of each of 2,048 rows at a time, and DuckDB neither counts its bytes nor stops while it
    makes one.  So first each row becomes one for each block of numbers, with what the first item holds as columns
    (by their names, ``first`` as SQL of the blocks' first numbers); from these the second makes the block's numbers.
    """
    if not is_range(node, c):
        return None
    distance = _distance(c, node.arguments)
    if distance is not None and distance <= _BLOCK:
        return None
    try:
        first, last, step, fails = _bounds(c, node)
    except (NotSupportedError, TypeMismatchError):
        return None
    size = f"CASE WHEN abs(CAST({step} AS DOUBLE)) > 1e15 THEN 1 ELSE {_BLOCK} END"  # else it overflows
    made = _series(c, node, (first, last, f"{step} * {size}"), fails)
    end = "first + CAST(size - 1 AS HUGEINT) * step"
    past = f"CASE WHEN step > 0 THEN {end} > last ELSE {end} < last END"
    numbers = f"unnest(generate_series(first, CASE WHEN {past} THEN last ELSE CAST({end} AS BIGINT) END, step))"
    return {"first": f"unnest({made})", "last": last, "step": step, "size": size}, numbers


def _distance(c: Compiler, arguments: Sequence[ast.Expression]) -> int | None:
    """Return how far apart a range's bounds are, if the text and the parameters say so, as they do its step."""
    values = [c.arguments.get(a.name) if isinstance(a, ast.Parameter) else getattr(a, "value", None) for a in arguments]
    return abs(values[1] - values[0]) if all(isinstance(value, int) for value in values) else None  # type: ignore[operator]


def _failures(c: Compiler, node: ast.FunctionCall, fails: _Fails) -> str:
    """Return the branches of a CASE that fail."""
    errors = [(when, c.rows.error(with_place(message, node.span.start, kind))) for when, message, kind in fails]
    return " ".join(f"WHEN {when} THEN {error}" for when, error in errors)


def _bounds(c: Compiler, node: ast.FunctionCall) -> tuple[str, str, str, _Fails]:
    """Return the SQL of a range's first and last number and its step, and when it fails, with what and how."""
    first, last, *rest = [whole(c, argument) for argument in node.arguments]
    step = rest[0] if rest else "1"
    # As floats, which do not overflow.
    long = f"(CAST({last} AS DOUBLE) - {first}) / {step} >= {LONGEST}"
    return (
        first,
        last,
        step,
        [
            (f"{first} IS NULL OR {last} IS NULL OR {step} IS NULL", "range needs integers, found null", None),
            (f"{step} = 0", "range needs a step other than 0", None),
            (long, f"a range of more than {LONGEST:,} items is too long", MemoryLimitError),
        ],
    )

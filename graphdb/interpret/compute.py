"""What SQL calls for the expressions that it cannot express: each is evaluated once for each distinct input.

See :mod:`graphdb.sql.udf` for what is handed over, and why.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdb.common.errors import ExecutionError, GraphDBError, MemoryLimitError, NotSupportedError, TypeMismatchError
from graphdb.common.stopping import checked
from graphdb.common.values.literals import exported, value_of
from graphdb.common.values.temporal import Date, Duration, from_python
from graphdb.common.values.types import (
    ANY,
    BOOLEAN,
    DATE,
    DURATION,
    EXACT_ONLY,
    FLOAT,
    INTEGER,
    STRING,
    Base,
    Type,
    list_of,
    sql_type,
    tidied,
)
from graphdb.grammar import syntax as ast
from graphdb.interpret.check import _Checker
from graphdb.interpret.context import Context
from graphdb.interpret.evaluate import Compiler
from graphdb.interpret.evaluator import Evaluate
from graphdb.interpret.order_key import value_key
from graphdb.interpret.types import Scope, Static, StaticTypes
from graphdb.interpret.values import Several
from graphdb.sql.computing import Input

if TYPE_CHECKING:
    import pyarrow as pa

_REMEMBERED = 1_000_000
"""Inputs whose values are remembered from one chunk of rows to the next."""

_FITS = -1
"""In the place of an expression's number: whether lists fit in memory."""

_PYTHON: dict[Base, type] = {Base.BOOLEAN: bool, Base.INTEGER: int, Base.FLOAT: float, Base.STRING: str}

_LAST_DAY = (1 << 31) - 2
"""The last day that DuckDB's type of dates holds, in days since 1970; it holds as many before."""

_PARTS = ("months", "days", "seconds", "nanoseconds")

_OF_STATIC = {"boolean": BOOLEAN, "integer": INTEGER, "float": FLOAT, "string": STRING}


class _Failed(Exception):
    """An expression failed, with the error of a number: DuckDB reports errors as text."""


_NUMBERED = re.compile(r"_Failed: number (\d+) of this run")


@dataclass(frozen=True, slots=True)
class _Piece:
    """One expression."""

    inputs: tuple[Input, ...]
    evaluate: Evaluate
    type: Type
    source: ast.Expression


class Computation:
    """The computed expressions of one statement, and the values that they have yielded in its present run.

    Parameters
    ----------
    context
        The statement, and the graph that its names are of.
    items
        How many items the lists of a chunk's rows may have together.
    """

    def __init__(self, context: Context, items: int) -> None:
        self._context = context
        self._items = items
        context.view = _Blind()  # type: ignore[assignment]
        connection = context.connection
        self._connection = connection
        self._calls = connection.calls
        self._number = self._calls.enter(self)
        self._compiler = Compiler(context)
        self._pieces: list[_Piece] = []
        self._results: list[dict[Any, Any]] = []
        self._errors: list[Exception] = []
        self._values: dict[bytes, Any] = {}
        """The values that SQL knows by their keys."""

    # --- while a query is prepared

    def add(self, node: ast.Expression, inputs: Sequence[Input], source: ast.Expression, wanted: Type | None) -> Type:
        """See :meth:`graphdb.sql.udf.Computing.add`."""
        scope: Scope = {f"#{i}": _static(input) for i, input in enumerate(inputs)}
        try:
            static = self._static(node, scope, wanted)
        except TypeMismatchError:  # the text is checked before: only the types of properties do not fit
            static = self._static(node, dict.fromkeys(scope, Static("any")), wanted)
        evaluate = self._compiler.condition(node) if wanted == BOOLEAN else self._compiler.compile(node)
        type = wanted
        if type is None:
            type = _of_clock(node) or _type_of(static)
            if type is DATE and not inputs and not _is_sql_date(evaluate):
                type = ANY
        elif type.base is Base.LIST:
            evaluate = _items(evaluate)
        self._pieces.append(_Piece(tuple(inputs), evaluate, type, source))
        self._results.append({})
        return type

    def _static(self, node: ast.Expression, scope: Scope, wanted: Type | None) -> Static:
        """Return the static type of an expression; raise where it does not fit."""
        types = StaticTypes(self._context, _Checker(self._context, ()))  # type: ignore[arg-type]
        if wanted == BOOLEAN:
            types.condition(node, scope)
            return Static("boolean")
        return types.of(node, scope)

    def call(self, type: Type, columns: Sequence[str]) -> str:
        """See :meth:`graphdb.sql.udf.Computing.call`."""
        return self._call(len(self._pieces) - 1, sql_type(type), columns)

    def fits(self, items: str, *, volatile: bool) -> str:
        """See :meth:`graphdb.sql.udf.Computing.fits`."""
        return self._call(_FITS, "BOOLEAN", [items], volatile)

    def _call(self, piece: int, wanted: str, columns: Sequence[str], volatile: bool = False) -> str:
        with self._connection.guard() as raw:
            # A ROLLBACK would take a new function away.
            if not self._calls.has(wanted, volatile) and self._connection.transactions.inside:
                raise NotSupportedError("a first value that SQL does not hold, within a transaction")
            name = self._calls.function(raw, wanted, volatile)
        return f"{name}({', '.join([str(self._number), str(piece), *columns])})"

    def sources(self) -> list[str]:
        """Return the expressions as they were written."""
        spans = [piece.source.span for piece in self._pieces]
        return list(dict.fromkeys(" ".join(self._context.text[span.start : span.end].split()) for span in spans))

    # --- while it runs

    @contextmanager
    def run(self) -> Iterator[Callable[[bytes], Any]]:
        """See :meth:`graphdb.sql.udf.Computing.run`."""
        self._results = [{} for _ in self._pieces]
        self._errors, self._values = [], {}
        self._context.started = time.time_ns()
        values = self._values
        try:
            yield lambda key: exported(values[key])
        except ExecutionError as error:
            raise self.own(error) from None
        finally:
            self._results, self._values = [{} for _ in self._pieces], {}

    def own(self, error: ExecutionError) -> Exception:
        """Return the error of Python's that DuckDB reports, as it was raised here; any other as it is.

        DuckDB may compute an expression ahead, and drop the error if no row turns out to need the value: which error it
        reports is known by a number.
        """
        found = _NUMBERED.search(error.message)
        return error if found is None else self._errors[int(found[1])]

    def answer(self, columns: list[pa.ChunkedArray], rows: int) -> pa.Array:
        """Return an expression's value for each row of a chunk; the first column says which it is."""
        try:
            number = columns[0][0].as_py()
            return self._all_fit(columns[1]) if number == _FITS else self._answer(number, columns[1:], rows)
        except Exception as error:
            self._errors.append(error)
            raise _Failed(f"number {len(self._errors) - 1} of this run") from None

    def _answer(self, number: int, columns: list[pa.ChunkedArray], rows: int) -> pa.Array:
        import pyarrow as pa

        piece, known = self._pieces[number], self._results[number]
        inputs, of_row = _distinct(columns, rows)
        readers = [self._reader(input) for input in piece.inputs]
        results: list[Any] = []
        listed = 0
        for values in zip(*inputs, strict=True) if inputs else [()]:
            key = tuple(map(_exactly, values))
            try:
                results.append(known[key])
                continue
            except (KeyError, TypeError):  # a list is no key
                pass
            row = {f"#{i}": read(value) for i, (read, value) in enumerate(zip(readers, values, strict=True))}
            found = self._held(piece.evaluate(row), piece.type)
            results.append(found)
            if isinstance(found, list):
                listed += len(found)
                self._check_items(listed)
            if len(known) < _REMEMBERED and not any(isinstance(value, list) for value in values):
                with suppress(TypeError):  # a list inside
                    known[key] = found
        array = pa.array(results, _arrow_type(piece.type))
        if piece.type is DATE:
            array = array.cast(pa.date32())
        return array if of_row is None else array.take(pa.array(of_row))

    def _all_fit(self, items: pa.ChunkedArray) -> pa.Array:
        """Return true for each row of a chunk, unless their lists have too many items together."""
        import pyarrow as pa

        counts = items.to_numpy()
        self._check_items(int(counts.sum()))
        return pa.array(np.ones(len(counts), bool))

    def _check_items(self, together: int) -> None:
        """Refuse lists that take too much memory; those of all rows of a chunk are there at once."""
        if together > self._items:
            raise MemoryLimitError(
                f"lists of {together:,} items together do not fit in memory",
                hint="raise memory_limit, or UNWIND the lists: their items then come one after the other",
            )

    def _held(self, value: Any, type: Type) -> Any:
        """Return a value as SQL holds it."""
        if value is None:
            return None
        if type.base is Base.ANY:
            key = value_key(value)
            self._values.setdefault(key, value)
            return key
        if type.base is Base.LIST:
            if not isinstance(value, list) or isinstance(value, Several):
                raise NotSupportedError("a list was expected")
            return [self._held(item, type.element or ANY) for item in checked(value)]
        if type.base is Base.DATE:
            if not isinstance(value, Date):
                raise NotSupportedError("a date was expected")
            if abs(value.days) > _LAST_DAY:
                raise ExecutionError(f"the date {value} is out of range: columns hold years -5877641 to 5881580")
            return value.days
        if type.base is Base.DURATION:
            if not isinstance(value, Duration):
                raise NotSupportedError("a duration was expected")
            return dict(zip(_PARTS, (value.months, value.days, value.seconds, value.nanoseconds), strict=True))
        if value.__class__ is not _PYTHON[type.base]:
            raise NotSupportedError(f"{type} was expected")
        return value

    def _reader(self, input: Input) -> Callable[[Any], Any]:
        """Return what makes the interpreter's value of an input's."""
        match input.read:
            case "several":
                element = input.type.element or ANY
                return lambda value: None if value is None else _one_of([self._read(item, element) for item in value])
            case "literal":
                return lambda value: None if value is None else _literal(value)
            case "literals":
                return lambda value: None if value is None else _one_of([_literal(item) for item in value])
            case "properties":
                return lambda value: None if value is None else _properties(value)
        return lambda value: self._read(value, input.type)

    def _read(self, value: Any, type: Type) -> Any:
        if value is None:
            return None
        match type.base:
            case Base.ANY:
                return self._values[value]
            case Base.LIST:
                return [self._read(item, type.element or ANY) for item in value]
            case Base.MAP:
                found = {key: self._read(value[f"f{i}"], field) for i, (key, field) in enumerate(type.fields)}
                return {key: one for key, one in found.items() if one is not None} if type.sparse else found
            case Base.DURATION:
                return Duration(**value)
            case Base.DATE | Base.DATETIME | Base.TIME:
                return from_python(value)
            case Base.DECIMAL | Base.VALUE:
                if getattr(value, "tzinfo", None) is not None:
                    raise NotSupportedError("its zone was lost")
                return from_python(value) or tidied(value)
        return value


class _Blind:
    """The graph, for expressions that cannot look into it: SQL runs, and nothing else can be asked of DuckDB."""

    def __getattr__(self, name: str) -> Any:
        raise NotSupportedError("what is looked up in the graph is not supported in SQL")


def _distinct(columns: list[pa.ChunkedArray], rows: int) -> tuple[list[list[Any]], np.ndarray[Any, Any] | None]:
    """Return the distinct rows of some columns (as a list of values per column), and which of them each row is."""
    import pyarrow as pa

    if not columns:
        return [], np.zeros(rows, np.int64)
    arrays = [column.combine_chunks() for column in columns]
    flat = [part for array in arrays for part in _flat(array)]
    if any(pa.types.is_nested(array.type) or pa.types.is_null(array.type) for array in flat):
        return [array.to_pylist() for array in arrays], None
    which = np.zeros(rows, np.int64)
    for array in flat:
        found = array.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, which = np.unique(which * (int(found.max(initial=0)) + 1) + found, return_inverse=True)
    _, first = np.unique(which, return_index=True)
    return [array.take(pa.array(first)).to_pylist() for array in arrays], which


def _flat(array: pa.Array) -> list[pa.Array]:
    """Return the columns that tell the values of a column apart: of structs their fields."""
    import pyarrow as pa

    if not pa.types.is_struct(array.type):
        return [array]
    return [array.is_valid(), *[array.field(i) for i in range(array.type.num_fields)]]


def _exactly(value: Any) -> Any:
    """Return what is equal for the same input only: 0.0 is not -0.0, and 1 neither 1.0 nor true."""
    if isinstance(value, dict):
        return tuple(map(_exactly, value.values()))
    return value.__class__, value.hex() if isinstance(value, float) else value


def _one_of(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else Several(values) if values else None


def _literal(found: dict[str, Any]) -> Any:
    """Return the value of a literal as it is written: what DuckDB's types bend is read from its text."""
    value = found["value"]
    if 1 << found["kind"] & EXACT_ONLY or from_python(value) is not None:
        return value_of(found["lexical"], found["datatype"])
    return tidied(value)


def _properties(literals: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, list[Any]] = {}
    for literal in literals:
        found.setdefault(literal["name"], []).append(_literal(literal))
    return {name: _one_of(values) for name, values in found.items()}


def _static(input: Input) -> Static:
    """Return what the text of an expression may count on of an input."""
    return _static_of(input.type) if input.read == "value" else Static("any")


def _items(evaluate: Evaluate) -> Evaluate:
    """Return the function to the items that UNWIND makes rows of."""

    def items(row: dict[str, Any]) -> Any:
        value = evaluate(row)
        return value if value is None else list(value) if isinstance(value, list) else [value]

    return items


def _of_clock(node: ast.Expression) -> Type | None:
    """Return the type of what makes a date or duration, which SQL's types hold whatever it is."""
    name = node.name.lower().partition(".")[0] if isinstance(node, ast.FunctionCall) else ""
    return {"date": DATE, "duration": DURATION}.get(name)


def _is_sql_date(evaluate: Evaluate) -> bool:
    """Whether SQL holds the date that an expression of constants yields; of one that fails, it holds all."""
    try:
        value = evaluate({})
    except GraphDBError:
        return True
    return not isinstance(value, Date) or abs(value.days) <= _LAST_DAY


def _static_of(type: Type) -> Static:
    if type.base is Base.LIST:
        return Static("list", _static_of(type.element or ANY))
    if type.base is Base.MAP:
        return Static("map")
    if type.base in (Base.DURATION, Base.DATE, Base.DATETIME, Base.TIME):
        return Static("temporal")
    return Static(next((name for name, of in _OF_STATIC.items() if of == type), "any"))


def _type_of(static: Static) -> Type:
    """Return the type that SQL holds the values of an expression in."""
    if static.base == "list":
        element = _type_of(static.element) if static.element is not None else ANY
        return list_of(element) if element.base in _PYTHON else ANY
    return _OF_STATIC.get(static.base, ANY)


def _arrow_type(type: Type) -> pa.DataType:
    import pyarrow as pa

    if type.base is Base.LIST:
        return pa.list_(_arrow_type(type.element or ANY))
    return {
        Base.BOOLEAN: pa.bool_(),
        Base.INTEGER: pa.int64(),
        Base.FLOAT: pa.float64(),
        Base.STRING: pa.string(),
        Base.ANY: pa.binary(),
        Base.DATE: pa.int32(),
        Base.DURATION: pa.struct([(name, pa.int64()) for name in _PARTS]),
    }[type.base]

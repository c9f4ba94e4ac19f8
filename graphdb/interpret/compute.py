"""What SQL calls for the expressions that it cannot express: each is evaluated once for each distinct input.

See :mod:`graphdb.sql.udf` for what is handed over, and why.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdb.common.duckdb.connection import Connection
from graphdb.common.errors import (
    ExecutionError,
    GraphDBError,
    MemoryLimitError,
    NotSupportedError,
    QueryTimeout,
    TypeMismatchError,
)
from graphdb.common.stopping import checked
from graphdb.common.values.entities import Edge, Path, Vertex
from graphdb.common.values.literals import value_of
from graphdb.common.values.temporal import Date, Duration, from_python
from graphdb.common.values.terms import Kind
from graphdb.common.values.types import (
    ANY,
    BOOLEAN,
    CODE_BITS,
    DATE,
    DURATION,
    EDGE,
    EXACT_ONLY,
    FLOAT,
    INTEGER,
    LABEL_OF,
    MIXED,
    NODE,
    PATH,
    STRING,
    Base,
    Type,
    list_of,
    sql_type,
    tidied,
)
from graphdb.grammar import syntax as ast
from graphdb.interpret.aggregates import aggregate
from graphdb.interpret.apply import Applied, arrow_type
from graphdb.interpret.calls import wrong
from graphdb.interpret.context import Context
from graphdb.interpret.evaluate import Compiler
from graphdb.interpret.evaluator import Evaluate
from graphdb.interpret.order_key import value_key
from graphdb.interpret.values import Several, type_name
from graphdb.interpret.view import Fact, View
from graphdb.pattern.path_search import Differing, PathSearch
from graphdb.procedures.registry import Call
from graphdb.semantics.aggregation import is_aggregate
from graphdb.semantics.check import Queries
from graphdb.semantics.types import Scope, Static
from graphdb.sql.computing import Input
from graphdb.storage.arrays.python_values import pylist

if TYPE_CHECKING:
    import pyarrow as pa

_REMEMBERED = 1_000_000
"""Inputs whose values are remembered from one chunk of rows to the next."""

_FITS = -1
"""In the place of an expression's number: whether lists fit in memory."""

_FAILS = -2
"""In the same place: with which error the run ends."""

_PYTHON: dict[Base, type] = {Base.BOOLEAN: bool, Base.INTEGER: int, Base.FLOAT: float, Base.STRING: str}

_LAST_DAY = (1 << 31) - 2
"""The last day that DuckDB's type of dates holds, in days since 1970; it holds as many before."""

_PARTS = ("months", "days", "seconds", "nanoseconds")

_ELEMENTS = {Base.NODE: "vertex", Base.EDGE: "edge", Base.PATH: "path"}
_OF_STATIC = {"boolean": BOOLEAN, "integer": INTEGER, "float": FLOAT, "string": STRING}
_OF_STATIC |= {"vertex": NODE, "edge": EDGE, "path": PATH}
_EDGE = ("label", "start", "end", "ordinal")


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
    volatile: bool


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
        context.view = self._view = _View(context)
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

    def add(
        self,
        node: ast.Expression,
        inputs: Sequence[Input],
        source: ast.Expression,
        wanted: Type | None,
        *,
        volatile: bool = False,
        mixed: bool = False,
    ) -> Type:
        """See :meth:`graphdb.sql.computing.Computing.add`."""
        scope: Scope = {f"#{i}": _static(input) for i, input in enumerate(inputs)}
        condition, element = wanted == BOOLEAN, wanted in (NODE, EDGE)
        static = Static("any")
        if not (is_aggregate(node) or element):
            try:
                static = self._static(node, scope, condition=condition)
            except TypeMismatchError:  # the text is checked before: only the types of properties do not fit
                static = self._static(node, dict.fromkeys(scope, static), condition=condition)
        if is_aggregate(node):
            assert isinstance(node, ast.FunctionCall)
            evaluate = self._aggregate(node)
        else:
            evaluate = self._compiler.condition(node) if condition else self._compiler.compile(node)
        type = ANY if is_aggregate(node) else wanted
        if type is None:
            type = _of_clock(node) or _type_of(static)
            if type is DATE and not inputs and not _is_sql_date(evaluate):
                type = ANY
        elif element:
            evaluate = self._element(evaluate, source, type)
        elif type.base is Base.LIST:
            evaluate = _items(evaluate)
        if mixed:
            type = MIXED if type == ANY else list_of(MIXED) if type == list_of(ANY) else type
        self._pieces.append(_Piece(tuple(inputs), evaluate, type, source, volatile))
        self._results.append({})
        return type

    def _static(self, node: ast.Expression, scope: Scope, *, condition: bool) -> Static:
        """Return the static type of an expression; raise where it does not fit."""
        types = Queries(self._context.names, self._context.procedures, self._context.text)
        if not condition:
            return types.type_of(node, scope)
        types.condition(node, scope)
        return Static("boolean")

    def _aggregate(self, node: ast.FunctionCall) -> Evaluate:
        """Return the function to an aggregate of a list of values."""
        values, *further = map(self._compiler.compile, node.arguments)
        key_of = self._context.group_key if node.distinct else None

        def fail(kind: type[GraphDBError], message: str) -> GraphDBError:
            return kind(message, text=self._context.text, position=node.span.start)

        def evaluate(row: dict[str, Any]) -> Any:
            share = further[0](row) if further else 0
            return aggregate(node.name.lower(), values(row), key_of, share, fail)

        return evaluate

    def _element(self, evaluate: Evaluate, source: ast.Expression, type: Type) -> Evaluate:
        """Return the function to what must be a vertex, or an edge, because a pattern goes on from it."""
        kind = Vertex if type == NODE else Edge

        def element(row: dict[str, Any]) -> Any:
            value = evaluate(row)
            if value is None or isinstance(value, kind):
                return value
            span = source.span
            message = f"'{self._context.text[span.start : span.end]}' is {type_name(value)}, not {type}"
            raise wrong(self._context, source, message)

        return element

    def call(self, type: Type, columns: Sequence[str], *, volatile: bool = False) -> str:
        """See :meth:`graphdb.sql.computing.Computing.call`."""
        return self._call(len(self._pieces) - 1, sql_type(type), columns, volatile)

    def over_rows(self) -> Callable[[pa.Table], pa.Table]:
        """See :meth:`graphdb.sql.computing.Computing.over_rows`."""
        import pyarrow as pa

        number = len(self._pieces) - 1
        inputs = self._pieces[number].inputs

        def compute(rows: pa.Table) -> pa.Table:
            columns = [rows.column(f"c{i}") for i in range(len(inputs))]
            values, failed = self._answer(number, columns, rows.num_rows, between=True)
            return pa.table({"value": values, "failed": failed})

        return compute

    def fails(self, type: Type, failed: str) -> str:
        """See :meth:`graphdb.sql.computing.Computing.fails`."""
        return self._call(_FAILS, sql_type(type), [failed])

    def fits(self, items: str, *, volatile: bool) -> str:
        """See :meth:`graphdb.sql.computing.Computing.fits`."""
        return self._call(_FITS, "BOOLEAN", [items], volatile)

    def _call(self, piece: int, wanted: str, columns: Sequence[str], volatile: bool = False) -> str:
        with self._connection.guard() as raw:
            name = self._calls.function(raw, wanted, volatile, self._connection.transactions.inside)
        return f"{name}({', '.join([str(self._number), str(piece), *columns])})"

    def constant(self, node: ast.Expression) -> object:
        """See :meth:`graphdb.sql.computing.Computing.constant`."""
        return self._compiler.compile(node)({})

    def applied(
        self,
        function: PathSearch | Differing | Call,
        given: Mapping[str, Input],
        yields: Mapping[str, Type],
        used: Sequence[str] = (),
    ) -> Applied:
        """See :meth:`graphdb.sql.computing.Computing.applied`."""
        found = Applied(function, given, yields, used, self._context.of_run, self._reader, self._held)
        found.check()
        return found

    def sources(self) -> list[str]:
        """Return the expressions as they were written."""
        spans = [piece.source.span for piece in self._pieces]
        return list(dict.fromkeys(" ".join(self._context.text[span.start : span.end].split()) for span in spans))

    # --- while it runs

    @contextmanager
    def run(self, known: dict[bytes, Any] | None = None) -> Iterator[Callable[[bytes], Any]]:
        """See :meth:`graphdb.sql.computing.Computing.run`."""
        self._results = [{} for _ in self._pieces]
        self._errors, self._values = [], {} if known is None else known
        self._context.started = time.time_ns()
        values = self._values
        try:
            yield values.__getitem__
        except ExecutionError as error:
            raise self.own(error) from None
        finally:
            self._results, self._values = [{} for _ in self._pieces], {}
            self._view.forget()

    def own(self, error: ExecutionError) -> Exception:
        """Return the error of Python's that DuckDB reports, as it was raised here; any other as it is.

        DuckDB may compute an expression ahead, and drop the error if no row turns out to need the value: which error it
        reports is known by a number.
        """
        found = _NUMBERED.search(error.message)
        return error if found is None else self._errors[int(found[1])]

    def answer(self, columns: list[pa.ChunkedArray], rows: int) -> pa.Array:
        """Return an expression's value for each row of a chunk; the first column says which it is."""
        with self._failing(), self._view.closed():
            number = columns[0][0].as_py()
            if number == _FITS:
                return self._all_fit(columns[1])
            if number == _FAILS:
                raise self._errors[next(filter(_is_known, columns[1].to_pylist()))]
            return self._answer(number, columns[1:], rows)[0]

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Number the error of an expression that fails."""
        try:
            yield
        except Exception as error:
            self._errors.append(error)
            raise _Failed(f"number {len(self._errors) - 1} of this run") from None

    def _answer(
        self, number: int, columns: list[pa.ChunkedArray], rows: int, *, between: bool = False
    ) -> tuple[pa.Array, pa.Array]:
        """Return an expression's values, and the numbers of the errors of those that there are not.

        ``between`` says that no SQL runs: then all vertices among its inputs are looked up at once, and it goes on
        after an error.
        """
        import pyarrow as pa

        piece, known = self._pieces[number], self._results[number]
        inputs, of_row = _each(columns) if piece.volatile else _distinct(columns, rows)
        readers = [self._reader(input) for input in piece.inputs]
        if between:
            for read, values in zip(readers, inputs, strict=True):
                self._view.expect(map(read, values))
        results: list[Any] = []
        failed: list[int | None] = []
        listed = 0
        for given in zip(*inputs, strict=True) if inputs else [()] * (rows if piece.volatile else 1):
            key = tuple(map(_exactly, given))
            failed.append(None)
            try:
                results.append(known[key])
                continue
            except (KeyError, TypeError):  # a list is no key
                pass
            row = {f"#{i}": read(value) for i, (read, value) in enumerate(zip(readers, given, strict=True))}
            try:
                found = self._held(piece.evaluate(row), piece.type)
            except GraphDBError as error:
                if not between or isinstance(error, QueryTimeout | MemoryLimitError):
                    raise
                results.append(None)
                failed[-1] = len(self._errors)
                self._errors.append(error)
                continue
            results.append(found)
            if isinstance(found, list):
                listed += len(found)
                self._check_items(listed)
            if len(known) < _REMEMBERED and not piece.volatile and not any(isinstance(value, list) for value in given):
                with suppress(TypeError):  # a list inside
                    known[key] = found
        array = pa.array(results, arrow_type(piece.type))
        if piece.type is DATE:
            array = array.cast(pa.date32())
        arrays = array, pa.array(failed, pa.int64())
        return arrays if of_row is None else (arrays[0].take(pa.array(of_row)), arrays[1].take(pa.array(of_row)))

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
            key = value_key(self._context.valued(value) if type == MIXED else value)
            self._values.setdefault(key, value)
            return key
        if type.base is Base.LIST:
            if not isinstance(value, list) or isinstance(value, Several):
                raise NotSupportedError("a list was expected")
            return [self._held(item, type.element or ANY) for item in checked(value)]
        if type.base in (Base.NODE, Base.TERM):
            if not isinstance(value, Vertex):
                raise NotSupportedError("a vertex was expected")
            return value.id
        if type.base is Base.EDGE:
            if not isinstance(value, Edge):
                raise NotSupportedError("an edge was expected")
            return {name: getattr(value, name) for name in _EDGE}
        if type.base is Base.PATH:
            if not isinstance(value, Path):
                raise NotSupportedError("a path was expected")
            return {"vertices": [vertex.id for vertex in value.vertices], "codes": list(_codes(value))}
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
        """Return what makes the evaluator's value of an input's."""
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
            case "term":
                return self._term
        return lambda value: self._read(value, input.type)

    def _term(self, value: dict[str, Any] | None) -> Vertex | None:
        """Return a vertex; where it is a literal, its value need not be looked up any more."""
        if value is None:
            return None
        if (literal := value["literal"]) is not None:
            self._view.found(value["id"], Fact(_literal(literal), literal["lexical"], literal["datatype"]))
        return Vertex(value["id"])

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
            case Base.NODE | Base.TERM:
                return Vertex(value)
            case Base.EDGE:
                return Edge(**value)
            case Base.PATH:
                return _path(value["vertices"], value["codes"])
            case Base.TUPLE:
                return [self._read(value[f"f{i}"], field) for i, (_, field) in enumerate(type.fields)]
            case Base.DURATION:
                return Duration(**value)
            case Base.DATE | Base.DATETIME | Base.TIME:  # as text where Python's calendar does not have it
                return from_python(value) or value
            case Base.DECIMAL | Base.VALUE | Base.ZONED:  # a moment is in UTC, whatever zone this runs in
                value = tidied(value)
                return from_python(value) or value
        return value


def _is_known(value: object) -> bool:
    return value is not None


class _View(View):
    """The graph, into which expressions cannot look while SQL runs: nothing else can be asked of DuckDB then."""

    _closed = False

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Refuse to look up anything meanwhile."""
        self._closed = True
        try:
            yield
        finally:
            self._closed = False

    @property
    def _connection(self) -> Connection:
        if self._closed:
            raise NotSupportedError("what is looked up in the graph is not supported in SQL")
        return super()._connection


def _distinct(columns: list[pa.ChunkedArray], rows: int) -> tuple[list[list[Any]], np.ndarray[Any, Any] | None]:
    """Return the distinct rows of some columns (as a list of values per column), and which of them each row is."""
    import pyarrow as pa

    if not columns:
        return [], np.zeros(rows, np.int64)
    types = [part for column in columns for part in _flat_types(column.type)]
    if any(pa.types.is_nested(type) or pa.types.is_null(type) for type in types):
        return _each(columns)
    arrays = [column.combine_chunks() for column in columns]
    flat = [part for array in arrays for part in _flat(array)]
    which = np.zeros(rows, np.int64)
    for array in flat:
        found = array.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, which = np.unique(which * (int(found.max(initial=0)) + 1) + found, return_inverse=True)
    _, first = np.unique(which, return_index=True)
    return [pylist(array.take(pa.array(first))) for array in arrays], which


def _flat_types(type: pa.DataType) -> list[pa.DataType]:
    """Return the types of a column's values, or of a struct's fields."""
    import pyarrow as pa

    return [field.type for field in type.fields] if pa.types.is_struct(type) else [type]


def _each(columns: list[pa.ChunkedArray]) -> tuple[list[list[Any]], None]:
    """Return all rows of some columns."""
    return [pylist(column) for column in columns], None


def _codes(path: Path) -> Iterator[int]:
    """Yield the codes of a path's edges."""
    for vertex, edge in zip(path.vertices, path.edges, strict=False):
        yield edge.ordinal << CODE_BITS | edge.label << 1 | (edge.start != vertex.id)


def _path(ids: list[int], codes: list[int]) -> Path:
    """Return a path by its vertices and the codes of its edges."""
    edges = (
        Edge(code >> 1 & LABEL_OF, *((a, b) if code & 1 == 0 else (b, a)), code >> CODE_BITS)
        for a, b, code in zip(ids, ids[1:], codes, strict=False)
    )
    return Path(tuple(map(Vertex, ids)), tuple(edges))


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


_FROM_TEXT = EXACT_ONLY | 1 << Kind.DATE | 1 << Kind.DATETIME | 1 << Kind.ZONED
"""Kinds of literals, as bits, that Python's types do not hold all of."""


def _literal(found: dict[str, Any]) -> Any:
    """Return the value of a literal as it is written: what DuckDB's types bend is read from its text."""
    value = found["value"]
    if 1 << found["kind"] & _FROM_TEXT or from_python(value) is not None:
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
    if type.base in _ELEMENTS:
        return Static(_ELEMENTS[type.base])
    return Static(next((name for name, of in _OF_STATIC.items() if of == type), "any"))


def _type_of(static: Static) -> Type:
    """Return the type that SQL holds the values of an expression in."""
    if static.base == "list":
        element = _type_of(static.element) if static.element is not None else ANY
        return list_of(element) if element.base in _PYTHON or element.base in _ELEMENTS else ANY
    return _OF_STATIC.get(static.base, ANY)

"""What SQL calls for the expressions that it cannot express: each is evaluated once for each distinct input.

See :mod:`graphdb.sql.udf` for what is handed over, and why.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from graphdb.common import arrow
from graphdb.common.duckdb.connection import Connection
from graphdb.common.errors import (
    ExecutionError,
    GraphDBError,
    MemoryLimitError,
    NotSupportedError,
    QueryInterrupted,
    QueryTimeout,
    TypeMismatchError,
)
from graphdb.common.stopping import check_stop, checked, limits, under
from graphdb.common.values.entities import Edge, Vertex
from graphdb.common.values.temporal import Date
from graphdb.common.values.types import ANY, BOOLEAN, DATE, EDGE, IN_ZONE, MIXED, NODE, Base, Type, list_of, sql_type
from graphdb.evaluate.apply import Applied
from graphdb.evaluate.builtins.aggregates import aggregate
from graphdb.evaluate.calls import wrong
from graphdb.evaluate.columns.codec import Convert, Keys, array_of, is_sql_date, writer
from graphdb.evaluate.columns.inputs import distinct_rows, every_row, exactly, reader_of
from graphdb.evaluate.columns.static_types import sql_type_of, static_of, type_of_clock
from graphdb.evaluate.context import Context
from graphdb.evaluate.evaluator import Evaluate
from graphdb.evaluate.expressions import Compiler
from graphdb.evaluate.memory import ChunkWatch
from graphdb.evaluate.values import type_name
from graphdb.evaluate.view import View
from graphdb.grammar import syntax as ast
from graphdb.pattern.paths.search import Differing, PathSearch
from graphdb.procedures.registry import Call
from graphdb.semantics.aggregation import is_aggregate
from graphdb.semantics.check import Queries
from graphdb.semantics.types import Scope, Static
from graphdb.sql.computing import Input

_UNCHECKED = 16
"""Rows between two looks whether a statement must stop: one may take a millisecond."""

_REMEMBERED = 1_000_000
"""Inputs whose values are remembered from one chunk of rows to the next."""

_FITS = -1
"""In the place of an expression's number: whether lists fit in memory."""

_CHARACTERS = 32
"""Characters of a text that take as much memory as an item of a list."""

_GIVEN = {
    "DATE": "INTEGER",
    "DOUBLE": "VARCHAR",
    "DOUBLE[]": "VARCHAR[]",
    sql_type(IN_ZONE): sql_type(IN_ZONE).replace("TIMESTAMP", "VARCHAR"),
}
"""What Python gives for values of some types of SQL: days and texts, for its calendar does not have all dates; and
numbers as they are written, for DuckDB takes NaN for NULL."""

_EXACT = (Base.BOOLEAN, Base.INTEGER, Base.STRING, Base.ANY, Base.NODE)
"""Types whose values are the same where they are equal."""

_FAILS = -2
"""In the same place: with which error the run ends."""


class _Failed(Exception):
    """An expression failed, with the error of a number: DuckDB reports errors as text."""


_NUMBERED = re.compile(r"_Failed: number (\d+) of this run")


@dataclass(slots=True)
class _Piece:
    """One expression."""

    inputs: tuple[Input, ...]
    evaluate: Evaluate
    type: Type
    source: ast.Expression
    volatile: bool
    exact: bool
    """Whether inputs that are equal are the same."""
    convert: tuple[list[Convert], Convert] | None = None
    """What makes the evaluator's values of its inputs, and SQL's of its value; made in the first row of a run."""


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
        context.view = self._view = _View(context)
        connection = context.connection
        self._connection = connection
        self._calls = connection.calls
        self._number = self._calls.enter(self)
        self._compiler = Compiler(context)
        self._pieces: list[_Piece] = []
        self._results: list[dict[Any, Any]] = []
        self._errors: list[Exception] = []
        self._limits = limits()
        """Those of the statement: DuckDB asks on threads of its own."""
        instead = ", or UNWIND the lists: their items then come one after the other"
        self._lists = ChunkWatch(items, "lists of {:,} items together", instead)
        self._texts = ChunkWatch(items * _CHARACTERS, "texts of {:,} characters together")
        self._values: Keys = {}
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
        scope: Scope = {f"#{i}": static_of(input) for i, input in enumerate(inputs)}
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
            type = type_of_clock(node) or sql_type_of(static)
            if type is DATE and not inputs and not _is_sql_date(evaluate):
                type = ANY
        elif element:
            evaluate = self._element(evaluate, source, type)
        elif type.base is Base.LIST:
            evaluate = _items(evaluate)
        if mixed:
            type = MIXED if type == ANY else list_of(MIXED) if type == list_of(ANY) else type
        exact = all(input.type.base in _EXACT and input.read == "value" for input in inputs)
        self._pieces.append(_Piece(tuple(inputs), evaluate, type, source, volatile, exact))
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

    def over_rows(self) -> Callable[[arrow.Table], arrow.Table]:
        """See :meth:`graphdb.sql.computing.Computing.over_rows`."""
        number = len(self._pieces) - 1
        inputs = self._pieces[number].inputs

        def compute(rows: arrow.Table) -> arrow.Table:
            columns = [rows.column(f"c{i}") for i in range(len(inputs))]
            values, failed = self._answer(number, columns, rows.num_rows)
            return arrow.table({"value": values, "failed": failed})

        return compute

    def fails(self, type: Type, failed: str) -> str:
        """See :meth:`graphdb.sql.computing.Computing.fails`."""
        return self._call(_FAILS, sql_type(type), [failed])

    def fits(self, items: str, *, volatile: bool) -> str:
        """See :meth:`graphdb.sql.computing.Computing.fits`."""
        return self._call(_FITS, "BOOLEAN", [items], volatile)

    def _call(self, piece: int, wanted: str, columns: Sequence[str], volatile: bool = False) -> str:
        with self._connection.guard() as raw:
            given = _GIVEN.get(wanted, wanted)
            name = self._calls.function(raw, given, volatile, self._connection.transactions.inside)
        call = f"{name}({', '.join([str(self._number), str(piece), *columns])})"
        return (
            f"(DATE '1970-01-01' + {call})"
            if wanted == "DATE"
            else f"CAST({call} AS {wanted})"
            if given != wanted
            else call
        )

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
        found = Applied(function, given, yields, used, self._context.of_run, self._reader, self._writer)
        found.check()
        return found

    def sources(self) -> list[str]:
        """Return the expressions as they were written."""
        spans = [piece.source.span for piece in self._pieces]
        return list(dict.fromkeys(" ".join(self._context.text[span.start : span.end].split()) for span in spans))

    # --- while it runs

    @contextmanager
    def run(self, known: Keys | None = None) -> Iterator[Callable[[bytes], Any]]:
        """See :meth:`graphdb.sql.computing.Computing.run`."""
        self._results = [{} for _ in self._pieces]
        self._errors, self._values = [], {} if known is None else known
        self._limits = limits()
        self._lists.begin()
        self._texts.begin()
        for piece in self._pieces:
            piece.convert = None
        self._context.started = time.time_ns()
        self._context.subqueries.forget()
        values = self._values
        try:
            yield values.__getitem__
        except ExecutionError as error:
            check_stop()  # says whether the time was over
            raise self.own(error) from None
        finally:
            self._results, self._values = [{} for _ in self._pieces], {}
            for piece in self._pieces:
                piece.convert = None
            self._view.forget()

    def own(self, error: ExecutionError) -> Exception:
        """Return the error of Python's that DuckDB reports, as it was raised here; any other as it is.

        DuckDB may compute an expression ahead, and drop the error if no row turns out to need the value: which error it
        reports is known by a number.
        """
        found = _NUMBERED.search(error.message)
        return error if found is None else self._errors[int(found[1])]

    def answer(self, asked: int, *given: Any) -> Any:
        """Return an expression's value for a row; ``asked`` says which it is."""
        try:
            if asked >= 0:
                if self._connection.must_stop:
                    raise QueryInterrupted("the statement was interrupted")
                with under(self._limits):
                    found = self._of_row(asked, given)
                if isinstance(found, list):
                    self._lists.add(len(found))
                elif isinstance(found, str):
                    self._texts.add(len(found))
                return found
            if asked == _FITS:
                self._lists.add(given[0])
                return True
            if given[0] is None:
                return None
            raise self._errors[given[0]]
        except Exception as error:  # it is known by its number: DuckDB reports errors as text
            self._errors.append(error)
            raise _Failed(f"number {len(self._errors) - 1} of this run") from None

    def _of_row(self, number: int, given: tuple[Any, ...]) -> Any:
        piece, known = self._pieces[number], self._results[number]
        key: Any = None
        if not piece.volatile:
            key = given if piece.exact else tuple(map(exactly, given))
            try:
                return known[key]
            except KeyError:
                pass
            except TypeError:  # a list is no key
                key = None
        if piece.convert is None:
            piece.convert = (
                [self._reader(input) for input in piece.inputs],
                _given(piece.type, self._writer(piece.type)),
            )
        readers, write = piece.convert
        row = {f"#{i}": read(value) for i, (read, value) in enumerate(zip(readers, given, strict=True))}
        with self._view.closed():
            found = write(piece.evaluate(row))
        if key is not None and len(known) < _REMEMBERED:
            known[key] = found
        return found

    def _answer(self, number: int, columns: list[arrow.ChunkedArray], rows: int) -> tuple[arrow.Array, arrow.Array]:
        """Return an expression's values, and the numbers of the errors of those that there are not.

        No SQL runs meanwhile: all vertices among its inputs are looked up at once, and it goes on after an error.
        """
        piece, known = self._pieces[number], self._results[number]
        inputs, of_row = every_row(columns) if piece.volatile else distinct_rows(columns, rows)
        readers, write = [self._reader(input) for input in piece.inputs], self._writer(piece.type)
        for read, values in zip(readers, inputs, strict=True):
            self._view.expect(map(read, values))
        results: list[Any] = []
        failed: list[int | None] = []
        listed = 0
        given_rows = zip(*inputs, strict=True) if inputs else [()] * (rows if piece.volatile else 1)
        for given in checked(given_rows, _UNCHECKED):
            key = tuple(map(exactly, given))
            failed.append(None)
            try:
                results.append(known[key])
                continue
            except (KeyError, TypeError):  # a list is no key
                pass
            row = {f"#{i}": read(value) for i, (read, value) in enumerate(zip(readers, given, strict=True))}
            try:
                found = write(piece.evaluate(row))
            except GraphDBError as error:
                if isinstance(error, QueryTimeout | MemoryLimitError):
                    raise
                results.append(None)
                failed[-1] = len(self._errors)
                self._errors.append(error)
                continue
            results.append(found)
            if isinstance(found, list):
                listed += len(found)
                self._lists.check(listed)
            if len(known) < _REMEMBERED and not piece.volatile and not any(isinstance(value, list) for value in given):
                with suppress(TypeError):  # a list inside
                    known[key] = found
        arrays = array_of(results, piece.type), arrow.array(failed, arrow.INT64)
        return arrays if of_row is None else (arrays[0].take(of_row), arrays[1].take(of_row))

    def _reader(self, input: Input) -> Convert:
        """Return what makes the evaluator's value of an input's."""
        return reader_of(input, self._values, self._view)

    def _writer(self, type: Type) -> Convert:
        """Return what makes the value that SQL holds of the evaluator's."""
        return writer(type, self._values, self._context.valued)


def _given(type: Type, write: Convert) -> Convert:
    """Return what makes the value that Python gives DuckDB of the evaluator's (:data:`_GIVEN`)."""
    match sql_type(type):
        case "DOUBLE":
            return lambda value: None if value is None else repr(write(value))
        case "DOUBLE[]":
            return lambda value: None if value is None else [None if x is None else repr(x) for x in write(value)]
    return write


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


def _items(evaluate: Evaluate) -> Evaluate:
    """Return the function to the items that UNWIND makes rows of."""

    def items(row: dict[str, Any]) -> Any:
        value = evaluate(row)
        return value if value is None else list(value) if isinstance(value, list) else [value]

    return items


def _is_sql_date(evaluate: Evaluate) -> bool:
    """Whether SQL holds the date that an expression of constants yields; of one that fails, it holds all."""
    try:
        value = evaluate({})
    except GraphDBError:
        return True
    return not isinstance(value, Date) or is_sql_date(value)

"""Rows that Python makes of the rows of a relation, as tables that SQL joins with them: paths, and a procedure's rows.

What a row gives to a search are the ends that are known, the edges that are taken already, and whatever the conditions
within the path look at.  The rows are distinct, so each search runs once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphdb.common import arrow
from graphdb.common.errors import TypeMismatchError
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.common.values.types import INTEGER, Type
from graphdb.evaluate.columns.codec import Convert, array_of
from graphdb.evaluate.context import Context, Row
from graphdb.evaluate.export import Exporter
from graphdb.evaluate.expressions import Compiler
from graphdb.evaluate.paths.search import Search
from graphdb.evaluate.values import Edge, Path, Vertex, type_name
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.paths.search import Differing, PathSearch
from graphdb.plan.executor import Control
from graphdb.procedures.registry import Call
from graphdb.sql.computing import Input

_BLOCK = 10_000
"""Rows of a table that is handed on."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What makes rows of rows, what it takes, and what it yields; see :meth:`graphdb.sql.computing.Computing.applied`.

    Attributes
    ----------
    context_of
        Makes the context of a run, given who makes its controls.
    reader_of, writer_of
        What makes an evaluator's value of a column's, and a value as SQL holds it.
    """

    function: PathSearch | Differing | Call
    given: Mapping[str, Input]
    yields: Mapping[str, Type]
    used: Sequence[str]
    context_of: Callable[[Callable[[], Control]], Context]
    reader_of: Callable[[Input], Convert]
    writer_of: Callable[[Type], Convert]

    def check(self) -> None:
        """Raise what is wrong with the pattern."""
        self._function(self.context_of(Control))

    def tables(self, rows: arrow.Table, new_control: Callable[[], Control]) -> Iterator[arrow.Table]:
        """Yield what is made: the number ``g`` of the row that it is made of, and ``c0`` …, the columns in order."""
        context = self.context_of(new_control)
        function = self._function(context)
        readers = [self.reader_of(input) for input in self.given.values()]
        writers = {name: self.writer_of(type) for name, type in self.yields.items()}
        columns = [arrow.pylist(rows.column(f"c{i}")) for i in range(len(readers))]
        found: list[list[Any]] = []
        for number, *values in context.watched(zip(arrow.pylist(rows.column("g")), *columns, strict=True)):
            row = {name: read(value) for name, read, value in zip(self.given, readers, values, strict=True)}
            for new in function(row):
                found.append([number, *(write(new[name]) for name, write in writers.items())])
                if len(found) == _BLOCK:
                    context.check(new_control())
                    yield self.table(found)
                    found.clear()
        yield self.table(found)

    def table(self, rows: Sequence[Sequence[Any]] = ()) -> arrow.Table:
        """Return rows as a table of the columns ``g`` and ``c0`` …."""
        types = {"g": INTEGER, **{f"c{i}": type for i, type in enumerate(self.yields.values())}}
        columns = list(zip(*rows, strict=True)) or [()] * len(types)
        return arrow.table(list(map(array_of, columns, types.values())), list(types))

    def _function(self, context: Context) -> Callable[[Row], Iterable[Row]]:
        """Return the function from a row to the rows that are made of it."""
        match self.function:
            case Differing() as differing:
                return lambda row: [row] if _differs(context, differing, row) else []
            case PathSearch() as search:
                return self._paths(context, search)
        return self._calls(context, self.function)

    def _calls(self, context: Context, call: Call) -> Callable[[Row], Iterator[Row]]:
        place = ast.Variable(call.clause.name, call.clause.named)
        exporter, control = Exporter(context), context.new_control()

        def rows(row: Row) -> Iterator[Row]:
            values = [exporter.value(row[name]) for name in self.given]
            answer = context.procedures.answer(call, values, context.snapshot, lambda: context.check(control))
            if not call.procedure.signature.columns:
                yield {}
                return
            columns = [[context.given(each, place) for each in answer.values(number)] for number, _ in call.yields]
            yield from (dict(zip(self.yields, new, strict=True)) for new in zip(*columns, strict=True))

        return rows

    def _paths(self, context: Context, pattern: PathSearch) -> Callable[[Row], Iterator[Row]]:
        search = Search(context, Compiler(context), pattern)
        left, right = pattern.names[0], pattern.names[-1]
        known = [name for name in pattern.variables if pattern.renamed(name) in self.yields]
        for name in known:
            search.rename(name, pattern.renamed(name))
        search.prepare({*self.given}, left not in self.given)

        def paths(row: Row) -> Iterator[Row]:
            for name in known:
                _check_edges(context, pattern, name, row[name])
            row["#used"] = tuple(edge for name in self.used for edge in _edges(row[name]))
            for new in search.run(row, left, right, pattern.edges_differ):
                if pattern.inner in self.yields:
                    elements = search.elements(new[pattern.key], new.get(search.places))
                    new[pattern.inner] = [vertex for name, vertex in elements.items() if name not in pattern.outer]
                yield new

        return paths


def _check_edges(context: Context, pattern: PathSearch, name: str, value: Any) -> None:
    """Refuse a value from before that is neither null nor what the pattern takes it for."""
    if value is None or isinstance(value, (Edge, list)):
        return
    edges = (part for part in walk(pattern.edges) if isinstance(part, ast.EdgePattern))
    variable = next(edge.variable for edge in edges if edge.variable is not None and edge.variable.name == name)
    raise TypeMismatchError(
        f"'{name}' is {type_name(value)}, not an edge", text=context.text, position=variable.span.start
    )


def _edges(value: Any) -> Sequence[Edge]:
    return value.edges if isinstance(value, Path) else () if value is None else (value,)


def _differs(context: Context, pattern: Differing, row: Row) -> bool:
    """Whether a match's vertices differ, those within paths too, and for INDUCED no edge between them is left out."""
    vertices = [row[name] for name in pattern.vertices]
    vertices += itertools.chain.from_iterable(row[name] for name in pattern.inner)
    if len({*vertices}) < len(vertices) or None in vertices:  # null, by OPTIONAL MATCH, is no vertex
        return False
    if not pattern.induced:
        return True
    edges = [edge for name in pattern.edges for edge in _edges(row[name])]
    between = {edge for edge in edges if edge.label != context.type_label and edge.end < LITERAL_BASE}
    return {*_between(context, [vertex for vertex in vertices if vertex.id < LITERAL_BASE])} == between


def _between(context: Context, vertices: list[Vertex]) -> Iterator[Edge]:
    """Yield all edges between some vertices, those that a pattern without a label takes."""
    partition = context.snapshot.graph.partition(None, "out")
    places = context.vertices([vertex.id for vertex in vertices]).tolist()
    for (start, here), (end, there) in itertools.product(zip(vertices, places, strict=True), repeat=2):
        for code in partition.codes_of(here, there).tolist():
            yield from context.view.parallel(code >> 1, start.id, end.id)

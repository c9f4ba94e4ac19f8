"""Paths for rows of a relation: those that a search finds from each row's vertices, as tables that SQL joins with them.

What a row gives are the ends that are known, the edges that are taken already, and whatever the conditions within the
path look at.  The rows are distinct, so each search runs once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphdb.common.errors import TypeMismatchError
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.common.values.types import CODE_BITS, Base, Type
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.interpret.context import Context, Row
from graphdb.interpret.evaluate import Compiler
from graphdb.interpret.search import Search
from graphdb.interpret.values import Edge, Path, Vertex, type_name
from graphdb.pattern.path_search import Differing, PathSearch
from graphdb.plan.executor import Control
from graphdb.sql.computing import Input

if TYPE_CHECKING:
    import pyarrow as pa
_BLOCK = 10_000
"""Rows of a table that is handed on."""


@dataclass(frozen=True, slots=True)
class Traversal:
    """A search, and what it takes from rows and yields; see :meth:`graphdb.sql.computing.Computing.traversal`.

    Attributes
    ----------
    context_of
        Makes the context of a run, given who makes its controls.
    reader_of
        Returns what makes an evaluator's value of a column's.
    """

    pattern: PathSearch | Differing
    given: Mapping[str, Input]
    used: Sequence[str]
    yields: Mapping[str, Type]
    context_of: Callable[[Callable[[], Control]], Context]
    reader_of: Callable[[Input], Callable[[Any], Any]]

    def check(self) -> None:
        """Raise what is wrong with the pattern."""
        self._function(self.context_of(Control))

    def tables(self, rows: pa.Table, new_control: Callable[[], Control]) -> Iterator[pa.Table]:
        """Yield what is found: the number ``g`` of the row that it is for, and ``c0`` …, the columns in order."""
        context = self.context_of(new_control)
        function = self._function(context)
        readers = [self.reader_of(input) for input in self.given.values()]
        columns = [rows.column(f"c{i}").to_pylist() for i in range(len(readers))]
        found: list[list[Any]] = []
        for number, *values in context.watched(zip(rows.column("g").to_pylist(), *columns, strict=True)):
            row = {name: read(value) for name, read, value in zip(self.given, readers, values, strict=True)}
            for new in function(row):
                found.append([number, *map(_held, map(new.__getitem__, self.yields), self.yields.values())])
                if len(found) == _BLOCK:
                    context.check(new_control())
                    yield self.table(found)
                    found.clear()
        yield self.table(found)

    def table(self, rows: Sequence[Sequence[Any]] = ()) -> pa.Table:
        """Return rows as a table of the columns ``g`` and ``c0`` …."""
        import pyarrow as pa

        types = {"g": pa.int64(), **{f"c{i}": _arrow_type(type) for i, type in enumerate(self.yields.values())}}
        columns = list(zip(*rows, strict=True)) or [()] * len(types)
        arrays = [pa.array(column, type) for column, type in zip(columns, types.values(), strict=True)]
        return pa.table(arrays, list(types))

    def _function(self, context: Context) -> Callable[[Row], Iterator[Row]]:
        """Return the function from a row to the rows that are made of it."""
        pattern = self.pattern
        if isinstance(pattern, Differing):
            return lambda row: iter([row] if _differs(context, pattern, row) else ())
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
    if len({*vertices}) < len(vertices):
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


# --- values as SQL holds them


def _held(value: Any, type: Type) -> Any:
    if value is None:
        return None
    match type.base:
        case Base.LIST:
            assert type.element is not None
            return [_held(item, type.element) for item in value]
        case Base.EDGE:
            return {"label": value.label, "start": value.start, "end": value.end, "ordinal": value.ordinal}
        case Base.PATH:
            codes = [_code(edge, before) for edge, before in zip(value.edges, value.vertices, strict=False)]
            return {"vertices": [vertex.id for vertex in value.vertices], "codes": codes}
    return value.id


def _code(edge: Edge, before: Vertex) -> int:
    """Return the code of a path's edge (see :mod:`graphdb.common.values.types`)."""
    return edge.ordinal << CODE_BITS | edge.label << 1 | (edge.start != before.id)


def _arrow_type(type: Type) -> pa.DataType:
    import pyarrow as pa

    match type.base:
        case Base.LIST:
            assert type.element is not None
            return pa.list_(_arrow_type(type.element))
        case Base.EDGE:
            return pa.struct([(part, pa.int64()) for part in ("label", "start", "end", "ordinal")])
        case Base.PATH:
            return pa.struct([(part, pa.list_(pa.int64())) for part in ("vertices", "codes")])
    return pa.int64()

"""Reading row by row: vertices that keys find, for clauses that write to a handful of them.

``MATCH (p:Person {id: $id})`` before a CREATE names a vertex by a label and a value of a property that an index knows.
To plan that as a match, and to hand its one row on through SQL, takes most of a millisecond for each clause; here the
index is asked for each row, the values come from the evaluator, and rows stay Python's.  MATCH and OPTIONAL MATCH of
single vertices are read so, UNWIND of a handful of values, and WITH that passes variables on or collects them.  All
else is for SQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.common.caches import ByIdentity
from graphdb.common.values.types import ANY, BOOLEAN, INTEGER, NODE, STRING, Base, Type, list_of
from graphdb.evaluate.context import Row
from graphdb.evaluate.values import Vertex
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import conjuncts
from graphdb.pattern.free import SUBQUERIES, free_variables
from graphdb.pattern.names import ABSENT, Names
from graphdb.relational.filtering.column_filters import asked_values
from graphdb.storage.arrays.sorted_sets import both, unique
from graphdb.storage.catalog import EdgeLabel
from graphdb.writing.by_row.row_writer import RowWriter
from graphdb.writing.stages import Stage

Ids: TypeAlias = NDArray[np.int64]

_PLAIN = {int: INTEGER, str: STRING, bool: BOOLEAN, Vertex: NODE}
"""Types of items, all of one class."""

_NODES = list_of(NODE)

_PASSED = (Base.NODE, Base.EDGE, Base.INTEGER, Base.STRING, Base.BOOLEAN)
"""Types of values that are the same in Python and in a column."""


@dataclass(frozen=True, slots=True)
class _Key:
    """A property that has a value, or one of a list."""

    key: ast.KeyName
    value: ast.Expression
    listed: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """A vertex that labels and keys find."""

    name: str
    labels: ast.LabelChain
    keys: tuple[_Key, ...]
    optional: bool
    needs: frozenset[str]
    """Variables that the values of the keys name."""


@dataclass(frozen=True, slots=True)
class _Unwound:
    """The items of a list that is a parameter, or written out."""

    name: str
    source: ast.Expression
    needs: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Passed:
    """What WITH makes of rows: the names of variables and what they become, and those of lists of them."""

    variables: tuple[tuple[str, str], ...]
    lists: tuple[tuple[str, str], ...]
    needs: frozenset[str]


_Clause: TypeAlias = "_Found | _Unwound | _Passed"

_NO_IDS: Ids = np.empty(0, np.int64)

_KNOWN: ByIdentity[tuple[tuple[_Clause, ...] | None]] = ByIdentity(256)
"""What stages consist of; None for what is for SQL."""


_MERGED: ByIdentity[tuple[_Found | None]] = ByIdentity(256)
"""How nodes of MERGE are found; None for what is for SQL."""


class RowReader:
    """Reads for one statement.

    Parameters
    ----------
    writer
        Who knows what waits to be written, and computes values of rows.
    most
        Rows that are read so.
    """

    def __init__(self, writer: RowWriter, most: int) -> None:
        self._writer = writer
        self._context = writer.context
        self._most = most

    def read(
        self, stage: Stage, rows: Sequence[Row], types: Mapping[str, Type], *, stay: bool
    ) -> tuple[list[Row], dict[str, Type]] | None:
        """Return the rows that a stage reads, which starts from some, with the types of their names.

        None where they are for SQL.  What waits is written first where the keys or labels asked for are among it.
        Where the rows ``stay`` in Python, values may be of any type.
        """
        ((clauses),) = _KNOWN.get_or_make(stage, lambda: (_clauses_of(stage),))
        if clauses is None or self._context.view.deleted:
            return None
        if not all(type is NODE or type.base in _PASSED or type is _NODES or type == _NODES for type in types.values()):
            return None
        found, types = list(rows), dict(types)
        for clause in clauses:
            match clause:
                case _Passed():
                    made = self._passed(clause, found, types)
                case _Unwound():
                    made = self._unwound(clause, found, types)
                case _:
                    made = self._found(clause, found, types)
            if made is None or len(made[0]) >= self._most:
                return None
            found, types = made
        return (found, types) if stay or ANY not in types.values() else None

    def _unwound(
        self, clause: _Unwound, rows: list[Row], types: dict[str, Type]
    ) -> tuple[list[Row], dict[str, Type]] | None:
        """Return each row once for each item of its list."""
        if clause.name in types or not types.keys() >= clause.needs or self._length(clause.source) >= self._most:
            return None
        items_of, made = self._writer.value(clause.source), list[Row]()
        for row in rows:
            found = items_of(row)
            items = found if isinstance(found, list) else () if found is None else (found,)
            if len(made) + len(items) >= self._most:
                return None
            made += [{**row, clause.name: item} for item in items]
        kinds = {type(row[clause.name]) for row in made}
        return made, {**types, clause.name: _PLAIN.get(kinds.pop(), ANY) if len(kinds) == 1 else ANY}

    def _length(self, source: ast.Expression) -> int:
        """Return how many items a list has that is written out, or a parameter."""
        match source:
            case ast.Parameter(name):
                given: object = self._context.arguments.get(name)
            case ast.ListLiteral(items):
                given = items
            case _:
                given = getattr(source, "value", None)
        return len(given) if isinstance(given, list | tuple) else 1

    def _found(
        self, clause: _Found, rows: list[Row], types: dict[str, Type]
    ) -> tuple[list[Row], dict[str, Type]] | None:
        """Return each row once for each vertex that is found for it."""
        if clause.name in types or not types.keys() >= clause.needs:
            return None
        ids = self._ids(clause, rows)
        if ids is None:
            return None
        made: list[Row] = []
        for row, found in zip(rows, ids, strict=True):
            vertices: list[Vertex | None] = [*map(Vertex, found.tolist())]
            made += [{**row, clause.name: vertex} for vertex in vertices or [None][: clause.optional]]
        return made, {**types, clause.name: NODE}

    def vertices(self, node: ast.NodePattern, rows: Sequence[Row]) -> list[list[Vertex]] | None:
        """Return the vertices that a node of a pattern of MERGE finds for each row; None where they are for SQL."""
        (clause,) = _MERGED.get_or_make(node, lambda: (_merged_of(node),))
        if clause is None or self._context.view.deleted or not all(row.keys() >= clause.needs for row in rows):
            return None
        ids = self._ids(clause, rows)
        return None if ids is None else [[*map(Vertex, found.tolist())] for found in ids]

    def _ids(self, clause: _Found, rows: Sequence[Row]) -> list[Ids] | None:
        """Return the vertices that are found for each row; None where no index tells."""
        stored = self._context.stored
        resolved = self._resolved(clause, stored.names)
        if resolved is None:
            return None
        labels, properties = resolved
        keys = [stored.names.edge_labels[each] for each in properties]
        if not all(map(stored.keys.tells, keys)):
            return None
        if self._writer.pending.may_change(set().union(*labels), properties):
            self._writer.flush()
            return self._ids(clause, rows)
        made: list[Ids] = []
        for row in rows:
            sets = []
            for key, each in zip(keys, clause.keys, strict=True):
                value = self._writer.value(each.value)(row)
                found = self._with_values(key, value if each.listed else [value]) if _is_list(value, each) else None
                if found is None:
                    return None
                sets.append(unique(found) if len(found) > 1 else found)  # resources, whose ids vertices have
            ids = reduce(both, sets)
            for under in labels:
                parts = [stored.graph.members_among(ids, each) for each in under]
                ids = parts[0] if len(parts) == 1 else unique(np.concatenate(parts))
            if len(ids) >= self._most:
                return None
            made.append(ids)
        return made

    def _resolved(self, clause: _Found, names: Names) -> tuple[list[tuple[int, ...]], list[int]] | None:
        """Return the labels that a clause names, each with those that it stands for, and the properties that are keys.

        None where there is none of that name.
        """
        known: tuple[list[tuple[int, ...]], list[int]] | None = names.resolved.get(clause)
        if known is None:
            text = self._context.text
            labels = [names.vertex_label(words, text).id for words in names.chains(clause.labels.words)]
            keys = [names.property(each.key.words, text).id for each in clause.keys]
            if ABSENT in labels or ABSENT in keys:
                return None
            known = names.resolved.put(clause, ([names.under(label) for label in labels], keys))
        return known

    def _with_values(self, key: EdgeLabel, values: Sequence[object]) -> Ids | None:
        """Return the resources of which a property has one of some values; None where no index tells.

        What is found need not be read where the clause asks for the property.
        """
        keys = self._context.stored.keys
        if key.max_values > 1 or not keys.are_in_memory(key):
            return keys.find(key, values)
        found: list[Ids] = []
        for value in values:
            ids = keys.find(key, [value])
            if ids is None:
                return None
            if keys.is_stored(key, value):
                self._context.view.has_value(ids.tolist(), key.id, value)
            found.append(ids)
        return found[0] if len(found) == 1 else np.concatenate([_NO_IDS, *found])

    def _passed(
        self, clause: _Passed, rows: list[Row], types: dict[str, Type]
    ) -> tuple[list[Row], dict[str, Type]] | None:
        """Return the rows with other names, or a row for each group of them."""
        variables, lists = clause.variables, clause.lists
        if not types.keys() >= clause.needs or not all(types[name] is NODE or types[name] == NODE for name, _ in lists):
            return None
        passed = {alias: types[name] for name, alias in variables}
        passed.update([(alias, _NODES) for _, alias in lists])
        if not lists:
            return [{alias: row[name] for name, alias in variables} for row in rows], passed
        if rows and all(row[name] is rows[0][name] for name, _ in variables for row in rows):  # as one row made them
            group: Row = {alias: rows[0][name] for name, alias in variables}
            for name, alias in lists:
                group[alias] = [row[name] for row in rows if row[name] is not None]
            return [group], passed
        made = [{alias: row[name] for name, alias in variables} for row in rows]
        key_of = self._context.group_key
        groups: dict[tuple[object, ...], Row] = {}
        if not variables:
            groups[()] = {alias: [] for _, alias in lists}
        for row, own in zip(rows, made, strict=True):
            empty: Row = {alias: [] for _, alias in lists}
            group = groups.setdefault(tuple(map(key_of, own.values())), {**own, **empty})
            for name, alias in lists:
                if row[name] is not None:
                    group[alias].append(row[name])
        return [*groups.values()], passed


def found_by_keys(stage: Stage) -> bool:
    """Whether the rows of a stage are found by keys, where an index knows these and they are a handful."""
    ((clauses),) = _KNOWN.get_or_make(stage, lambda: (_clauses_of(stage),))
    return clauses is not None and not any(isinstance(each, _Unwound) for each in clauses)


def _is_list(value: object, of: _Key) -> bool:
    return isinstance(value, list) or not of.listed


def _clauses_of(stage: Stage) -> tuple[_Clause, ...] | None:
    """Return what a stage reads; None for what is for SQL."""
    found: list[_Clause] = []
    if stage.asked or not stage.reads:
        return None
    for clause in stage.reads:
        made = _clause_of(clause)
        if made is None:
            return None
        found += made
    return tuple(found)


def _clause_of(clause: ast.ClauseNode) -> list[_Clause] | None:
    match clause:
        case ast.MatchClause(patterns, ast.MatchMode.DIFFERENT_EDGES, optional=optional):
            if any(pattern.edges or pattern.variable or pattern.selector for pattern in patterns):
                return None
            nodes = [pattern.nodes[0] for pattern in patterns]
            if optional and len(nodes) > 1:
                return None
            conditions = list(conjuncts(clause.where))
            found = [_found_of(node, conditions, optional=optional) for node in nodes]
            made = [each for each in found if each is not None]
            names = {each.name for each in made}
            return [*made] if len(names) == len(nodes) and not conditions else None
        case ast.UnwindClause(ast.Parameter() | ast.ListLiteral() | ast.Literal() as source, variable):
            if any(isinstance(part, SUBQUERIES) for part in walk(source)):
                return None
            return [_Unwound(variable.name, source, frozenset(free_variables(source)))]
        case ast.WithClause(returns, None):
            return _passed_of(returns)
    return None


def _found_of(node: ast.NodePattern, conditions: list[ast.Expression], *, optional: bool) -> _Found | None:
    """Return how a node is found; the conditions that it takes are taken out of those given."""
    if node.variable is None:
        return None
    return _named(node, node.variable.name, conditions, optional=optional)


def _merged_of(node: ast.NodePattern) -> _Found | None:
    """Return how a node of a pattern of MERGE is found."""
    return _named(node, "" if node.variable is None else node.variable.name, [], optional=False)


def _named(node: ast.NodePattern, name: str, conditions: list[ast.Expression], *, optional: bool) -> _Found | None:
    """Return how a node is found whose variable is this one, or has none."""
    if not isinstance(node.labels, ast.LabelChain):
        return None
    if node.iri is not None or node.where is not None or node.given is not None:
        return None
    items = node.properties.items if node.properties is not None else ()
    keys = [_Key(key, value, listed=False) for key, value in items]
    for condition in [*conditions]:
        found = _key_of(name, condition)
        if found is not None:
            keys.append(found)
            conditions.remove(condition)
    if not keys or any(isinstance(part, SUBQUERIES) for each in keys for part in walk(each.value)):
        return None
    needs = frozenset(free_variables(tuple(each.value for each in keys)))
    return _Found(name, node.labels, tuple(keys), optional, needs)


def _key_of(name: str, condition: ast.Expression) -> _Key | None:
    """Return the property of a vertex that must be a value, which the vertex has no part in."""
    for key, value, listed in asked_values(name, condition):
        if name not in free_variables(value):
            return _Key(key, value, listed)
    return None


def _passed_of(returns: ast.ReturnClause) -> list[_Clause] | None:
    if returns.star or returns.distinct or returns.order_by or returns.skip or returns.limit:
        return None
    variables, lists = [], []
    for item in returns.items:
        alias = item.alias or item.text
        match item.expression:
            case ast.Variable(name):
                variables.append((name, alias))
            case ast.FunctionCall(function, (ast.Variable(name),), distinct=False) if function.lower() == "collect":
                lists.append((name, alias))
            case _:
                return None
    needs = frozenset(name for name, _ in (*variables, *lists))
    return [_Passed(tuple(variables), tuple(lists), needs)]

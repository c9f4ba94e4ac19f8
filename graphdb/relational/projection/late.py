"""What of the properties that a clause names is gathered by arrays, beside its SQL.

Properties that SQL needs of vertices in the bindings of a match (in conditions, keys of order and of groups,
aggregates) are columns of these bindings, gathered as they arrive (:class:`BesideBindings`).  Properties that nothing
but the result needs are gathered for its rows (:class:`~graphdb.relational.projection.arrays.Late`), after conditions,
order and LIMIT: late materialization.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from graphdb.common.stopping import checked
from graphdb.common.values.types import BOOLEAN, EXACT_ONLY, Base, Type, single_kind
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import BoundPattern
from graphdb.pattern.free import free_variables
from graphdb.relational.projection.arrays import Beside, Direct, Late
from graphdb.relational.projection.described import Described, aspect_of
from graphdb.relational.projection.relation import Relation
from graphdb.relational.projection.sql import Compiled
from graphdb.relational.snapshot import Snapshot
from graphdb.semantics.aggregation import contains_aggregate
from graphdb.sql.parameters import Parameters
from graphdb.sql.value import SqlValue, column
from graphdb.storage.catalog import EdgeLabel


class BesideBindings:
    """The properties that SQL over the bindings of one match was found to need: columns beside the vertices.

    Their names begin with ``prefix``, and no other column's does.
    """

    def __init__(self, snapshot: Snapshot, prefix: str = "p") -> None:
        self._snapshot = snapshot
        self._prefix = prefix
        self._found: dict[tuple[str, int | tuple[int, ...] | Described], Beside] = {}

    @property
    def columns(self) -> tuple[Beside, ...]:
        """The columns, in the order in which they were asked for."""
        return tuple(self._found.values())

    def add(self, column: str, label: EdgeLabel) -> str | None:
        """Return the name of the column with a property of the vertices in a column; None where it is to be joined."""
        found = self._found.get((column, label.id))
        if found is None:
            if not self._snapshot.properties.in_memory(label):
                return None
            found = self._found[column, label.id] = Beside(f"{self._prefix}{len(self._found)}", column, label)
        return found.name

    def add_label(self, column: str, classes: tuple[int, ...]) -> str:
        """Return the name of the column that says whether the vertices in a column have one of some labels."""
        found = self._found.get((column, classes))
        if found is None:
            found = self._found[column, classes] = Beside(f"{self._prefix}{len(self._found)}", column, None, classes)
        return found.name

    def add_described(self, column: str, by: Described) -> str:
        """Return the name of the column with the bits of the names that describe the vertices in a column."""
        found = self._found.get((column, by))
        if found is None:
            name = f"{self._prefix}{len(self._found)}"
            found = self._found[column, by] = Beside(name, column, None, described=by)
        return found.name

    def known(
        self, wanted: Iterable[Gathered], vertices: Mapping[str, SqlValue], text: str
    ) -> dict[ast.Expression, SqlValue]:
        """Return those of some properties and labels, of vertices in columns, that become columns beside these."""
        found: dict[ast.Expression, SqlValue] = {}
        for expression in wanted:
            if isinstance(expression, ast.LabelPredicate):
                if (name := self._label(expression, vertices, text)) is not None:
                    found[expression] = column(name, BOOLEAN)
                continue
            late = late_property(expression, vertices, self._snapshot, text)
            if late is not None and late[0].column is not None:
                name = self.add(late[0].column, late[1])
                if name is not None:
                    found[expression] = column(name, self._snapshot.properties.type_of(late[1]))
        return found

    def _label(self, node: ast.LabelPredicate, vertices: Mapping[str, SqlValue], text: str) -> str | None:
        """Return the name of the column that says whether vertices in another have a label; None if more is asked."""
        vertex = vertices.get(node.operand.name) if isinstance(node.operand, ast.Variable) else None
        names, labels = self._snapshot.names, node.labels
        if vertex is None or vertex.type.base is not Base.NODE or vertex.column is None:
            return None
        if self._snapshot.deleted is not None or not isinstance(labels, ast.LabelChain):
            return None
        chains = names.chains(labels.words)
        if len(chains) > 1:
            return None
        return self.add_label(vertex.column, names.under(names.vertex_label(chains[0], text).id))


Gathered = ast.Property | ast.LabelPredicate
"""What of vertices in the bindings of a match may be a column beside them."""


def gathered_in(node: object) -> list[Gathered]:
    """Return the properties and labels that a piece of syntax asks for."""
    return [part for part in walk(node) if isinstance(part, Gathered)]


def needed_first(clauses: Sequence[ast.ClauseNode]) -> list[Gathered]:
    """Return the properties and labels that clauses need of the rows before them, as far as their names reach.

    What only the result needs is none of them; what a clause with LIMIT returns is needed of the rows that are left.
    """
    parts: list[object] = []
    for clause in clauses:
        if not isinstance(clause, ast.WithClause | ast.ReturnClause):
            parts.append(clause)
            continue
        returns = clause.returns if isinstance(clause, ast.WithClause) else clause
        expressions = [item.expression for item in returns.items]
        if returns.distinct or any(map(contains_aggregate, expressions)):
            parts.append(clause)
            break
        parts.append(returns.order_by)
        named = set(named_in(returns.order_by, returns.items))
        last = isinstance(clause, ast.ReturnClause)
        for i, expression in enumerate(expressions):
            if i in named or (returns.limit is None and not (last and isinstance(expression, ast.Property))):
                parts.append(expression)
        break
    return list(dict.fromkeys(gathered_in(tuple(parts))))


def named_in(order_by: Sequence[ast.OrderItem], items: Sequence[ast.ReturnItem]) -> list[int]:
    """Return the numbers of the items that rows are ordered by, by their names or as they are."""
    names, keys = free_variables(tuple(order_by)), [order.expression for order in order_by]
    return [i for i, item in enumerate(items) if item.alias in names or item.expression in keys]


def late_property(
    expression: ast.Expression, variables: Mapping[str, SqlValue], snapshot: Snapshot, text: str, *, last: bool = False
) -> tuple[SqlValue, EdgeLabel] | None:
    """Return a vertex and the property of it that an expression is, where that is a column in memory.

    ``last`` says that nothing is computed of it any more: it may be of several types.
    """
    if not isinstance(expression, ast.Property) or not isinstance(expression.base, ast.Variable):
        return None
    vertex = variables.get(expression.base.name)
    if vertex is None or vertex.type.base is not Base.NODE or snapshot.deleted is not None:
        return None
    label = snapshot.names.property(expression.key.words, text)
    there = snapshot.properties.gathers if last else snapshot.properties.in_columns
    return (vertex, label) if label.kinds and there(label) else None


def late_items(
    items: Sequence[ast.ReturnItem], needed: Collection[int], relation: Relation, snapshot: Snapshot, text: str
) -> dict[int, tuple[SqlValue, EdgeLabel]]:
    """Return the items that are gathered after SQL, by their numbers: vertices, and properties of them.

    ``needed`` are the numbers of those that SQL needs itself.
    """
    found = {}
    for i, item in enumerate(checked(items)):
        if i not in needed and item.expression not in relation.known:
            late = late_property(item.expression, relation.variables, snapshot, text, last=True)
            if late is not None:
                found[i] = late
    return found


def late_projection(
    given: Sequence[Compiled], late: Mapping[int, tuple[SqlValue, EdgeLabel]], rest: str, parameters: Parameters
) -> Late:
    """Return a clause with vertices in place of the properties that are gathered after its SQL.

    ``rest`` is the SQL after the columns.
    """
    columns = (late[i][0].sql if i in late else value.sql for i, (_, value) in enumerate(given))
    sql = f"SELECT {', '.join(f'{column} AS c{i}' for i, column in enumerate(columns))}{rest}"
    return Late(sql, parameters.used(sql), {i: label for i, (_, label) in late.items()})


def direct_columns(
    bound: BoundPattern,
    items: tuple[ast.ReturnItem, ...],
    known: Mapping[ast.Expression, SqlValue],
    snapshot: Snapshot,
    text: str,
) -> tuple[Direct, ...] | None:
    """Return items as columns of the bindings and properties of single values; None if there are others."""
    found = [_direct(item.expression, bound, known, snapshot, text) for item in checked(items)]
    return tuple(each[0] for each in found if each is not None) if found and None not in found else None


def _direct(
    expression: ast.Expression,
    bound: BoundPattern,
    known: Mapping[ast.Expression, SqlValue],
    snapshot: Snapshot,
    text: str,
) -> tuple[Direct, Type | None] | None:
    """Return an expression as a column, and the type of what may stand beside it in a ``coalesce``; None for others."""
    if aspect_of(expression) is not None:  # a column beside the bindings, or none
        return None
    value = known.get(expression)
    if value is not None and value.column is not None:
        return Direct(value.column), value.type
    if isinstance(expression, ast.FunctionCall) and expression.name.lower() == "coalesce" and expression.arguments:
        found = [_direct(argument, bound, known, snapshot, text) for argument in expression.arguments]
        parts = [each for each in found if each is not None]
        if len(parts) < len(found) or parts[0][1] is None or any(type != parts[0][1] for _, type in parts):
            return None
        (first, type), others = parts[0], tuple(other for other, _ in parts[1:])
        return (replace(first, otherwise=others), type) if not first.otherwise else None
    base = expression.base if isinstance(expression, ast.Property) else expression
    if not isinstance(base, ast.Variable) or base.name not in bound.vertex_of:
        return None
    number = bound.vertex_of[base.name]
    info = bound.vertices[number]
    if info.kinds:
        of_sql = not (info.resource or info.kinds & EXACT_ONLY)
        kind = single_kind(info.kinds) if of_sql else None
        return None if kind is None or base is not expression else (Direct(f"v{number}", kind=kind), None)
    if not isinstance(expression, ast.Property):
        return Direct(f"v{number}"), None
    label = snapshot.names.property(expression.key.words, text)
    if not snapshot.properties.gathers(label):
        return None
    type = snapshot.properties.type_of(label)
    return Direct(f"v{number}", label), None if type.base in (Base.VALUE, Base.LIST) else type

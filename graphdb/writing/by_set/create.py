"""CREATE by sets: row ``at`` makes its vertices and edges with numbers that follow from ``at``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from graphdb.common.values.types import EDGE, NODE, NULL
from graphdb.grammar import syntax as ast
from graphdb.sql.value import SqlValue, column
from graphdb.storage.updates.apply import TRIPLE_KEY, edges_of, numbered, properties_of
from graphdb.writing.items import RowByRow
from graphdb.writing.joining import elements_of
from graphdb.writing.literals import written
from graphdb.writing.materialized import Materialized
from graphdb.writing.stages import Stage
from graphdb.writing.work import LITERAL, Work, union_all


@dataclass(frozen=True, slots=True)
class _Edge:
    """An edge that each row makes."""

    pattern: ast.EdgePattern
    start: str
    end: str
    """SQL of its ends."""
    alone: bool
    """Whether it is sure to be the only one of its label between them."""


class Create:
    """One CREATE clause over rows."""

    def __init__(self, work: Work, stage: Stage, rows: Materialized) -> None:
        assert isinstance(stage.write, ast.CreateClause)
        self._work = work
        self._clause = stage.write
        self._stage = stage
        self._rows = rows
        self._values = dict(rows.values)
        self._created: list[tuple[ast.NodePattern, str]] = []
        self._edges: list[_Edge] = []

    @staticmethod
    def check(stage: Stage, values: Mapping[str, SqlValue]) -> None:
        """Raise :class:`RowByRow` where the types of what is known of each row say so."""
        assert isinstance(stage.write, ast.CreateClause)
        for number in range(len(stage.computed)):
            written(values[f"#{number}"])
        for element in elements_of(stage.write):
            variable = element.variable
            if isinstance(element, ast.NodePattern) and element.iri is not None:
                raise RowByRow("a vertex with an IRI of its own")
            if variable is not None and variable.name in values and values[variable.name].type != NODE:
                raise RowByRow("an edge needs a vertex")

    def refuse(self) -> None:
        """Raise :class:`RowByRow` where the rows say so."""
        values = [(v, written(v)) for name, v in self._values.items() if name.startswith("#")]
        self._work.refuse_unwritten(self._rows.source, values)
        ends = [self._values[name].sql for name in self._ends()]
        self._work.refuse_rows(self._rows.source, [f"{sql} IS NULL" for sql in ends], "an edge needs a vertex")

    def run(self) -> Materialized:
        """Create everything; return the rows with what they made."""
        work, source, rows = self._work, self._rows.source, self._rows.count
        if not rows:
            return Materialized(source, 0, named(self._clause, self._values))
        work.naming.read(self._clause)
        self._number()
        type, hidden = work.hidden
        added = []
        for pattern, id in self._created:
            labels = work.naming.labels(pattern.labels)
            added += [
                f"SELECT {type}::BIGINT AS label, {id} AS subject, {c}::BIGINT AS object FROM {source} b"
                for c in (hidden, *labels)
            ]
            work.changes.labels_added += rows * len(labels)
        made = self._make_edges()
        facts = self._facts(made is not None)
        if facts is not None:
            added.append(
                f"SELECT v.key AS label, v.owner AS subject, l.value AS object FROM {facts[0]} v JOIN {facts[1]} l"
                f" ON {LITERAL} WHERE NOT v.edge"
            )
        if made is not None:
            added.append(f"SELECT {TRIPLE_KEY} FROM {made}")
        work.changes.vertices_created += rows * len(self._created)
        work.changes.edges_created += rows * len(self._edges)
        work.changes.properties_set += rows * len(self._stage.computed)
        touched, edges, properties = (None, None, None) if made is None else self._rows_of_edges(made, facts)
        table = work.tables.make(union_all(added)) if added else None
        work.update.apply(None, table, touched, edges, properties)
        work.flushed()
        return self._named(made)

    def _ends(self) -> set[str]:
        """Return the names of vertices that are there already."""
        variables = [node.variable for pattern in self._clause.patterns for node in pattern.nodes]
        return {v.name for v in variables if v is not None and v.name in self._rows.values}

    def _number(self) -> None:
        """Give every element of the patterns its number in each row."""
        new = {id(node) for pattern, nodes in self._nodes() for node in nodes}
        per_row = len(new)
        first = self._work.update.vertices(per_row * self._rows.count).start if per_row else 0
        pairs: list[tuple[object, ...]] = []
        fresh: set[str] = set()
        drafts: list[tuple[ast.EdgePattern, str, str, tuple[object, ...]]] = []
        for pattern in self._clause.patterns:
            ends = []
            for node in pattern.nodes:
                if id(node) not in new:
                    assert node.variable is not None
                    ends.append(self._values[node.variable.name].sql)
                    continue
                sql = f"({first} + b.at * {per_row} + {len(self._created)})"
                self._created.append((node, sql))
                fresh.add(sql)
                ends.append(sql)
                if node.variable is not None:
                    self._values[node.variable.name] = SqlValue(sql, NODE)
            for i, edge in enumerate(pattern.edges):
                assert isinstance(edge, ast.EdgePattern)
                start, end = (ends[i + 1], ends[i]) if edge.direction is ast.Direction.IN else (ends[i], ends[i + 1])
                pair = (self._work.naming.edge_label(edge.labels), start, end)
                pairs.append(pair)
                drafts.append((edge, start, end, pair))
        self._edges = [
            _Edge(edge, start, end, pairs.count(pair) == 1 and (start in fresh or end in fresh))
            for edge, start, end, pair in drafts
        ]

    def _nodes(self) -> Iterator[tuple[ast.PathPattern, list[ast.NodePattern]]]:
        """Yield the nodes of each pattern that are to be made: those whose name is not there yet."""
        known = set(self._values)
        for pattern in self._clause.patterns:
            made = []
            for node in pattern.nodes:
                if node.variable is not None:
                    if node.variable.name in known:
                        continue
                    known.add(node.variable.name)
                made.append(node)
            yield pattern, made

    def _facts(self, edges: bool) -> tuple[str, str] | None:
        """Return the tables of all values (``owner``, ``edge``, ``key``, a literal) and of their numbers."""
        selects = []
        owners: list[tuple[ast.NodePattern | ast.EdgePattern, str, str]] = [(p, id, "FALSE") for p, id in self._created]
        numbers = f"b.at * {len(self._edges)}"
        owners += [(edge.pattern, f"({numbers} + {i})", "TRUE") for i, edge in enumerate(self._edges)]
        for pattern, owner, is_edge in owners:
            last = {self._work.naming.key(key): node for key, node in _items(pattern)}
            for key, node in last.items():
                value = self._values[self._stage.name_of(node)]
                if value.type == NULL:
                    continue
                text = written(value)
                selects.append(
                    f"SELECT {owner} AS owner, {is_edge} AS edge, {key}::BIGINT AS key, {text.lexical} AS lexical,"
                    f" {text.datatype} AS datatype FROM {self._rows.source} b WHERE {value.sql} IS NOT NULL"
                )
        if not selects:
            return None
        values = self._work.tables.make(union_all(selects))
        return values, self._work.literals(values)

    def _make_edges(self) -> str | None:
        """Return the table of the edges: ``row``, the triple, ``ordinal``, and whether it is ``described``."""
        if not self._edges:
            return None
        selects = []
        for i, edge in enumerate(self._edges):
            label = self._work.naming.edge_label(edge.pattern.labels)
            described = "TRUE" if edge.pattern.properties is not None else "FALSE"
            selects.append(
                f"SELECT b.at * {len(self._edges)} + {i} AS row, CAST({label} AS BIGINT) AS label,"
                f" {edge.start} AS subject, {edge.end} AS object, {described} AS described, 0::BIGINT AS ordinal"
                f" FROM {self._rows.source} b"
            )
        table = self._work.tables.make(union_all(selects))
        if all(edge.alone for edge in self._edges):
            return table
        return self._work.tables.make(f"FROM {numbered(f'(SELECT * EXCLUDE ordinal FROM {table})')}")

    def _rows_of_edges(self, made: str, facts: tuple[str, str] | None) -> tuple[str | None, str | None, str | None]:
        """Return what :meth:`Update.apply` wants to know of edges with properties, or beside others."""
        make = self._work.tables.make
        described = any(edge.pattern.properties is not None for edge in self._edges)
        alone = all(edge.alone for edge in self._edges)
        if alone and not described:
            return None, None, None
        touched = make(f"SELECT DISTINCT {TRIPLE_KEY} FROM {made} WHERE described OR ordinal > 0")
        if not self._work.tables.count(touched):
            return None, None, None
        edges = f"SELECT {TRIPLE_KEY}, ordinal FROM {made} SEMI JOIN {touched} USING ({TRIPLE_KEY})"
        properties = []
        if facts is not None:
            properties.append(
                f"SELECT e.label, e.subject, e.object, e.ordinal, v.key, l.value FROM {facts[0]} v"
                f" JOIN {facts[1]} l ON {LITERAL} JOIN {made} e ON e.row = v.owner WHERE v.edge"
            )
        if not alone:
            edges += f" UNION ALL SELECT {TRIPLE_KEY}, ordinal FROM {edges_of(touched)}"
            properties.append(f"SELECT {TRIPLE_KEY}, ordinal, key, value FROM {properties_of(touched)}")
        return (None if alone else touched), make(edges), make(union_all(properties)) if properties else None

    def _named(self, made: str | None) -> Materialized:
        """Return the rows with what was made of them, where later clauses name it."""
        later = self._stage.later
        if not later:
            return Materialized(self._rows.source, self._rows.count)
        values = {name: value for name, value in self._values.items() if not name.startswith("#")}
        joins = ""
        for i, edge in enumerate(self._edges):
            if edge.pattern.variable is None:
                continue
            ordinal = "0::BIGINT"
            if not edge.alone:
                joins += f" JOIN {made} e{i} ON e{i}.row = b.at * {len(self._edges)} + {i}"
                ordinal = f"e{i}.ordinal"
            label = self._work.naming.edge_label(edge.pattern.labels)
            values[edge.pattern.variable.name] = SqlValue(_edge_sql(label, edge.start, edge.end, ordinal), EDGE)
        chosen = "".join(f", {value.sql} AS w{i}" for i, value in enumerate(values.values()))
        source = self._work.tables.rows(f"SELECT b.at{chosen} FROM {self._rows.source} b{joins} ORDER BY b.at ASC")
        named = {name: column(f"w{i}", value.type, many=value.many) for i, (name, value) in enumerate(values.items())}
        return Materialized(source, self._rows.count, named)


def named(clause: ast.CreateClause, values: Mapping[str, SqlValue]) -> dict[str, SqlValue]:
    """Return what is known of rows after a CREATE of which there are none: they name what none has made."""
    found = dict(values)
    for element in elements_of(clause):
        if element.variable is not None and element.variable.name not in found:
            type = NODE if isinstance(element, ast.NodePattern) else EDGE
            null = "CAST(NULL AS BIGINT)" if type is NODE else _edge_sql("NULL", "NULL", "NULL", "NULL")
            found[element.variable.name] = SqlValue(null, type)
    return found


def _edge_sql(label: object, start: str, end: str, ordinal: str) -> str:
    ends = f'"start" := CAST({start} AS BIGINT), "end" := CAST({end} AS BIGINT)'
    return f"struct_pack(label := CAST({label} AS BIGINT), {ends}, ordinal := {ordinal})"


def _items(pattern: ast.NodePattern | ast.EdgePattern) -> tuple[tuple[ast.KeyName, ast.Expression], ...]:
    return pattern.properties.items if pattern.properties is not None else ()

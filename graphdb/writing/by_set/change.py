"""SET and REMOVE by sets: of all values that rows give to one property, the last one stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from graphdb.common.values.terms import LITERAL_BASE
from graphdb.common.values.types import NULL, Base
from graphdb.grammar import syntax as ast
from graphdb.sql.types import maps
from graphdb.sql.value import SqlValue
from graphdb.storage.updates.apply import EDGE_KEY, TRIPLE_KEY, edges_of, properties_of
from graphdb.writing.items import RowByRow, assigned, reads_of, target_of
from graphdb.writing.literals import written
from graphdb.writing.materialized import Materialized
from graphdb.writing.naming import key_named
from graphdb.writing.stages import Stage
from graphdb.writing.work import LITERAL, NO_TEXT, Work, union_all

Item = ast.SetItem | ast.LabelItem | ast.Expression


@dataclass(frozen=True, slots=True)
class _Assignment:
    """What each row says a property of its ``target`` is: ``value``, or nothing."""

    target: SqlValue
    key: ast.KeyName | None
    """None for all properties of the vertex or edge that ``value`` is, as they are written."""
    value: SqlValue
    sparse: bool = False
    """Whether a row with null says nothing of it."""


def _items(stage: Stage) -> tuple[Item, ...]:
    assert isinstance(stage.write, (ast.SetClause, ast.RemoveClause))
    return stage.write.items


class Change:
    """One SET or REMOVE clause over rows."""

    def __init__(self, work: Work, stage: Stage, rows: Materialized) -> None:
        self._work = work
        self._stage = stage
        self._rows = rows

    @staticmethod
    def check(stage: Stage, values: Mapping[str, SqlValue]) -> None:
        """Raise :class:`RowByRow` where the types of what is known of each row say so."""
        for item in _items(stage):
            target = target_of(item)
            if values[target.name].type.base not in (Base.NODE, Base.EDGE, Base.NULL):
                raise RowByRow(f"what is changed is {values[target.name].type}")
        assignments = list(_assignments(stage, values))
        for assignment in assignments:
            if assignment.key is not None:
                written(assignment.value)
        if any(map(_clears, _items(stage))) and len(_items(stage)) > 1:
            raise RowByRow("all properties are set beside others")

    def run(self) -> Materialized:
        """Change everything; return the rows."""
        work, rows = self._work, self._rows
        if rows.count:
            assignments = list(_assignments(self._stage, rows.values))
            assert self._stage.write is not None
            work.naming.read(self._stage.write)
            self._labels()
            for base in (Base.NODE, Base.EDGE):
                mine = [each for each in assignments if each.target.type.base is base]
                cleared = [rows.values[target_of(i).name] for i in _items(self._stage) if _clears(i)]
                cleared = [target for target in cleared if target.type.base is base]
                if mine or cleared:
                    (self._vertices if base is Base.NODE else self._edges)(mine, cleared)
            work.flushed()
        return rows.without([name for name in rows.values if name.startswith("#")])

    def refuse(self) -> None:
        """Raise :class:`RowByRow` for rows with values that SQL does not write, or that read what one before writes."""
        source, values = self._rows.source, self._rows.values
        assignments = list(_assignments(self._stage, values))
        self._work.refuse_unwritten(
            source, [(each.value, written(each.value)) for each in assignments if each.key is not None]
        )
        maps_of = [
            (values[target_of(item).name], values[self._stage.name_of(item.value)])
            for item in _items(self._stage)
            if isinstance(item, ast.SetItem)
            and not isinstance(item.target, ast.Property)
            and not isinstance(item.value, ast.MapLiteral)
        ]
        tests = [f"({target.sql} IS NOT NULL AND {value.sql} IS NULL)" for target, value in maps_of]
        self._work.refuse_rows(source, tests, "a map of properties is null")
        if not isinstance(self._stage.write, ast.SetClause):
            return
        if any(each.sparse for each in assignments) and any(map(_clears, _items(self._stage))):
            (own,) = {each.target.sql for each in assignments}
            twice = f"SELECT 1 FROM {source} b WHERE {own} IS NOT NULL GROUP BY {own} HAVING count(*) > 1 LIMIT 1"
            if self._work.context.connection.rows(twice):
                raise RowByRow("some rows take away what rows before them have set")
        for read in set(reads_of(self._stage.write)):
            reader, target = values.get(read.variable), values[read.target]
            if reader is None or reader.type.base is not target.type.base:
                continue
            before = "g.at < b.at" if read.writer >= read.reader else "g.at <= b.at"
            first = f"(SELECT {target.sql} AS id, min(b.at) AS at FROM {source} b GROUP BY ALL)"
            if self._work.context.connection.rows(
                f"SELECT 1 FROM {source} b JOIN {first} g ON g.id = {reader.sql} WHERE {before} LIMIT 1"
            ):
                raise RowByRow("some rows read what rows before them have set")

    # --- labels

    def _labels(self) -> None:
        work, changed = self._work, []
        nodes = []
        for item in _items(self._stage):
            target = self._rows.values[target_of(item).name]
            if isinstance(item, ast.LabelItem) and target.type.base is Base.NODE:
                nodes.append(target)
                changed += [
                    f"SELECT {target.sql} AS subject, {label}::BIGINT AS object FROM {self._rows.source} b"
                    f" WHERE {target.sql} IS NOT NULL"
                    for label in work.naming.labels(item.labels)
                ]
        if not changed:
            return
        type, hidden = work.hidden
        there = f"(SELECT subject, object FROM _graphdb.triple WHERE label = {type})"
        adds = isinstance(self._stage.write, ast.SetClause)
        join = "ANTI JOIN" if adds else "SEMI JOIN"
        table = work.tables.make(
            f"SELECT DISTINCT {type}::BIGINT AS label, subject, object FROM ({union_all(changed)}) {join} {there}"
            " USING (subject, object)"
        )
        count = work.tables.count(table)
        if adds:
            work.changes.labels_added += count
            work.update.apply(None, table)
            return
        work.changes.labels_removed += count
        keep = [
            f"SELECT {type}::BIGINT AS label, {target.sql} AS subject, {hidden}::BIGINT AS object"
            f" FROM {self._rows.source} b WHERE {target.sql} IS NOT NULL"
            for target in nodes
        ]
        work.update.apply(table, work.tables.make(union_all(keep)))

    # --- properties

    def _written(self, assignments: list[_Assignment], owner: str, columns: str) -> tuple[str, str]:
        """Return the tables of what properties are in the end, and of the numbers of these literals.

        The first has the ``columns`` of their owner (``owner`` says how a row yields them, from ``t``), ``key``,
        ``lexical`` and ``datatype``, or the ``value`` that is a literal already; NULL where a property goes.
        """
        work, selects = self._work, []
        for i, each in enumerate(assignments):
            seq = f"b.at * {len(assignments)} + {i} AS seq, {owner.format(t=each.target.sql)}"
            if each.key is None:
                selects.append(
                    f"SELECT {seq}, f.key, {NO_TEXT} AS lexical, {NO_TEXT} AS datatype, f.value"
                    f" FROM {self._rows.source} b JOIN {_facts(each.value)} WHERE {each.target.sql} IS NOT NULL"
                )
                continue
            text = written(each.value)
            null = each.value.type == NULL
            selects.append(
                f"SELECT {seq}, {work.naming.key(each.key)}::BIGINT AS key, {NO_TEXT if null else text.lexical} AS"
                f" lexical, {NO_TEXT if null else text.datatype} AS datatype, NULL::BIGINT AS value"
                f" FROM {self._rows.source} b"
                f" WHERE {each.target.sql} IS NOT NULL{f' AND {each.value.sql} IS NOT NULL' if each.sparse else ''}"
            )
        rows = work.tables.make(union_all(selects))
        work.changes.properties_set += work.tables.number(f"SELECT count(DISTINCT (seq, key)) FROM {rows}")
        last = f"SELECT key, max(seq) AS seq FROM {rows} GROUP BY {columns}, key"
        table = work.tables.make(
            f"SELECT {columns}, key, lexical, datatype, value FROM {rows} SEMI JOIN ({last}) USING (seq, key)"
        )
        return table, work.literals(table)

    def _vertices(self, assignments: list[_Assignment], cleared: list[SqlValue]) -> None:
        work = self._work
        type, hidden = work.hidden
        added, removed, rows = [], [], None
        if assignments:
            rows, literals = self._written(assignments, "{t} AS subject", "subject")
            new = work.tables.make(
                f"SELECT v.subject, v.key AS label, coalesce(v.value, l.value) AS object FROM {rows} v"
                f" LEFT JOIN {literals} l ON {LITERAL}"
            )
            removed.append(
                f"SELECT {TRIPLE_KEY} FROM _graphdb.triple SEMI JOIN {new} USING (label, subject)"
                f" ANTI JOIN {new} USING (label, subject, object) WHERE object >= {LITERAL_BASE}"
            )
            added.append(f"SELECT {TRIPLE_KEY} FROM {new} WHERE object IS NOT NULL")
            added.append(
                f"SELECT {type}::BIGINT AS label, subject, {hidden}::BIGINT AS object FROM {new} WHERE object IS NULL"
            )
        for target in cleared:
            given = f" ANTI JOIN {rows} n ON n.subject = t.subject AND n.key = t.label" if rows is not None else ""
            gone = work.tables.make(
                f"SELECT t.* FROM (SELECT {TRIPLE_KEY} FROM _graphdb.triple"
                f" SEMI JOIN (SELECT {target.sql} AS subject FROM {self._rows.source} b) USING (subject)"
                f" WHERE object >= {LITERAL_BASE}) t{given}"
            )
            work.changes.properties_set += work.tables.count(f"(SELECT DISTINCT label, subject FROM {gone})")
            removed.append(f"FROM {gone}")
            added.append(f"SELECT {type}::BIGINT AS label, subject, {hidden}::BIGINT AS object FROM {gone}")
        make = work.tables.make
        work.update.apply(make(union_all(removed)), make(union_all(added)))

    def _edges(self, assignments: list[_Assignment], cleared: list[SqlValue]) -> None:
        work, make = self._work, self._work.tables.make
        owner = '({t}).label AS label, ({t})."start" AS subject, ({t})."end" AS object, ({t}).ordinal AS ordinal'
        targets = {each.target.sql for each in assignments} | {target.sql for target in cleared}
        touched = make(
            "SELECT DISTINCT label, subject, object FROM ("
            + union_all(
                [
                    f"SELECT {owner.format(t=t)} FROM {self._rows.source} b WHERE {t} IS NOT NULL"
                    for t in sorted(targets)
                ]
            )
            + ")"
        )
        left, come, rows = f"SELECT p.* FROM {properties_of(touched)} p", [], None
        if assignments:
            rows, literals = self._written(assignments, owner, EDGE_KEY)
            left += f" ANTI JOIN {rows} n USING ({EDGE_KEY}, key)"
            come.append(
                f"SELECT {EDGE_KEY}, key, coalesce(v.value, l.value) AS value FROM {rows} v"
                f" LEFT JOIN {literals} l ON {LITERAL}"
            )
        for target in cleared:
            given = f" ANTI JOIN {rows} n USING ({EDGE_KEY}, key)" if rows is not None else ""
            mine = f"(SELECT {owner.format(t=target.sql)} FROM {self._rows.source} b)"
            gone = make(f"SELECT p.* FROM {properties_of(touched)} p SEMI JOIN {mine} m USING ({EDGE_KEY}){given}")
            work.changes.properties_set += work.tables.count(f"(SELECT DISTINCT {EDGE_KEY}, key FROM {gone})")
            left += f" ANTI JOIN {gone} g USING ({EDGE_KEY}, key)"
        properties = make(
            f"FROM ({union_all([f'SELECT {EDGE_KEY}, key, value FROM ({left})', *come])}) WHERE value IS NOT NULL"
        )
        work.update.apply(None, None, touched, make(f"FROM {edges_of(touched)}"), properties)


def _facts(element: SqlValue) -> str:
    """Return SQL for the properties of an element of each row: ``f``, with ``key`` and ``value``, and the condition."""
    if element.type.base is Base.NODE:
        owned = f"(SELECT subject, label AS key, object AS value FROM _graphdb.triple WHERE object >= {LITERAL_BASE})"
        return f"{owned} f ON f.subject = {element.sql}"
    ends = (("label", "label"), ("subject", '"start"'), ("object", '"end"'), ("ordinal", "ordinal"))
    return "_graphdb.edge_property f ON " + " AND ".join(f"f.{name} = ({element.sql}).{field}" for name, field in ends)


def _clears(item: Item) -> bool:
    """Whether an item takes all properties away that it does not give."""
    return isinstance(item, ast.SetItem) and not item.add and not isinstance(item.target, ast.Property)


def _assignments(stage: Stage, values: Mapping[str, SqlValue]) -> Iterator[_Assignment]:
    """Yield what the items of a clause set, one property after the other."""
    for item in _items(stage):
        if isinstance(item, ast.LabelItem):
            continue
        target = values[target_of(item).name]
        if not isinstance(item, ast.SetItem):
            if not isinstance(item, ast.Property):
                raise RowByRow("an expression yields the key of what is removed")
            yield _Assignment(target, item.key, SqlValue("NULL", NULL))
            continue
        for key, node in assigned(item):
            value = values[stage.name_of(node)]
            if key is not None or value.type.base in (Base.NODE, Base.EDGE):
                yield _Assignment(target, key, value, sparse=key is None)
                continue
            if value.type.base is not Base.MAP:
                raise RowByRow(f"all properties are set by {value.type}")
            for name, _ in value.type.fields:
                sparse = value.type.sparse and name not in value.type.certain
                yield _Assignment(target, key_named(name, node), maps.entry(value, name), sparse)

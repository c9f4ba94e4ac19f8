"""MERGE by sets: rows that match go on with what they found, the others make each thing that they ask for once.

What a row asks for is the vertices that the pattern knows already and the values of its properties.  Of the rows that
find nothing and ask for the same, the first makes it and the others find it; so nothing has to be looked for twice.
ON CREATE and ON MATCH are stages of their own, each over its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from graphdb.common.errors import ExecutionError
from graphdb.common.values.numeric_keys import key_of_union
from graphdb.common.values.types import BOOLEAN, EDGE, INTEGER, MEMBERS, NODE, NUMERIC, Base, Type
from graphdb.grammar import syntax as ast
from graphdb.pattern.free import free_variables
from graphdb.relational.projection.relation import Relation, Source
from graphdb.sql.types.narrowing import EXACT
from graphdb.sql.value import SqlValue, column, member, number
from graphdb.writing.by_set.create import Create
from graphdb.writing.by_set.merging import AT, MADE, apart, asking_by, either_way, matching
from graphdb.writing.items import RowByRow, target_of
from graphdb.writing.joining import elements_of
from graphdb.writing.materialized import Materialized, of_elements
from graphdb.writing.stages import Stage, creation
from graphdb.writing.work import Work, union_all

_KEYS = {Base.STRING, Base.INTEGER, Base.FLOAT, Base.BOOLEAN, Base.DATE, Base.DATETIME, Base.TIME, Base.NULL}
"""Types whose values SQL groups as MERGE tells them apart."""


class Merge:
    """One MERGE clause over rows, but for what it sets."""

    def __init__(self, work: Work, stage: Stage, rows: Materialized) -> None:
        assert isinstance(stage.write, ast.MergeClause)
        self._work = work
        self._clause = stage.write
        self._create = creation(stage.write)
        self._stage = stage
        self._rows = rows
        names = [e.variable.name for e in elements_of(self._create) if e.variable is not None]
        self._new = [name for name in dict.fromkeys(names) if name not in rows.values]
        """What the pattern names first."""
        self._bound = [name for name in dict.fromkeys(names) if name in rows.values]

    @staticmethod
    def check(stage: Stage, values: Mapping[str, SqlValue]) -> None:
        """Raise :class:`RowByRow` where the types of what is known of each row say so."""
        clause = stage.write
        assert isinstance(clause, ast.MergeClause)
        Create.check(replace(stage, write=creation(clause)), values)
        for i in range(len(stage.computed)):
            value = values[f"#{i}"]
            if value.type.base not in _KEYS | {Base.VALUE}:
                raise RowByRow(f"what is merged is asked for by {value.type}")
        known = {name for name, value in values.items() if of_elements(value.type)}
        if not apart(clause, values, known, partial(_keys, values)):
            raise RowByRow("a row may find what another has made")
        for item in clause.on_create if clause.on_match else ():
            if target_of(item).name in values:
                raise RowByRow("ON CREATE sets what ON MATCH may set")
        sets = (*clause.on_create, *clause.on_match)
        if sets and free_variables(stage.computed) & known:
            raise RowByRow("MERGE may set the properties that it asks for")
        if clause.on_create and clause.on_match and free_variables(clause.on_create) & known:
            raise RowByRow("ON CREATE reads what ON MATCH may set")

    def refuse(self) -> None:
        """Raise :class:`RowByRow` where the rows, or what they match, say so."""
        self._refuse_nulls()
        self._rows = replace(self._rows, values={**self._rows.values, **self._unions()})
        create = Create(self._work, replace(self._stage, write=self._create), self._rows)
        create.refuse()
        self._found = self._matches()

    def run(self) -> Materialized:
        """Make what was not found; return the rows."""
        found = self._found
        work, make, source = self._work, self._work.tables.make, self._rows.source
        asked = [self._rows.values[name].sql for name in self._bound]
        if either_way(self._clause, self._rows.values) is not None:
            asked = [f"{extreme}({', '.join(asked)})" for extreme in ("least", "greatest")]
        for value in (self._rows.values[f"#{i}"] for i in range(len(self._stage.computed))):
            asked.append(_grouped_by(value))
            if value.type.base is Base.FLOAT or Base.FLOAT in (value.bases or ()):  # no NaN equals another
                asked.append(f"CASE WHEN isnan({member(value, Base.FLOAT)}) THEN b.at END")
        over = f"PARTITION BY {', '.join(asked)}" if asked else ""
        missing = make(
            f"SELECT b.at AS row, min(b.at) OVER ({over}) AS first FROM {source} b"
            f" ANTI JOIN (SELECT {found.values[AT].sql} AS row FROM {found.source} b) f ON f.row = b.at"
        )
        firsts = work.tables.rows(
            f'SELECT row_number() OVER (ORDER BY b.at ASC) - 1 AS at, b.at AS first, b.* EXCLUDE "at" FROM {source} b'
            f" SEMI JOIN {missing} m ON m.row = b.at AND m.row = m.first"
        )
        stage = replace(self._stage, write=self._create, later=(self._clause, *self._stage.later))
        made = Create(work, stage, Materialized(firsts, work.tables.count(firsts), self._rows.values)).run()
        return self._together(found, missing, firsts, made)

    def _refuse_nulls(self) -> None:
        """Refuse to look for null: nothing equals it."""
        for element in elements_of(self._create):
            for key, node in element.properties.items if element.properties is not None else ():
                value = self._rows.values[self._stage.name_of(node)].sql
                if self._work.tables.count(f"(SELECT 1 FROM {self._rows.source} b WHERE {value} IS NULL LIMIT 1)"):
                    raise ExecutionError(
                        f"MERGE cannot look for a null '{key.text}': nothing equals null",
                        text=self._work.context.text,
                        position=key.span.start,
                    )

    def _unions(self) -> dict[str, SqlValue]:
        """Return what is asked for by values of several types, with those that the rows have."""
        found = {}
        for name, value in self._rows.values.items():
            if not name.startswith("#") or value.type.base is not Base.VALUE:
                continue
            tags = f"SELECT DISTINCT union_tag({value.sql}) FROM {self._rows.source} b"
            there = {tag for (tag,) in self._work.context.connection.rows(tags)}
            bases = frozenset(base for base, (tag, _) in MEMBERS.items() if tag in there)
            if not bases <= _KEYS:
                raise RowByRow(f"what is merged is asked for by {value.type}")
            if len(bases & NUMERIC) > 1:  # a float equals several large integers, which differ
                self._work.refuse_rows(
                    self._rows.source, [f"NOT abs({number(value)}) < {EXACT}"], "numbers of several types are too large"
                )
            found[name] = replace(value, bases=bases)
        return found

    def _matches(self) -> Materialized:
        """Return what the rows match, by the number of the row."""
        given = {id(node): f" #{i}" for i, node in enumerate(self._stage.computed)}
        start = {name.replace("#", " #"): value for name, value in self._rows.values.items()}
        pattern = asking_by(self._clause.pattern, lambda node: ast.Variable(given[id(node)], node.span))
        start[AT] = column("at", INTEGER)
        found = self._work.read(matching(pattern, [AT, *self._new]), Relation(self._rows.source, start))
        for name in self._new:
            if found.values[name].type not in (NODE, EDGE):
                raise RowByRow(f"what is merged is {found.values[name].type}")
        return found

    def _together(self, found: Materialized, missing: str, firsts: Source, made: Materialized) -> Materialized:
        """Return all rows, each with what it found or made, and which of it."""
        olds = [name for name in self._rows.values if not name.startswith("#")]
        names = [*olds, *self._new]

        def columns(rows: Materialized, chosen: list[str], extra: str) -> str:
            values = "".join(f", {rows.values[name].sql} AS w{names.index(name)}" for name in chosen)
            return f"(SELECT {extra}{values} FROM {rows.source} b)"

        chosen = "".join(f", w{i}" for i in range(len(names)))
        rows = columns(self._rows, olds, "b.at AS row")
        matched = columns(found, self._new, f"b.at AS part, {found.values[AT].sql} AS row")
        new = columns(made, self._new, "b.at AS number")
        both = union_all(
            [
                f"SELECT row, part, FALSE AS made{chosen} FROM {rows} JOIN {matched} USING (row)",
                f"SELECT row, 0 AS part, row = m.first AS made{chosen} FROM {rows} JOIN {missing} m USING (row)"
                f" JOIN {firsts} f ON f.first = m.first JOIN {new} ON number = f.at",
            ]
        )
        source = self._work.tables.rows(
            f"SELECT row_number() OVER (ORDER BY row ASC, part ASC) - 1 AS at, made{chosen} FROM ({both})"
            " ORDER BY row ASC, part ASC"
        )
        types = {**self._rows.values, **made.values}
        values = {name: column(f"w{i}", types[name].type, many=types[name].many) for i, name in enumerate(names)}
        return Materialized(source, self._work.tables.count(source), {**values, MADE: column("made", BOOLEAN)})


def _grouped_by(value: SqlValue) -> str:
    """Return SQL that is the same where values are equal."""
    several = value.type.base is Base.VALUE and len((value.bases or NUMERIC) & NUMERIC) > 1
    return key_of_union(value.sql, value.bases) if several else value.sql


def _keys(values: Mapping[str, SqlValue], node: ast.Expression) -> list[str] | None:
    """Return the keys of what must be a map, as far as its type tells them."""
    type = _type_of(values, node)
    return None if type is None or type.base is not Base.MAP else [name for name, _ in type.fields]


def _type_of(values: Mapping[str, SqlValue], node: ast.Expression) -> Type | None:
    match node:
        case ast.Variable():
            return values[node.name].type if node.name in values else None
        case ast.Property():
            base = _type_of(values, node.base)
            return None if base is None else dict(base.fields).get(node.key.text)
    return None

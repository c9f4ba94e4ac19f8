"""SQL over a relation: those of its rows that fulfil its conditions, with variables and expressions as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.errors import NotSupportedError
from graphdb.common.values.types import INTEGER, NODE, Base, Type, sql_type
from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import BoundPattern
from graphdb.relational.projection.columns.clauses import ClauseTranslator
from graphdb.relational.projection.columns.expressions import ExpressionTranslator
from graphdb.relational.projection.columns.values import ITEM
from graphdb.relational.projection.described import Described, asked, described, described_in
from graphdb.relational.projection.late import BesideBindings
from graphdb.relational.projection.relation import ORDER, VALUE, Relation, Source
from graphdb.relational.snapshot import Snapshot
from graphdb.sql.compiler import Compiler, Scope
from graphdb.sql.expressions import ExpressionCompiler
from graphdb.sql.from_clause import Rows
from graphdb.sql.parameters import Parameters
from graphdb.sql.types import lists, ranges
from graphdb.sql.udf import OverRows, computed_over_rows
from graphdb.sql.value import SqlValue, column


class RelationCompiler:
    """Writes SQL over a relation.

    Parameters
    ----------
    relation
        The rows that the clause is given.
    bound
        The pattern, where the relation is its bindings: what only names and counts them needs no SQL.
    parameters
        Those of the SQL that the relation is made by.
    beside
        Who adds properties to the relation's rows, where these are the bindings of a match.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        text: str,
        arguments: Mapping[str, object],
        relation: Relation,
        bound: BoundPattern | None = None,
        parameters: Parameters | None = None,
        beside: BesideBindings | None = None,
    ) -> None:
        self._beside = beside
        self._snapshot = snapshot
        self._text = text
        self._arguments = arguments
        self._relation = relation
        self._bound = bound
        self._parameters = Parameters() if parameters is None else parameters
        self._variables = relation.variables

    def relation(
        self,
        chosen: Callable[[Mapping[str, SqlValue]], Mapping[str, SqlValue]],
        expressions: Mapping[str, ast.Expression] = MappingProxyType({}),
    ) -> tuple[Source, dict[str, SqlValue]]:
        """Return the rows that fulfil the conditions, and what ``expressions`` are of each of these.

        ``chosen`` names columns over them; expressions are columns of their names, too.

        Raises
        ------
        NotSupportedError, TypeMismatchError
            An expression is not a value that SQL computes, and that cannot fail.
        """
        rows = self._rows(self._beside)
        compiler = self._compiler(rows, Scope(self._variables, self._relation.known))
        where = compiler.row_conditions(self._relation.where)
        values = {name: compiler.native(node) for name, node in expressions.items()}
        if any(
            value.many or value.can_fail or value.volatile or value.type.base is Base.ANY for value in values.values()
        ):
            raise NotSupportedError("what may fail is computed where it is asked for")
        named, relation = {**chosen(self._variables), **values}, self._relation
        columns = ", ".join(f"{value.sql} AS {quoted(name)}" for name, value in named.items())
        sql = f"SELECT {columns} FROM {relation.source} b {rows.joins}{where_sql(where)}"
        vectors = self._translator().columns(relation.source, relation.where, named, expressions)
        return Source.made(sql, relation.source, rows=vectors), values

    def select(
        self,
        names: Iterable[str],
        value: ast.Expression | None = None,
        unwound: ast.UnwindClause | None = None,
        types: Mapping[ast.Variable, Type] | None = None,
        known: Iterable[ast.Expression] = (),
        unless_empty: Source | None = None,
    ) -> tuple[str, Relation]:
        """Return the SQL of the rows that fulfil the conditions, and what they are over the alias ``b``.

        Parameters
        ----------
        names
            The variables to keep, in columns ``c0 …`` (and all known expressions, in ``k0 …``).
        value
            An expression that becomes the variable :data:`~graphdb.relational.projection.relation.VALUE`.
        unwound
            A list, each item of which makes a row.
        types
            Of what types variables have to be, of which only the data says what they are.
        known
            Expressions that become known ones.
        unless_empty
            Rows without which those expressions are null rather than computed.

        Raises
        ------
        NotSupportedError
            SQL does not know what the list's items are.
        """
        rows, relation = self._rows(self._beside), self._relation
        asked_first = self._with_names((relation.where, () if unwound is None else unwound.source))
        compiler = self._compiler(rows, Scope(self._variables, asked_first.known))
        where = compiler.row_conditions(relation.where)
        values = {name: relation.variables[name] for name in names}
        for variable, type in (types or {}).items():
            if values[variable.name].type.base is Base.NULL:
                values[variable.name] = SqlValue(f"CAST(NULL AS {sql_type(type)})", type)
            else:
                values[variable.name] = compiler.computed(variable, type)
        if value is not None:
            values[VALUE] = compiler.one_of_any(value)
        expressions = {**relation.known}
        for node in known:
            expressions[node] = found = compiler.one_of_any(node)
            if unless_empty is not None:
                guarded = f"CASE WHEN EXISTS (SELECT 1 FROM {unless_empty}) THEN {found.sql} END"
                expressions[node] = replace(found, sql=guarded, column=None)
        blocks = None if unwound is None else ranges.blocks(compiler, unwound.source)
        if unwound is not None and blocks is None:
            values[unwound.variable.name] = lists.items(compiler, unwound.source)
        shared = {name: values.pop(name) for name in [name for name, value in values.items() if value.shared]}
        chosen = [f"{value.sql} AS c{i}" for i, value in enumerate(values.values())]
        chosen += [f"{value.sql} AS k{i}" for i, value in enumerate(expressions.values())]
        if unwound is not None and blocks is not None:
            columns, numbers = blocks
            chosen += [f"{sql} AS {name}" for name, sql in columns.items()]
        sql = f"SELECT {', '.join(chosen) or '1 AS one'} FROM {relation.source} b {rows.joins}{where_sql(where)}"
        if unwound is not None and blocks is not None:
            sql = f"SELECT * EXCLUDE ({', '.join(columns)}), {numbers} AS c{len(values)} FROM ({sql})"
            values[unwound.variable.name] = column(f"c{len(values)}", INTEGER)
        made = shared | {name: value.at(f"c{i}") for i, (name, value) in enumerate(values.items())}
        made_known = {node: value.at(f"k{i}") for i, (node, value) in enumerate(expressions.items())}
        vectors, rows_before, conditions = None, relation.source, relation.where
        columns_of_rows = {f"c{i}": each for i, each in enumerate(values.values())}
        columns_of_rows |= {f"k{i}": each for i, each in enumerate(expressions.values())}
        if unwound is not None:
            item = values[unwound.variable.name]
            columns_of_rows[f"c{[*values].index(unwound.variable.name)}"] = column(ITEM, item.type, bases=item.bases)
            rows_before = self._translator().unwound(rows_before, conditions, unwound, item)
            conditions = ()
        if not types:
            asked = {f"k{i}": node for i, node in enumerate(expressions) if node not in relation.known}
            asked |= {} if value is None else {f"c{[*values].index(VALUE)}": value}
            vectors = self._translator().columns(rows_before, conditions, columns_of_rows, asked)
        source = Source.made(f"({sql})", relation.source, rows=vectors)
        return sql, Relation(source, made, (), made_known, grouped=relation.grouped)

    def computed(self, node: ast.Expression) -> tuple[str, OverRows]:
        """Return SQL of what an expression takes of each row, and how Python computes it.

        Its columns: the row's number, ``row``, and ``c0`` ….
        """
        rows = self._rows(self._beside)
        compiler = self._compiler(rows, Scope(self._variables, self._relation.known))
        found = computed_over_rows(compiler, node)
        chosen = "".join(f", {each.sql} AS c{i}" for i, each in enumerate(found.inputs))
        return f"SELECT b.rowid AS row{chosen} FROM {self._relation.source} b {rows.joins}", found

    def native(self, node: ast.Expression) -> tuple[SqlValue, str]:
        """Return what an expression is of each row, as SQL alone computes it, and the joins that it needs."""
        rows = self._rows()
        value = self._compiler(rows, Scope(self._variables, self._relation.known)).native(node)
        return value, rows.joins

    def _names_of(self, call: ast.Expression) -> tuple[str, Described] | None:
        """Return the column of the vertices that ``labels`` or ``keys`` is asked of, and what lists their names.

        None where it is asked of something else, or there are more names than bits.
        """
        function, name = asked(call) or ("", "")
        vertex = self._relation.variables.get(name)
        if vertex is None or vertex.column is None or vertex.type != NODE or call in self._relation.known:
            return None
        by = described(function, self._snapshot.names)
        return None if by is None or self._beside is None or self._snapshot.deleted is not None else (vertex.column, by)

    def _beside_names(self, vertices: str, by: Described) -> SqlValue:
        """Return what is asked of the names of vertices as a column beside these."""
        assert self._beside is not None
        return column(self._beside.add_described(vertices, by), by.type)

    def _with_names(self, node: object) -> Relation:
        """Return the rows with what a piece of syntax asks of the labels and keys of their vertices as columns."""
        found: dict[ast.Expression, SqlValue] = {}
        for expression, aspect, call in described_in(node):
            by = None if expression in self._relation.known else self._names_of(call)
            if by is not None:
                found[expression] = self._beside_names(by[0], replace(by[1], aspect=aspect))
        return replace(self._relation, known={**self._relation.known, **found}) if found else self._relation

    def _translator(self) -> ClauseTranslator:
        relation = self._relation
        over = ExpressionTranslator(self._snapshot, self._text, relation.variables, relation.known, self._arguments)
        return ClauseTranslator(over, relation.number, relation.variables.get(ORDER))

    def _compiler(self, rows: Rows, scope: Scope) -> Compiler:
        return ExpressionCompiler(
            self._text, self._snapshot.names, self._arguments, rows, scope, self._snapshot.computing
        )

    def _rows(self, beside: BesideBindings | None = None, after: Rows | None = None, *, seldom: bool = False) -> Rows:
        given = self._parameters, self._text, self._arguments
        return self._snapshot.rows(*given, beside=beside, after=after, seldom=seldom)


def where_sql(conditions: Sequence[str]) -> str:
    """Return SQL of a WHERE in which all of some conditions have to hold; nothing where there are none."""
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""

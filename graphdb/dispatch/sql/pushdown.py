"""What of SQL reaches a pattern query in it: the columns that it reads, its simple filters, its limit.

DuckDB's own parser gives the tree of a statement (``json_serialize_sql``).  A filter compares a column with an integer
or a text; it stays in the SQL, too, and reaches the match only where both languages have the same type for the column.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from graphdb.common.duckdb.connection import Connection
from graphdb.dispatch.arguments import parameters_named
from graphdb.grammar import syntax as ast
from graphdb.grammar.parser import parse
from graphdb.semantics.aggregation import aggregates_in

Tree: TypeAlias = dict[str, Any]
"""A node of DuckDB's tree, as JSON has it."""

_COMPARISONS = {
    "COMPARE_EQUAL": ("=", "="),
    "COMPARE_NOTEQUAL": ("<>", "<>"),
    "COMPARE_LESSTHAN": ("<", ">"),
    "COMPARE_GREATERTHAN": (">", "<"),
    "COMPARE_LESSTHANOREQUALTO": ("<=", ">="),
    "COMPARE_GREATERTHANOREQUALTO": (">=", "<="),
}
"""Operators by DuckDB's names, and what they are with their sides exchanged."""
_PLAIN = {"type", "select_list", "from_table", "where_clause", "modifiers", "cte_map", "aggregate_handling"}
_OF_STARS = {"class", "type", "query_location", "query_location_length", "columns"}
_TYPES = {"INTEGER": int, "STRING": str}


@dataclass(frozen=True, slots=True)
class Asked:
    """What SQL asks of a table: some columns (by lower-case names; None: all), rows, and the first so many of them."""

    columns: frozenset[str] | None = None
    filters: tuple[tuple[str, str, int | str], ...] = ()
    """Column, operator, value."""
    only_filters: bool = True
    """Whether the rows are all that fulfil the filters."""
    limit: int | None = None


def parsed(connection: Connection, sql: str) -> Tree | None:
    """Return the tree of one query; None for other statements."""
    text = "SELECT system.main.json_serialize_sql($sql, skip_null := true, skip_empty := true)"
    serialized = connection.rows(text, {"sql": sql})[0][0]
    try:
        found = json.loads(serialized)
        return _unwrapped(found["statements"][0]["node"]) if len(found.get("statements", ())) == 1 else None
    except RecursionError:
        return None


def _unwrapped(node: Any) -> Any:
    """Return a tree in which tables stand for ``(FROM table)``, which is what a pattern in parentheses became."""
    if isinstance(node, list):
        return [_unwrapped(one) for one in node]
    if not isinstance(node, dict):
        return node
    node = {name: _unwrapped(value) for name, value in node.items()}
    inner = node.get("subquery", {}).get("node", {}) if node.get("type") == "SUBQUERY" else {}
    if inner.get("from_table", {}).get("type") != "BASE_TABLE" or inner.keys() - (
        _PLAIN - {"where_clause", "modifiers"}
    ):
        return node
    if inner.get("cte_map") or [column.keys() - _OF_STARS for column in inner["select_list"]] != [set()]:
        return node
    return inner["from_table"] | {name: value for name, value in node.items() if name not in ("type", "subquery")}


def asked(tree: Tree | None, table: str, values: Mapping[str, object]) -> Asked:
    """Return what a query asks of a table, whose name stands once in it; ``values`` are those of parameters."""
    nodes = list(_nodes(tree))
    named = [node for node in nodes if node.get("type") == "BASE_TABLE" and node["table_name"].lower() == table.lower()]
    if tree is None or len(named) != 1 or {"sample", "column_name_alias"} & named[0].keys():
        return Asked()
    reading = next((node for node in nodes if node.get("from_table") is named[0]), None)
    filters: list[tuple[str, str, int | str] | None] = []
    if reading is not None and reading.get("type") == "SELECT_NODE" and "sample" not in reading:
        names = {table.lower(), named[0].get("alias", table).lower()}
        filters = [_filter(one, names, values) for one in _conditions(reading.get("where_clause"))]
    exact = None not in filters
    return Asked(
        _columns(nodes, {table.lower(), named[0].get("alias", table).lower()}),
        tuple(one for one in filters if one is not None),
        exact,
        min(_limits(tree, named[0]) or (), default=None) if exact else None,
    )


def pushed(query: str, asked: Asked, types: Callable[[], Mapping[str, str]]) -> tuple[str, dict[str, int | str]]:
    """Return a pattern query that gives what is asked of its rows, and the values of its further parameters.

    ``types`` are openCypher's names of the types of its columns, which are looked up only where there are filters.
    """
    statement = parse(query)
    if not isinstance(statement, ast.Query):
        return query, {}
    returns = statement.returns
    columns = {(item.alias or item.text).lower(): item for item in returns.items}
    edits: list[tuple[int, int, str]] = []
    values: dict[str, int | str] = {}
    limited = asked.only_filters and returns.limit is None and asked.limit is not None and asked.limit < 2**62
    plain = not (returns.star or returns.distinct or returns.order_by or returns.skip or returns.limit)
    if plain and len(columns) == len(returns.items) and not any(aggregates_in(returns.items)):
        if conditions := _pushable(statement, asked, columns, types, query, values):
            edits.append(_restricted(statement.matches[-1], query, " AND ".join(conditions)))
        limited = limited and len(conditions) == len(asked.filters)
        chosen = [item for name, item in columns.items() if asked.columns is None or name in asked.columns]
        if len(chosen) < len(columns):
            texts = [query[item.span.start : item.span.end] for item in chosen or returns.items[:1]]
            edits.append((returns.items[0].span.start, returns.items[-1].span.end, ", ".join(texts)))
    else:
        limited = limited and not asked.filters
    if limited:
        edits.append((statement.span.end, statement.span.end, f"\nLIMIT {asked.limit}"))
    for start, end, text in reversed(edits):
        query = query[:start] + text + query[end:]
    return query, values


def _pushable(
    statement: ast.Query,
    asked: Asked,
    columns: Mapping[str, ast.ReturnItem],
    types: Callable[[], Mapping[str, str]],
    query: str,
    values: dict[str, int | str],
) -> list[str]:
    """Return the filters that are conditions on properties of what is matched, and put their values into ``values``."""
    paths = [path for match in statement.matches for path in match.patterns]
    selected = any(path.variable or path.mode or path.selector or path.cost for path in paths)
    if not asked.filters or not paths or selected or any(match.optional for match in statement.matches):
        return []
    known, taken = types(), {*parameters_named(query)}
    conditions = []
    for name, operator, value in asked.filters:
        item = columns.get(name)
        if item is None or not isinstance(item.expression, ast.Property):
            continue
        if isinstance(item.expression.base, ast.Variable) and _TYPES.get(known[name]) is type(value):
            parameter = next(new for i in range(len(taken) + 1) if (new := f"asked{i}") not in taken)
            taken.add(parameter)
            values[parameter] = value
            conditions.append(f"{item.text} {operator} ${parameter}")
    return conditions


def _restricted(match: ast.MatchClause, query: str, condition: str) -> tuple[int, int, str]:
    if match.where is None:
        return match.span.end, match.span.end, f" WHERE {condition}"
    start, end = match.where.span.start, match.where.span.end
    return start, end, f"({query[start:end]}) AND {condition}"


def _nodes(tree: object) -> Iterator[Tree]:
    """All nodes of a tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def _columns(nodes: list[Tree], tables: set[str]) -> frozenset[str] | None:
    """Return the names of columns that stand in a tree, perhaps of other tables; None where it may read all."""
    names: set[str] = set()
    for node in nodes:
        if node.get("class") in ("STAR", "POSITIONAL_REFERENCE") or node.get("type") in ("SHOW_REF", "PIVOT"):
            return None
        if node.get("ref_type") == "NATURAL" or "pivots" in node:
            return None
        if node.get("class") == "COLUMN_REF":
            parts = [part.lower() for part in node["column_names"]]
            if len(parts) == 1 and parts[0] in tables:  # the row as a struct
                return None
            names.update(parts)
        names.update(name.lower() for name in node.get("using_columns", ()))
    return frozenset(names)


def _conditions(where: Tree | None) -> list[Tree]:
    if where is None:
        return []
    if where.get("type") == "CONJUNCTION_AND":
        return [one for child in where["children"] for one in _conditions(child)]
    return [where]


def _filter(condition: Tree, tables: set[str], values: Mapping[str, object]) -> tuple[str, str, int | str] | None:
    operators = _COMPARISONS.get(condition.get("type", ""))
    if operators is None:
        return None
    for column, value, operator in (("left", "right", operators[0]), ("right", "left", operators[1])):
        name, found = _column(condition[column], tables), _value(condition[value], values)
        if name is not None and found is not None:
            return name, operator, found
    return None


def _column(node: Tree, tables: set[str]) -> str | None:
    if node.get("class") != "COLUMN_REF":
        return None
    *table, name = (part.lower() for part in node["column_names"])
    return name if not table or (len(table) == 1 and table[0] in tables) else None


def _value(node: Tree, values: Mapping[str, object]) -> int | str | None:
    """Return the integer (of 64 bits) or the text that stands in a tree."""
    found: object = None
    if node.get("class") == "PARAMETER":
        found = values.get(node.get("identifier", ""))
    elif node.get("class") == "CONSTANT":
        literal = node.get("literal", {})
        found = {"INTEGER": int, "STRING": str}.get(literal.get("kind"), lambda _: None)(literal.get("text", ""))
    if type(found) is int:
        return found if abs(found) < 2**63 else None
    return found if isinstance(found, str) else None


def _limits(node: Tree, table: Tree) -> list[int] | None:
    """Return how many of a table's first rows a query and those around it take; None where it does more than that."""
    if node.get("type") != "SELECT_NODE" or not node.keys() <= _PLAIN or node.get("cte_map"):
        return None
    if node.get("aggregate_handling") != "STANDARD_HANDLING":
        return None
    if any(column.get("class") not in ("COLUMN_REF", "STAR", "CONSTANT") for column in node["select_list"]):
        return None
    limits: list[int] = []
    for modifier in node.get("modifiers", ()):
        if modifier.get("type") != "LIMIT_MODIFIER" or modifier.get("limit_type") != "ROW_COUNT":
            return None
        counts = [_value(modifier[part], {}) for part in ("limit", "offset") if part in modifier]
        if "limit" not in modifier or not all(isinstance(count, int) for count in counts):
            return None
        limits.append(sum(count for count in counts if isinstance(count, int)))
    source = node.get("from_table", {})
    if source is table:
        return limits
    if source.get("type") != "SUBQUERY" or "where_clause" in node or "sample" in source:
        return None
    inner = _limits(source["subquery"]["node"], table)
    return None if inner is None else limits + inner

"""Compiles list comprehensions and quantifiers over vertices and edges to subqueries whose rows are the list's items.

DuckDB's lambdas take no joins, so the items of such a list become rows, with which their properties are joined:
``[x IN nodes(p) | x.name]`` is one join for all items of all rows.
"""

from __future__ import annotations

from graphdb.sql.from_clause import Rows
from graphdb.sql.value import SqlValue

COUNTED = {
    "all": "WHEN {no} > 0 THEN FALSE WHEN {unknown} > 0 THEN NULL ELSE TRUE",
    "any": "WHEN {yes} > 0 THEN TRUE WHEN {unknown} > 0 THEN NULL ELSE FALSE",
    "none": "WHEN {yes} > 0 THEN FALSE WHEN {unknown} > 0 THEN NULL ELSE TRUE",
    "single": "WHEN {yes} > 1 THEN FALSE WHEN {unknown} > 0 THEN NULL ELSE {yes} = 1",
}
"""What a quantifier says of how many items are, are not, and may be as it asks."""


class ItemRows(Rows):
    """Joins beside the items of a list; what does not depend on the item is joined outside.

    Parameters
    ----------
    item
        The alias of the items' rows.
    """

    def __init__(self, outer: Rows, item: str) -> None:
        properties, edges = outer._properties, outer.edges
        super().__init__(outer.parameters, outer._type_label, properties, edges, outer.deleted, outer._beside)
        self.noted = outer.noted
        self._outer, self._item = outer, item
        self._reads = outer._reads | {item}

    def _join(self, what: str, which: int | None, element: SqlValue, template: str) -> str:
        if self._item in element.reads:
            return super()._join(what, which, element, template)
        return self._outer._join(what, which, element, template)

    def _alias(self, number: int) -> str:
        return f"{self._item}_{number}"


def listed(source: str, item: str, rows: ItemRows, value: str, where: str | None, empty: str) -> str:
    """Return SQL for the list of a value of each item (``item.v``) that a condition holds for."""
    chosen = f" WHERE {where}" if where else ""
    items = f"(SELECT unnest({source}) AS v, generate_subscripts({source}, 1) AS at) {item} {rows.joins}{chosen}"
    found = f"(SELECT list({value} ORDER BY {item}.at ASC) FROM {items})"
    return f"CASE WHEN {source} IS NOT NULL THEN coalesce({found}, {empty}) END"


def quantified(source: str, item: str, rows: ItemRows, test: str, quantifier: str) -> str:
    """Return SQL for whether a test holds for all, any, none or a single one of the items (``item.v``)."""
    filters = {"yes": "t", "no": "NOT t", "unknown": "t IS NULL"}
    counts = {name: f"count(*) FILTER ({condition})" for name, condition in filters.items()}
    tested = f"SELECT CAST({test} AS BOOLEAN) AS t FROM (SELECT unnest({source}) AS v) {item} {rows.joins}"
    found = f"(SELECT CASE {COUNTED[quantifier].format(**counts)} END FROM ({tested}))"
    return f"CASE WHEN {source} IS NOT NULL THEN {found} END"

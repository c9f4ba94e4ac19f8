"""The types of properties: one of SQL's for all single values of a key, and the query for these values.

The kinds of the values say it; of lists and durations their texts do, which are looked at once for each key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from graphdb.common import arrow
from graphdb.common.duckdb.connection import Connection
from graphdb.common.values import zones
from graphdb.common.values.terms import LITERAL_BASE, Kind
from graphdb.common.values.types import (
    EXACT_ONLY,
    Base,
    Type,
    bases_of_kinds,
    list_of,
    literal_sql,
    type_of_kinds,
)
from graphdb.snapshot.exact_types import Form, form_of, still_fits
from graphdb.snapshot.union_type import lists_of_unions
from graphdb.storage.catalog import EdgeLabel

REREAD = 1000
"""Vertices with changed values that are read anew before all of a property's are, …"""
_SHARE = 16
"""… or a share of all, if these are more."""

Changed = Callable[[int, frozenset[int]], frozenset[int]]
"""Adds to some vertices those whose values of a property, by its label's id, have changed since."""


@dataclass(frozen=True, slots=True)
class _Written:
    """The form of the texts of a property's values, None where SQL has no type for all of them."""

    form: Form | None
    stale: frozenset[int] = frozenset()
    """Vertices whose values have changed since it was found out."""


class PropertyTypes:
    """The types of the properties of one state of the data.

    Parameters
    ----------
    scales
        Digits after the point of each decimal property, by label id.
    """

    def __init__(self, connection: Connection, scales: Mapping[int, int]) -> None:
        self._connection = connection
        self.scales = scales
        self._written: dict[int, _Written] = {}
        """By label id, of lists and durations."""

    def compare_zones(self, names: Iterable[str]) -> None:
        """Compare the rules of some zones: see :func:`graphdb.common.values.zones.compare`."""
        zones.compare(self._connection, names)

    def unions(self) -> arrow.DataType:
        """Return the type of values of several types, as DuckDB has it."""
        found = lists_of_unions(self._connection).value_type
        assert isinstance(found, arrow.DataType)
        return found

    def type_of(self, label: EdgeLabel) -> Type:
        """Return the type that holds all single values of a property.

        Raises
        ------
        NotSupportedError
            There is none.
        """
        form = self._form(label)
        return type_of_kinds(label.kinds, self.scales.get(label.id, 18)) if form is None else form.type

    def has_type(self, label: EdgeLabel) -> bool:
        """Whether SQL has a type that holds all single values of a property."""
        return not exact_only(label) or self._form(label) is not None

    def is_exact(self, label: EdgeLabel) -> bool:
        """Whether SQL's values of a property are all that its texts say: a union has no offsets of points in time."""
        several = label.kinds >> Kind.ZONED & 1 and label.kinds != 1 << Kind.ZONED and not exact_only(label)
        return self.has_type(label) and not several

    def bases_of(self, label: EdgeLabel) -> frozenset[Base] | None:
        """Return the types that single values of a property have; None where that is not known."""
        return None if exact_only(label) else bases_of_kinds(label.kinds)

    def _form(self, label: EdgeLabel) -> Form | None:
        """Return the form of a property's values that are lists or durations, which is looked for once."""
        if not exact_only(label):
            return None
        found = self._written.get(label.id)
        if found is not None and found.stale:
            stays = found.form is None or still_fits(self._connection, label, found.form, sorted(found.stale))
            found = _Written(found.form) if stays else None
        if found is None:
            found = _Written(form_of(self._connection, label))
        self._written[label.id] = found
        return found.form

    def _value_sql(self, label: EdgeLabel) -> str:
        """Return SQL of a value of a property, over the alias ``l`` of the literal table."""
        form = self._form(label)
        return literal_sql("l", self.type_of(label), label.kinds) if form is None else form.value

    def _type(self, label: EdgeLabel) -> Type:
        single = self.type_of(label)
        return list_of(single) if label.max_values > 1 else single

    def _relation(self, label: EdgeLabel, where: str = "") -> str:
        return property_relation(label, self._value_sql(label), where)

    def _relation_of(self, label: EdgeLabel, vertices: list[int]) -> tuple[str, dict[str, list[int]]]:
        """Return the query for the values of some vertices, with its parameters."""
        return self._relation(label, " AND t.subject IN (SELECT unnest($vertices::BIGINT[]))"), {"vertices": vertices}

    def _goes_on(self, label: EdgeLabel, type: Type) -> bool:
        """Whether the values of a property are still of a type that a column was made with, as far as is known."""
        if not exact_only(label):
            return type == self._type(label)
        written = self._written.get(label.id)
        return written is not None and written.form is not None and written.form.type == type

    def _follow_types(self, former: PropertyTypes, labels: Mapping[int, EdgeLabel], changed: Changed) -> None:
        """Take over the forms of properties of which few values have changed."""
        for id, written in former._written.items():
            vertices, label = changed(id, written.stale), labels.get(id)
            if label is not None and len(vertices) <= most_reread(label):
                self._written[id] = replace(written, stale=vertices)


def exact_only(label: EdgeLabel) -> bool:
    """Whether only the texts of a property's values say what these are."""
    return bool(label.kinds & EXACT_ONLY)


def most_reread(label: EdgeLabel) -> int:
    """Return how many vertices' values of a property are read anew at most, rather than all."""
    return max(REREAD, label.triples // _SHARE)


def property_relation(label: EdgeLabel, value_sql: str, where: str = "") -> str:
    """Return the query (subject, value) of a property; ``value_sql`` is over the alias ``l`` of the literal table.

    ``where`` is one more condition, over the alias ``t`` of the triples, with ``AND`` before it.
    """
    many = label.max_values > 1
    value = f"list({value_sql} ORDER BY l.lexical ASC, l.id ASC)" if many else value_sql
    return (
        f"SELECT t.subject, {value} AS value FROM _graphdb.triple t JOIN _graphdb.literal l ON l.id = t.object "
        f"WHERE t.label = {int(label.id)} AND t.object >= {LITERAL_BASE}{where}{' GROUP BY t.subject' if many else ''}"
    )

"""What a continuous query makes of its groups, where a WITH makes these: SQL over their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.types import STRING, Base, Type
from graphdb.grammar import syntax as ast
from graphdb.live.forms.final import Final
from graphdb.relational.projection.compile import ProjectionCompiler
from graphdb.relational.projection.presentation import presented
from graphdb.relational.projection.relation import Relation, Source
from graphdb.sql.computing import Beforehand
from graphdb.sql.value import column

if TYPE_CHECKING:
    from graphdb.relational.snapshot import Snapshot

_GROUPS = "_graphdb_grouped"
"""What the SQL calls the columns of groups."""
_COMPUTED = frozenset((Base.BOOLEAN, Base.INTEGER, Base.FLOAT, Base.STRING))
"""Types whose values a table of groups has as SQL computes with them."""


class NotGrouped(Exception):
    """Why the groups of a query are not maintained."""


@dataclass(frozen=True, slots=True)
class OverGroups:
    """The SQL of what is made of groups, and its parameters."""

    columns: str
    """What it calls the columns of groups."""
    sql: str
    parameters: Mapping[str, object]
    types: Mapping[str, Type | None]
    """Of its columns; None: several."""

    def of(self, groups: str) -> str:
        """Return it over SQL of the columns of groups."""
        return f"WITH {_GROUPS}({self.columns}) AS ({groups}) {self.sql}"


def over_groups(final: Final, types: Mapping[str, Type | None], snapshot: Snapshot, text: str) -> OverGroups:
    """Return SQL for what a query makes of groups, the types of whose columns are given; None for any.

    Raises
    ------
    NotGrouped
        It computes with values that are stored in another form, or that Python computes with.
    """
    computed = final.computed
    if any((type := types[name]) is None or type.base not in _COMPUTED for name in computed):
        raise NotGrouped("it computes with aggregates, or with what is grouped by, of other types than SQL has")
    known = ((name, types[name] if name in computed else None, i) for i, name in enumerate(types))
    variables = {name: column(f"c{i}", type or STRING) for name, type, i in known}  # others only pass
    names = ", ".join(f"c{i}" for i in range(len(types)))
    relation = Relation(Source(_GROUPS), variables, where=final.conditions)
    try:
        returns = ast.ReturnClause(final.items)
        projection = ProjectionCompiler(snapshot, text, {}, relation).project(returns, final.items, (0, None))
    except (Beforehand, NotSupportedError):
        raise NotGrouped("Python computes with aggregates") from None
    shown = presented(f"({projection.sql})", projection.columns, ordered=False)
    made = {each.sql_name: None if each.many else each.type for each in projection.columns}
    return OverGroups(names, shown, dict(projection.parameters), made)

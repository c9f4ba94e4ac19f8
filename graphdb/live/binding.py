"""In which way delta plans maintain a continuous query, if they do, over the names of one state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphdb.common.errors import BindError, ParseError, TypeMismatchError
from graphdb.live.aggregates.grouping import Accumulators, signature_of
from graphdb.live.aggregates.over_groups import NotGrouped
from graphdb.live.engine import Engine
from graphdb.live.former import Former
from graphdb.live.matches.required import NotIncremental
from graphdb.live.prepared import PreparedQueries
from graphdb.live.standing import Branch, Standing
from graphdb.relational.query import Prepared
from graphdb.results.display import made_in_python

if TYPE_CHECKING:
    from graphdb.common.values.types import Column
    from graphdb.relational.program import Program
    from graphdb.relational.snapshot import Snapshot


class Binder:
    """Binds continuous queries of one connection.

    Parameters
    ----------
    prepared, former
        What was prepared of them over the present state, and over the one before a batch: dropped where names stand for
        something else.
    """

    def __init__(self, engine: Engine, prepared: PreparedQueries, former: Former) -> None:
        self._engine, self._prepared, self._former = engine, prepared, former

    def bind(self, each: Standing, snapshot: Snapshot) -> None:
        """Find out in which way delta plans maintain a query, if they do, over the names of one state."""
        before = each.accumulators
        self._prepared.drop(each.definition.number)
        self._former.rename(each.definition.number)
        try:
            found = [self._bind(each, branch, snapshot) for branch in each.branches]
            first = each.branches[0]
            if any(branch.columns != first.columns for branch in each.branches) or len({*map(repr, found)}) > 1:
                raise NotGrouped("the parts of a UNION have columns of different types")
            types = first.types if found[0] is None else found[0].types
            if each.window is not None and each.window.unordered(types):
                raise NotIncremental("its rows are ordered by values of several types, or of others than SQL orders")
            each.why, each.accumulators = None, found[0]
        except (NotIncremental, NotGrouped) as error:
            each.why, each.accumulators = str(error), None
            for branch in each.branches:
                branch.forget()
        except BaseException:  # stopped: what is bound by now may not be what its groups follow
            each.forget()
            raise
        each.grouped = each.grouped and each.accumulators == before

    def _bind(self, each: Standing, branch: Branch, snapshot: Snapshot) -> Accumulators | None:
        """Bind what is followed of a branch in the first way that maintains it, and return what follows its groups.

        Raises
        ------
        NotIncremental, NotGrouped
            There is no such way.
        """
        for way in branch.ways:
            branch.way = way
            try:
                columns = self._bound(each, branch, snapshot)
                branch.columns = signature_of(columns)
                branch.types = {column.sql_name: None if column.many else column.type for column in columns}
                found = None
                if each.grouping is not None:
                    edges = (edge for part in way.parts if part.delta for edge in part.delta.pattern.edges)
                    parallel = any(edge.parallel for edge in edges)
                    found = each.grouping.typed(columns, snapshot, each.definition.text, parallel=parallel)
            except (NotIncremental, NotGrouped) as error:
                why = error
                way.forget()
                continue
            for other in branch.ways:
                if other is not way:
                    other.forget()
            return found
        raise why

    def _bound(self, each: Standing, branch: Branch, snapshot: Snapshot) -> Sequence[Column]:
        """Bind what is followed of a branch, and return the columns of its rows; raises NotIncremental."""
        text = each.definition.text
        bound = [part.bind(self._engine, snapshot) for part in branch.way.parts]
        prepared: Prepared | Program = bound[0]
        if branch.way.asked_anew:
            try:
                branch.refuse_inexact(self._engine, text, snapshot)
                with self._engine.prepared(branch.query, text, snapshot, whole=False) as (_, prepared):
                    if prepared.computing is not None:
                        raise NotIncremental("Python computes a part of it")
                    self._prepared.put(branch.key, snapshot, prepared)
            # Where it is wrong as it is written, too, running it raises the same.
            except (BindError, ParseError, TypeMismatchError) as error:
                raise NotIncremental(error.message) from None
        if any(made_in_python(column.type) for column in prepared.projection.columns):
            raise NotIncremental("Python computes a part of it")
        return prepared.projection.columns

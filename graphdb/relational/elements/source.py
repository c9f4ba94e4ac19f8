"""Where the terms of a result are looked up: one version of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.duckdb.connection import Connection
from graphdb.relational.snapshot import Snapshot
from graphdb.snapshot.edges import Edges
from graphdb.snapshot.properties import Properties
from graphdb.snapshot.terms import Lookup
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.triples import TripleStore

if TYPE_CHECKING:
    from graphdb.pattern.names import Names

Ids = NDArray[np.int64]

Made = Callable[[], list[Any]]
"""Makes what was found: what that takes of the database is read already."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the terms of a result are looked up: one version of the data."""

    connection: Connection
    names: Names
    lookup: Lookup
    type_label: int | None
    described: frozenset[int]
    """Edge labels of which some edge has properties."""
    key_iri: Callable[[int], str]
    """Returns the IRI of a property key of edges."""
    edges: Edges | None = None
    """The edges of the state that is read, where it is the one in memory."""
    properties: Properties | None = None
    """The property columns of this state, …"""
    store: TripleStore | None = None
    """… its triples, …"""
    graph: DataGraph | None = None
    """… and what is derived of them."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> Source:
        """The data as a statement sees them that runs now."""
        store, edges = snapshot.store, snapshot.edges
        return cls(
            snapshot.connection,
            snapshot.names,
            snapshot.lookup,
            store.type_label,
            edges.described,
            edges.iri,
            edges,
            snapshot.properties,
            store,
            snapshot.graph,
        )

    def through(self, connection: Connection, snapshot: Snapshot) -> Source:
        """The same, read through another connection; nothing of it is in memory, so it may live long."""
        keys = {id: iri for iri, id in snapshot.edges.keys.items()}
        return replace(
            self,
            connection=connection,
            lookup=Lookup(connection, snapshot.store, 0),
            key_iri=keys.__getitem__,
            edges=None,
            properties=None,
            store=None,
            graph=None,
        )

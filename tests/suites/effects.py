"""What a statement did to the graph, counted as openCypher does: what there is after it and was not before, and the
other way round, each by itself; a property that changes its value is one more and one less.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import networkx as nx

import graphdb
from graphdb import Node, Relationship
from graphdb.storage.file.prepared_sql import execute
from tests.suites.tck_values import expected, plain

KINDS = ("nodes", "relationships", "labels", "properties")


@dataclass(frozen=True)
class Contents:
    """All that is in a graph: its vertices by IRI, and its edges by number."""

    nodes: dict[str, Node]
    edges: dict[int, Relationship]

    @classmethod
    def of(cls, database: graphdb.Database) -> Contents:
        """Read a graph."""
        nodes = {node.iri: node for (node,) in database.query("MATCH (n) RETURN n")}
        edges: dict[int, Relationship] = {
            number: edge for edge, number in database.query("MATCH ()-[r]->() RETURN r, id(r) AS number")
        }
        return cls(nodes, edges)

    def parts(self, kind: str) -> set[Any]:
        """Return what there is of a kind, each by what tells it from others."""
        if kind == "nodes":
            return {*self.nodes}
        if kind == "relationships":
            return {*self.edges}
        if kind == "labels":
            return {label for node in self.nodes.values() for label in node.labels}
        elements = [*self.nodes.items(), *self.edges.items()]
        return {(where, key, _text(value)) for where, each in elements for key, value in each.properties.items()}


def effects(before: Contents, after: Contents) -> dict[str, int]:
    """Return how many of each kind came (``+nodes``) and went (``-nodes``); what did not is left out."""
    found = {}
    for kind in KINDS:
        there, now = before.parts(kind), after.parts(kind)
        found |= {f"+{kind}": len(now - there), f"-{kind}": len(there - now)}
    return {effect: count for effect, count in found.items() if count}


_STORED = " UNION ALL ".join(
    f"SELECT count(*) AS rows, bit_xor(hash(t)) AS content FROM _graphdb.{table} t"
    for table in ("triple", "resource", "literal", "edge", "edge_property")
)


def stored(database: graphdb.Database) -> list[Any]:
    """Return what the tables of a graph have in common with no other graph's: what reads leaves it as it is."""
    connection = database._state.connection
    with connection.lock, connection.guard() as raw:
        return execute(raw, _STORED).fetchall()


def same_graph(contents: Contents, should: dict[str, Any]) -> bool:
    """Whether a graph is that of a scenario (its ``setup_graph``), whatever the vertices are called."""
    one, other = nx.MultiDiGraph(), nx.MultiDiGraph()
    for iri, node in contents.nodes.items():
        one.add_node(iri, is_=_text(node))
    for edge in contents.edges.values():
        one.add_edge(edge.start, edge.end, is_=_text(edge))
    for node in should["nodes"]:
        other.add_node(
            node["id"], is_=json.dumps(expected({"node": {k: node[k] for k in ("labels", "props")}}), sort_keys=True)
        )
    for edge in should["edges"]:
        other.add_edge(
            edge["src"],
            edge["dst"],
            is_=json.dumps(expected({"rel": {k: edge[k] for k in ("type", "props")}}), sort_keys=True),
        )
    if Counter(nx.get_node_attributes(one, "is_").values()) != Counter(nx.get_node_attributes(other, "is_").values()):
        return False
    if not (one.edges or other.edges):
        return True
    same = nx.isomorphism.categorical_multiedge_match("is_", None)
    return bool(nx.is_isomorphic(one, other, lambda a, b: a["is_"] == b["is_"], same))


def _text(value: Any) -> str:
    return json.dumps(plain(value), sort_keys=True)

"""openCypher's own scenarios, as far as this version reads: no scenario may give a wrong answer.

A scenario's graph becomes RDF in the default namespace.  What RDF cannot say without edge properties, parallel edges
or bare vertices is left out, and so is what the language refuses as not supported yet, or as an unknown name (openCypher
lets a query name labels that no vertex has).  Everything that does run must give the expected rows.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import graphdb
from graphdb import BindError, GraphDBError, Node, NotSupportedError, Relationship
from graphdb.pattern.names import DEFAULT_NAMESPACE
from tests.datasets import SHARED, shared

RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
XSD = "http://www.w3.org/2001/XMLSchema#"


def scenarios() -> list[dict[str, Any]]:
    path = SHARED / "suites" / "tck" / "scenarios.json"
    if not path.exists():
        return []
    found = json.loads(path.read_text())["scenarios"]
    return [each for each in found if each["expect"]["kind"] in ("rows", "empty") and each["class"]["tier"] in "ABC"]


def as_triples(graph: dict[str, Any] | None) -> str | None:
    """Return a scenario's graph as N-Triples, or None where RDF cannot say it."""
    if graph is None:
        return None
    lines: list[str] = []
    said = set()
    for node in graph["nodes"]:
        subject = f"<{DEFAULT_NAMESPACE}n{node['id']}>"
        for label in node["labels"]:
            lines.append(f"{subject} {RDF_TYPE} <{DEFAULT_NAMESPACE}{label}> .")
            said.add(node["id"])
        for key, value in node["props"].items():
            if isinstance(value, (list, dict)) or value is None or not key.isidentifier():
                return None
            lines.append(f"{subject} <{DEFAULT_NAMESPACE}{key}> {literal(value)} .")
            said.add(node["id"])
    edges = Counter((edge["src"], edge["type"], edge["dst"]) for edge in graph["edges"])
    if any(count > 1 for count in edges.values()) or any(edge["props"] for edge in graph["edges"]):
        return None
    for source, label, target in edges:
        lines.append(f"<{DEFAULT_NAMESPACE}n{source}> <{DEFAULT_NAMESPACE}{label}> <{DEFAULT_NAMESPACE}n{target}> .")
        said |= {source, target}
    return "\n".join(lines) if len(said) == len(graph["nodes"]) else None


def literal(value: object) -> str:
    if isinstance(value, bool):
        return f'"{str(value).lower()}"^^<{XSD}boolean>'
    if isinstance(value, int):
        return f'"{value}"^^<{XSD}integer>'
    if isinstance(value, float):
        return f'"{value!r}"^^<{XSD}double>'
    return json.dumps(value)


def plain(value: object) -> object:
    """Return one of our values as the suite writes it."""
    if isinstance(value, Node):
        return {"node": {"labels": sorted(value.labels), "props": dict(value.properties)}}
    if isinstance(value, Relationship):
        return {"rel": {"type": value.type, "props": dict(value.properties)}}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def expected(value: Any) -> object:
    """Return a value of the suite as :func:`plain` gives it."""
    if isinstance(value, dict):
        if "node" in value:
            return {"node": {"labels": sorted(value["node"]["labels"]), "props": value["node"]["props"]}}
        if "float" in value:
            return float(value["float"])
    if isinstance(value, list):
        return [expected(item) for item in value]
    return value


def key(row: object) -> str:
    return repr(row)


@pytest.mark.parametrize("folder", sorted({each["folder"] for each in scenarios()}))
def test_no_scenario_gives_a_wrong_answer(folder: str, tmp_path: Path) -> None:
    shared("suites", "tck")
    ran, wrong = 0, []
    databases: dict[str, graphdb.Database] = {}
    for scenario in (each for each in scenarios() if each["folder"] == folder):
        triples = as_triples(scenario["setup_graph"])
        if triples is None or scenario["parameters"]:
            continue
        if triples not in databases:
            file = tmp_path / "graph.nt"
            file.write_text(triples + "\n")
            databases[triples] = graphdb.connect()
            databases[triples].load(file)
        try:
            result = databases[triples].query(scenario["query"])
        except (NotSupportedError, BindError):
            continue
        except GraphDBError as error:
            wrong.append(f"{scenario['id']}: {scenario['query']}\n  {error}")
            continue
        rows = [[plain(value) for value in row] for row in result.fetchall()]
        expect = scenario["expect"]
        should = [[expected(value) for value in row] for row in expect.get("values") or []]
        if not expect.get("ordered"):
            rows, should = sorted(rows, key=key), sorted(should, key=key)
        if expect.get("ignore_list_order"):
            rows, should = (
                [[sorted(v, key=key) if isinstance(v, list) else v for v in r] for r in x] for x in (rows, should)
            )
        ran += 1
        if rows != should or list(result.columns) != (expect.get("columns") or []):
            wrong.append(f"{scenario['id']}: {scenario['query']}\n  expected {should}\n  found    {rows}")
    for database in databases.values():
        database.close()
    print(f"{folder}: {ran} ran, {len(wrong)} wrong")
    assert not wrong, "\n".join(wrong)

"""Published counts of labelled patterns of 3 to 32 vertices, through plans and through Cypher text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import graphdb
from graphdb.execute.host import HostExecutor
from graphdb.plan.passes.pipeline import make_plan
from tests.benchmarks.labelled import LabelledSet, labelled_set

Shared = Callable[[str], Path]


def found(name: str, shared: Shared) -> LabelledSet:
    shared(f"data/labelled/{name}.tar.gz")
    return labelled_set(name)


@pytest.mark.parametrize(("name", "every"), [("hprd", 8), ("hprd-edge-labels", 8), ("yeast", 2), ("github", 2)])
def test_counts_of_a_set(name: str, every: int, shared: Shared) -> None:
    """One query of some, with one thread and with two whatever it costs."""
    known = found(name, shared)
    graph = known.graph()
    queries = [query for query, count in known.counts.items() if count is not None][::every]
    assert len(queries) >= 6
    for query in queries:
        plan = make_plan(known.pattern(query, graph), graph)
        one, two = HostExecutor(1).count(plan), HostExecutor(2, inline_cost=0).count(plan)
        assert (query, one, two) == (query, known.counts[query], known.counts[query])


def test_rows_are_as_many_as_counted(shared: Shared) -> None:
    """Enumerating gives that many different rows."""
    known = found("yeast", shared)
    graph = known.graph()
    for query in ("query_dense_16_4", "query_dense_24_13", "query_dense_32_7", "query_sparse_16_15"):
        plan = make_plan(known.pattern(query, graph, rows=True), graph)
        blocks = [[block.columns[name].tolist() for name in plan.outputs] for block in HostExecutor(2).run(plan)]
        rows = {row for columns in blocks for row in zip(*columns, strict=True)}
        assert len(rows) == known.counts[query]
        assert all(len(set(row)) == len(row) for row in rows)


def test_large_patterns_from_cypher_text(shared: Shared, tmp_path: Path) -> None:
    """16, 24 and 32 labelled vertices, written out."""
    known = found("yeast", shared)
    lines = [f"<v:{v}> a <c:L{label}> ." for v, label in enumerate(known.data.labels)]
    lines = [line.replace(" a ", " <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> ") for line in lines]
    lines += [f"<v:{a}> <e:e> <v:{b}> ." for a, b, _ in known.data.edges]
    (tmp_path / "yeast.nt").write_text("\n".join(lines) + "\n")
    with graphdb.connect() as db:
        db.load(tmp_path / "yeast.nt")
        for query in ("query_dense_16_1", "query_dense_24_16", "query_dense_32_3", "query_sparse_16_17"):
            wanted = known.queries[query]
            vertices = ", ".join(f"(v{v}:<c:L{label}>)" for v, label in enumerate(wanted.labels))
            edges = ", ".join(f"(v{a})-[:<e:e>]-(v{b})" for a, b, _ in wanted.edges)
            text = f"MATCH DIFFERENT NODES {vertices}, {edges} RETURN count(*)"
            assert (query, db.query(text).scalar()) == (query, known.counts[query])
            assert "along a tree" in db.explain(text)

"""The engine against the oracle: every mode, every kind of edge, every way to run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import PatternGraph
from graphdb.plan.executor import Control
from graphdb.plan.passes import steps
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.data_graph import DataGraph
from tests.fuzz import scaled
from tests.oracle.brute import matches
from tests.oracle.strategies import Case, cases

EXAMPLES = settings(
    max_examples=scaled(200), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

WHOLE = HostExecutor(threads=1)
PIECES = HostExecutor(threads=2, block_rows=3, yield_work=4, inline_cost=-1.0)
SINGLE_PIECES = HostExecutor(threads=1, block_rows=2, yield_work=1)


def rows_of(pattern: PatternGraph, graph: DataGraph, executor: HostExecutor = WHOLE) -> list[tuple[int, ...]]:
    """The rows of a pattern, in the order of the run."""
    rows: list[tuple[int, ...]] = []
    for block in executor.run(make_plan(pattern, graph), Control()):
        assert all(len(column) == block.count for column in block.columns.values())
        columns = [block.columns[name].tolist() for name in pattern.outputs]
        rows += zip(*columns, strict=True) if columns else [()] * block.count
    return rows


def expected(case: Case) -> Counter[tuple[int, ...]]:
    """The oracle's rows."""
    return Counter(tuple(row[name] for name in case.pattern.outputs) for row in matches(case.pattern, case.data))


def check(case: Case, graph: DataGraph) -> None:
    want = expected(case)
    note(f"triples {sorted(case.data.triples)} pattern {case.pattern} want {want}")
    rows = rows_of(case.pattern, graph)
    assert Counter(rows) == want
    assert rows_of(case.pattern, graph, PIECES) == rows
    assert rows_of(case.pattern, graph, SINGLE_PIECES) == rows
    counted = make_plan(replace(case.pattern, outputs=(), count_only=True), graph)
    for executor in (WHOLE, PIECES, SINGLE_PIECES):
        assert executor.count(counted) == len(rows)


@EXAMPLES
@given(cases())
def test_rows_are_the_oracles(case: Case) -> None:
    check(case, DataGraph(case.source))


@settings(EXAMPLES, max_examples=scaled(60))
@given(cases(most_vertices=6))
def test_larger_patterns(case: Case) -> None:
    check(case, DataGraph(case.source))


@settings(EXAMPLES, max_examples=scaled(150))
@given(
    cases(),
    st.sampled_from(["direct", "hashed", "spans"]),
    st.sampled_from([np.int32, np.int64]),
    st.booleans(),
    st.booleans(),
)
def test_layers_id_types_signatures_and_candidate_sets(
    case: Case, layer: Any, dtype: Any, signatures: bool, large: bool
) -> None:
    """However the plan reads the data, the rows are the same."""
    graph = DataGraph(case.source, dtype=dtype, layer=layer)
    with (
        mock.patch.object(steps, "_signature_pays", return_value=signatures),
        mock.patch.object(steps, "SMALL", 0 if large else 1024),
    ):
        check(case, graph)


@EXAMPLES
@given(cases(), st.integers(0, 12))
def test_limits(case: Case, limit: int) -> None:
    """A limit gives so many of the rows, and counts up to it."""
    graph = DataGraph(case.source)
    want = expected(case)
    limited = replace(case.pattern, limit=limit)
    for executor in (WHOLE, PIECES, SINGLE_PIECES):
        rows = Counter(rows_of(limited, graph, executor))
        assert rows <= want
        assert rows.total() == min(limit, want.total())
        counted = make_plan(replace(limited, outputs=(), count_only=True), graph)
        assert executor.count(counted) == min(limit, want.total())


@pytest.mark.parametrize("mode", list(MatchMode))
@settings(EXAMPLES, max_examples=scaled(150))
@given(case=cases())
def test_each_mode(mode: MatchMode, case: Case) -> None:
    clauses = tuple(replace(clause, mode=mode) for clause in case.pattern.clauses)
    case = replace(case, pattern=replace(case.pattern, clauses=clauses))
    check(case, DataGraph(case.source))

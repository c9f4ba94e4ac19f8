"""Rows whose duplicates may go, or are counted: the same distinct rows, and the same numbers, as brute force finds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Duplicates, PatternGraph
from graphdb.plan.executor import Control
from graphdb.plan.passes import pipeline
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.data_graph import DataGraph
from tests.fuzz import scaled
from tests.oracle.strategies import Case, cases
from tests.oracle.test_counting import EXAMPLES, simple_cases
from tests.oracle.test_matching import PIECES, SINGLE_PIECES, WHOLE, expected

Counting = Any


def counts_of(
    pattern: PatternGraph, graph: DataGraph, executor: HostExecutor, counting: Counting = "auto"
) -> Counter[tuple[int, ...]]:
    """How many matches each distinct row stands for; of dropped duplicates, how often the row came."""
    found: Counter[tuple[int, ...]] = Counter()
    for block in executor.run(make_plan(pattern, graph, counting=counting), Control()):
        columns = [block.columns[name].tolist() for name in pattern.outputs]
        numbers = [1] * block.count if block.matches is None else block.matches.tolist()
        assert len(numbers) == block.count
        for row, number in zip(zip(*columns, strict=True), numbers, strict=True):
            assert number > 0
            found[row] += number
    return found


def check(case: Case, graph: DataGraph, counting: Counting = "auto") -> None:
    want = expected(case)
    note(f"triples {sorted(case.data.triples)} pattern {case.pattern} want {want}")
    for executor in (WHOLE, PIECES, SINGLE_PIECES):
        assert counts_of(replace(case.pattern, duplicates="count"), graph, executor, counting) == want
        assert counts_of(replace(case.pattern, duplicates="drop"), graph, executor, counting).keys() == want.keys()


def with_outputs(case: Case, names: list[int]) -> Case:
    """The case with some of its vertices (by number, modulo) as outputs."""
    vertices = case.pattern.vertices
    chosen = tuple(dict.fromkeys(vertices[n % len(vertices)].name for n in names))
    return replace(case, pattern=replace(case.pattern, outputs=chosen))


OUTPUTS = st.lists(st.integers(0, 5), min_size=1, max_size=3)
ANY = st.one_of(cases(), simple_cases(), cases(most_vertices=6))


@EXAMPLES
@given(cases())
def test_any_outputs(case: Case) -> None:
    if case.pattern.outputs:
        check(case, DataGraph(case.source))


@pytest.mark.parametrize("mode", list(MatchMode))
@settings(EXAMPLES, max_examples=scaled(100))
@given(case=ANY, names=OUTPUTS)
def test_each_mode(mode: MatchMode, case: Case, names: list[int]) -> None:
    clauses = tuple(replace(clause, mode=mode) for clause in case.pattern.clauses)
    case = replace(case, pattern=replace(case.pattern, clauses=clauses))
    check(with_outputs(case, names), DataGraph(case.source))


@EXAMPLES
@given(case=ANY, names=OUTPUTS, order=st.permutations(range(6)))
def test_any_order(case: Case, names: list[int], order: list[int]) -> None:
    """Whichever steps come first, and however few of them make a row."""
    case = with_outputs(case, names)
    own = tuple(v for v in order if v < len(case.pattern.vertices))
    with mock.patch.object(pipeline, "rows_first", return_value=own):
        check(case, DataGraph(case.source))


@EXAMPLES
@given(case=ANY, names=OUTPUTS, limit=st.integers(0, 8), duplicates=st.sampled_from(["keep", "drop"]))
def test_limits_count_distinct_rows(case: Case, names: list[int], limit: int, duplicates: Duplicates) -> None:
    case = with_outputs(case, names)
    want = expected(case)
    pattern = replace(case.pattern, duplicates=duplicates, limit=limit)
    for executor in (WHOLE, PIECES, SINGLE_PIECES):
        found = counts_of(pattern, DataGraph(case.source), executor)
        assert found.keys() <= want.keys()
        if duplicates == "drop":
            assert len(found) >= min(limit, len(want))
        else:
            assert found.total() == min(limit, want.total())


@pytest.mark.parametrize("mode", [mode for mode in MatchMode if mode is not MatchMode.INDUCED])
@EXAMPLES
@given(case=ANY, output=st.integers(0, 5))
def test_counted_by_one_vertex(mode: MatchMode, case: Case, output: int) -> None:
    """Along edges, by loops, over quotients: the matches of every vertex."""
    clauses = tuple(replace(clause, mode=mode) for clause in case.pattern.clauses)
    case = replace(case, pattern=replace(case.pattern, clauses=clauses))
    check(with_outputs(case, [output]), DataGraph(case.source), "always")

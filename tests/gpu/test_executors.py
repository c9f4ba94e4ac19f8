"""Every executor against the oracle: random graphs and patterns, in every mode, with rows, counts and limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from graphdb.gpu.join import run
from graphdb.grammar.syntax import MatchMode
from graphdb.plan.executor import Control
from graphdb.plan.passes import pipeline, steps
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.data_graph import DataGraph
from tests.gpu.executors import EXAMPLES, EXECUTORS, opened
from tests.oracle.strategies import Case, cases
from tests.oracle.test_duplicates import ANY, OUTPUTS, counts_of, with_outputs
from tests.oracle.test_matching import expected
from tests.oracle.test_symmetry import symmetric_cases
from tests.oracle.test_trees import labelled_cases, spaces


@pytest.fixture(params=EXECUTORS, scope="module")
def executor(request: pytest.FixtureRequest) -> Iterator[Any]:
    with opened(request.param) as found:
        yield found


def check(case: Case, graph: DataGraph, executor: Any, limit: int | None = None) -> None:
    """The rows and the count are the oracle's; with a limit, so many of them."""
    want = expected(case)
    note(f"triples {sorted(case.data.triples)} pattern {case.pattern} want {want}")
    plan = make_plan(case.pattern, graph)
    found: Counter[tuple[int, ...]] = Counter()
    for block in executor.run(plan, Control(limit=limit)):
        assert all(len(column) == block.count for column in block.columns.values())
        columns = [block.columns[name].tolist() for name in plan.outputs]
        found.update(zip(*columns, strict=True) if columns else [()] * block.count)
    if limit is None:
        assert found == want
    else:
        assert found <= want
        assert found.total() == min(limit, want.total())
    for counting in ("auto", "never"):
        counted = make_plan(replace(case.pattern, outputs=(), count_only=True), graph, counting=counting)  # type: ignore[arg-type]
        assert executor.count(counted, Control(limit=limit)) == found.total()


@EXAMPLES
@given(case=cases(), layer=st.sampled_from(["direct", "hashed", "spans"]), dtype=st.sampled_from([np.int32, np.int64]))
def test_rows_and_counts(executor: Any, case: Case, layer: Any, dtype: Any) -> None:
    check(case, DataGraph(case.source, dtype=dtype, layer=layer), executor)


@EXAMPLES
@given(case=symmetric_cases(), limit=st.one_of(st.none(), st.integers(0, 12)))
def test_symmetric_patterns_and_limits(executor: Any, case: Case, limit: int | None) -> None:
    check(case, DataGraph(case.source), executor, limit)


@EXAMPLES
@given(case=cases(most_vertices=6), signatures=st.booleans(), large=st.booleans(), narrow=st.booleans())
def test_signatures_and_candidate_sets(executor: Any, case: Case, signatures: bool, large: bool, narrow: bool) -> None:
    with (
        mock.patch.object(steps, "_signature_pays", return_value=signatures),
        mock.patch.object(steps, "SMALL", 0 if large else 1024),
        mock.patch.object(run, "NARROW", 1e9 if narrow else 0.0),
    ):
        check(case, DataGraph(case.source, layer="hashed" if signatures else "direct"), executor)


@EXAMPLES
@given(case=ANY, names=OUTPUTS, order=st.one_of(st.none(), st.permutations(range(6))))
def test_rows_that_stand_for_several_matches(executor: Any, case: Case, names: list[int], order: Any) -> None:
    """Duplicates counted, or dropped: whichever steps come first, and however few of them make a row."""
    case, graph = with_outputs(case, names), DataGraph(case.source)
    want = expected(case)
    own = None if order is None else tuple(v for v in order if v < len(case.pattern.vertices))
    with mock.patch.object(pipeline, "rows_first", return_value=own) if own else nullcontext():
        counted, dropped = (replace(case.pattern, duplicates=duplicates) for duplicates in ("count", "drop"))
        assert counts_of(counted, graph, executor, "never") == want
        assert counts_of(dropped, graph, executor, "never").keys() == want.keys()
        limited = counts_of(replace(dropped, limit=3), graph, executor, "never")
        assert executor.count(make_plan(counted, graph, counting="never")) == want.total()
        assert limited.keys() <= want.keys()
        assert len(limited) >= min(3, len(want))


@EXAMPLES
@given(case=st.one_of(labelled_cases(), cases(most_vertices=5)))
def test_candidate_spaces(executor: Any, case: Case) -> None:
    """Plans whose lists are a candidate space's, which holds candidates alone."""
    with spaces():
        check(case, DataGraph(case.source), executor)


@pytest.mark.parametrize("mode", list(MatchMode))
@EXAMPLES
@given(case=cases())
def test_each_mode(executor: Any, mode: MatchMode, case: Case) -> None:
    clauses = tuple(replace(clause, mode=mode) for clause in case.pattern.clauses)
    check(replace(case, pattern=replace(case.pattern, clauses=clauses)), DataGraph(case.source), executor)

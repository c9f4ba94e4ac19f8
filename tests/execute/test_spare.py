"""Buffers cached with a plan for its next run: no run sees another's contents, whether that ended, was left or was stopped."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.common.errors import ExecutionError, GraphDBError
from graphdb.common.values.types import Base, Column, Type
from graphdb.execute.host import HostExecutor
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.results.result import Counted, Result
from graphdb.storage.graph.data_graph import DataGraph
from tests.execute.test_host import complete, pattern, rows
from tests.fuzz import scaled
from tests.oracle.brute import matches
from tests.oracle.strategies import Case, cases


def walk(vertices: int = 8, steps: int = 3, **more: object) -> PhysicalPlan:
    """Walks through a complete graph, whose edges differ: lists kept as bits, shared ones and checks take part."""
    edges = [(i, i + 1, (1,), True) for i in range(steps)] + [(0, steps, (1,), True)]
    return make_plan(pattern(steps + 1, edges, **more), complete(vertices))  # type: ignore[arg-type]


def left_after(plan: PhysicalPlan, executor: HostExecutor, blocks: int) -> None:
    """Run a plan, and leave it after some blocks."""
    run = executor.run(plan)
    for _ in range(blocks):
        next(run, None)
    run.close()  # type: ignore[attr-defined]


def test_a_second_run_needs_no_new_search_and_finds_the_same() -> None:
    plan, executor = walk(), HostExecutor(1)
    first = rows(plan, executor)
    (kept,) = plan.cache.values()
    assert rows(plan, executor) == first
    assert list(plan.cache.values()) == [kept]


@pytest.mark.parametrize("blocks", [0, 1, 5])
def test_a_run_that_was_left_leaves_nothing_behind(blocks: int) -> None:
    expected = rows(walk(), HostExecutor(1))
    plan, executor = walk(), HostExecutor(1, block_rows=3, yield_work=2)
    left_after(plan, executor, blocks)
    assert rows(plan, executor) == expected


def test_a_run_that_was_cancelled_or_limited_leaves_nothing_behind() -> None:
    expected = rows(walk(), HostExecutor(1))
    plan, executor = walk(), HostExecutor(1, block_rows=3, yield_work=2)
    cancelled = threading.Event()
    run = executor.run(plan, Control(cancelled=cancelled))
    next(run)
    cancelled.set()
    with pytest.raises(ExecutionError, match="interrupted"):
        list(run)
    assert len(rows(plan, executor, Control(limit=4))) == 4
    control = Control()
    assert rows(plan, executor, control) == expected
    assert control.rows[-1] == len(expected)  # and what earlier runs went through is not counted again


def test_a_run_within_a_run_of_the_same_plan() -> None:
    plan, executor = walk(5), HostExecutor(1, block_rows=2)
    expected = rows(plan, executor)
    outer = []
    for block in executor.run(plan):
        assert rows(plan, executor) == expected
        outer += zip(*(block.columns[name].tolist() for name in plan.outputs), strict=True)
    assert outer == expected


@pytest.mark.parametrize("yield_work", [1 << 20, 2])
def test_a_count_that_is_asked_again_counts_again(yield_work: int) -> None:
    """In one call where that does, and else call by call; what was gone through is that of one run."""
    plan, executor = walk(count_only=True), HostExecutor(1, yield_work=yield_work)
    expected = len(rows(walk(), HostExecutor(1)))
    controls = [Control() for _ in range(4)]
    assert [executor.count(plan, control) for control in controls] == [expected] * 4
    assert len({tuple(control.rows) for control in controls}) == 1
    (kept,) = plan.cache.values()
    assert kept.short == (yield_work > 2)
    assert executor.count(plan, Control(limit=3)) == 3
    assert executor.count(plan) == expected


def test_one_plan_in_several_threads() -> None:
    plan, executor = walk(count_only=True), HostExecutor(1, yield_work=50)
    expected = executor.count(plan)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: executor.count(plan), range(100)))
    assert found == [expected] * 100


def test_blocks_stay_what_they_were_when_the_search_goes_on() -> None:
    plan, executor = walk(), HostExecutor(1)
    first = [block.columns[plan.outputs[-1]].copy() for block in executor.run(plan)]
    held = list(executor.run(plan))
    rows(plan, executor)
    assert all((block.columns[plan.outputs[-1]] == before).all() for block, before in zip(held, first, strict=True))


def test_large_buffers_are_not_cached() -> None:
    plan = make_plan(pattern(3, [(0, 1, (1,), True), (1, 2, (1,), True)]), complete(100))
    assert sum(block.count for block in HostExecutor(1, block_rows=1 << 10).run(plan)) == 100 * 99 * 99
    assert plan.cache
    plan.cache.clear()
    assert sum(block.count for block in HostExecutor(1, block_rows=1 << 18).run(plan)) == 100 * 99 * 99
    assert not plan.cache
    sum(block.count for block in HostExecutor(1, memory_limit=4 << 20, block_rows=1 << 14).run(plan))
    assert not plan.cache


@settings(max_examples=scaled(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases(), st.integers(0, 4))
def test_any_plan_left_anywhere_runs_again_right(case: Case, blocks: int) -> None:
    plan = make_plan(case.pattern, DataGraph(case.source))
    executor = HostExecutor(1, block_rows=2, yield_work=3)
    left_after(plan, executor, blocks)
    expected = Counter(tuple(row[name] for name in case.pattern.outputs) for row in matches(case.pattern, case.data))
    for _ in range(2):
        found: Counter[tuple[int, ...]] = Counter()
        for block in executor.run(plan):
            columns = [block.columns[name].tolist() for name in plan.outputs]
            found.update(zip(*columns, strict=True) if columns else [()] * block.count)
        assert found == expected


# --- through the door ----------------------------------------------------------------------------------------------

LINES = [f"<http://e/{i}> <http://e/p> <http://e/{(i + j) % 9}> ." for i in range(9) for j in (1, 2)]


@pytest.fixture
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        load(database, tmp_path_factory, LINES)
        yield database


def load(db: graphdb.Database, folder: pytest.TempPathFactory, lines: list[str]) -> None:
    file = folder.mktemp("data") / "some.nt"
    file.write_text("\n".join(lines) + "\n")
    db.load(file)


def test_a_repeated_text_sees_changed_data(db: graphdb.Database, tmp_path_factory: pytest.TempPathFactory) -> None:
    text = "MATCH (a)-[:p]->(b)-[:p]->(c) RETURN count(*)"
    assert [db.query(text).scalar() for _ in range(3)] == [36, 36, 36]
    load(
        db,
        tmp_path_factory,
        ["<http://e/0> <http://e/p> <http://e/new> .", "<http://e/new> <http://e/p> <http://e/0> ."],
    )
    sources = [line.split()[0] for line in LINES] + ["<http://e/0>", "<http://e/new>"]
    targets = [line.split()[2] for line in LINES] + ["<http://e/new>", "<http://e/0>"]
    after = sum(targets.count(middle) * sources.count(middle) for middle in set(targets))
    assert [db.query(text).scalar() for _ in range(3)] == [after] * 3


def test_a_repeated_text_in_several_threads(db: graphdb.Database) -> None:
    text = "MATCH (a)-[:p]->(b)-[:p]->(c) RETURN count(*)"
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda _: db.query(text).scalar(), range(40))) == [36] * 40


def test_a_count_is_a_table_where_one_is_asked_for(db: graphdb.Database) -> None:
    result = db.query("MATCH (a)-[:p]->(b) RETURN count(*) AS n, count(a) AS m")
    assert result.fetchall() == [(18, 18)]
    assert len(result) == 1
    assert result.to_arrow().to_pylist() == [{"n": 18, "m": 18}]
    assert "18" in repr(result)
    assert result.into("counts") == 1
    assert db.sql("SELECT n + m FROM counts").scalar() == 36
    assert db.sql("SELECT m FROM result").scalar() == 18
    empty = db.query("MATCH (a)-[:p]->(b) RETURN count(*) AS n SKIP 1")
    assert (len(empty), empty.fetchall(), empty.to_arrow().to_pylist()) == (0, [], [])
    with pytest.raises(GraphDBError, match="one row"):
        empty.scalar()


def test_a_count_of_any_size_can_be_read(db: graphdb.Database) -> None:
    def counted(number: int) -> Result:
        return Result(db._state.version(), Counted(number, 1, (0, None)), (Column("n", "n", Type(Base.INTEGER)),))

    for number in (2**63 - 1, 2**63, 10**38 - 1, 10**50):
        result = counted(number)
        assert result.scalar() == number
        assert str(number)[:10] in result.text().replace(",", "")
        if number < 10**38:
            assert int(result.to_arrow().column("n")[0].as_py()) == number
            assert result.into(f"n{number}"[:20], replace=True) == 1
        else:
            with pytest.raises(ExecutionError, match="more digits"):
                result.to_arrow()

"""Candidate spaces and counts along trees against brute force, with thresholds so low that small patterns reach them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest import mock

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from networkx.algorithms.isomorphism import GraphMatcher

from graphdb.common.errors import ExecutionError, QueryTimeout
from graphdb.execute.counting import crt
from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, EdgeTest, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.candidates import space
from graphdb.plan.counting import tree
from graphdb.plan.estimates.cost import Estimates
from graphdb.plan.executor import Control
from graphdb.plan.explain import explain_text
from graphdb.plan.ordering.sample import Forecast
from graphdb.plan.passes import pipeline as passes
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.fuzz import scaled
from tests.oracle.brute import Data, matches
from tests.oracle.strategies import Case, cases, source_of
from tests.oracle.test_matching import PIECES, WHOLE, expected, rows_of

EXAMPLES = settings(
    max_examples=scaled(60), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@contextmanager
def spaces(kept: float = 0.0, most_kept: int = 16, passes: int = 6) -> Iterator[None]:
    """Give every pattern of two vertices or more a candidate space, and let every node keep its counts."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(space, "SMALLEST", 2))
        stack.enter_context(mock.patch.object(space, "LEAST_CONDITIONS", 0.0))
        stack.enter_context(mock.patch.object(space, "PASSES", passes))
        stack.enter_context(mock.patch.object(tree, "CACHED", kept))
        stack.enter_context(mock.patch.object(tree, "MOST_CACHED", most_kept))
        yield


def check(case: Case, graph: DataGraph) -> bool:
    """Compare rows and counts with brute force; whether a tree counted."""
    want = expected(case)
    note(f"triples {sorted(case.data.triples)} pattern {case.pattern} want {want}")
    rows = rows_of(case.pattern, graph)
    assert sorted(rows) == sorted(want.elements())
    assert rows_of(case.pattern, graph, PIECES) == rows
    plan = make_plan(replace(case.pattern, outputs=(), count_only=True), graph)
    note(f"tree {plan.tree}")
    for executor in (WHOLE, PIECES):
        assert executor.count(plan) == len(rows)
    return plan.tree is not None


@EXAMPLES
@given(cases(most_vertices=5), st.integers(0, 3))
def test_any_pattern_over_a_candidate_space(case: Case, passes: int) -> None:
    with spaces(passes=passes):
        check(case, DataGraph(case.source))


def test_vertices_that_differ_so_that_edges_do() -> None:
    """Two edges of one label from one vertex: the tree knows of no vertices that differ, so it must not count."""
    data = Data({(0, 1, 1), (0, 1, 2), (0, 1, 3)}, 4, 0, None)
    edges = tuple(PatternEdge(f"e{i}", 0, 1 + i, (1,), True, 0) for i in range(2))
    vertices = tuple(PatternVertex(f"v{i}") for i in range(3))
    mode = Clause(MatchMode.DIFFERENT_EDGES, (0, 1, 2))
    star = PatternGraph(vertices, edges, (mode,), outputs=(), count_only=True)
    with spaces(passes=0):
        plan = make_plan(star, DataGraph(source_of(data)))
    assert plan.tree is None
    assert WHOLE.count(plan) == PIECES.count(plan) == 3 * 2


def test_a_vertex_that_only_tests_speak_of_is_no_literal() -> None:
    """Vertex 3 is a literal, and the object of the one edge that the test asks for."""
    data = Data({(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 3)}, 3, 2, None)
    names = ("v0", "v1")
    pattern = PatternGraph(
        tuple(map(PatternVertex, names)),
        (),
        (Clause(MatchMode.DIFFERENT_EDGES, ()),),
        (EdgeTest(0, 1, (1,), False, False),),
        outputs=names,
    )
    with spaces():
        assert rows_of(pattern, DataGraph(source_of(data))) == list(matches(pattern, data)) == []


@st.composite
def labelled_cases(draw: st.DrawFn) -> Case:
    """Connected patterns of three to six labelled vertices, all different, on graphs of up to nine."""
    size, classes = draw(st.integers(5, 9)), draw(st.integers(1, 3))
    labels = [draw(st.integers(0, classes - 1)) for _ in range(size)]
    pair = st.tuples(st.integers(0, size - 1), st.sampled_from([1, 1, 2]), st.integers(0, size - 1))
    triples = draw(st.sets(pair, min_size=8, max_size=30))
    type_label, first_class = 20, 21
    typed = {(v, type_label, first_class + label) for v, label in enumerate(labels)}
    data = Data(triples | typed, first_class + classes, 0, type_label)
    count = draw(st.integers(3, 6))
    pairs = [(draw(st.integers(0, i - 1)), i) for i in range(1, count)]
    pairs += draw(st.lists(st.sampled_from([(a, b) for b in range(count) for a in range(b)]), max_size=3))
    edges = [
        PatternEdge(
            f"e{i}",
            *(pair if draw(st.booleans()) else pair[::-1]),
            (draw(st.sampled_from([1, 1, 2])),),
            draw(st.booleans()),
            0,
        )
        for i, pair in enumerate(sorted(set(pairs)))
    ]
    wanted = [draw(st.integers(0, classes - 1)) for _ in range(count)]
    vertices = tuple(
        PatternVertex(
            f"v{i}",
            np.array([v for v in range(size) if labels[v] == label], np.int64),
            "",
            (first_class + label,),
        )
        for i, label in enumerate(wanted)
    )
    tests = ()
    if draw(st.integers(0, 4)) == 0:
        tests = (EdgeTest(draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1)), (1,), True, False),)
    clause = Clause(draw(st.sampled_from([MatchMode.DIFFERENT_NODES] * 3 + [MatchMode.INDUCED])), tuple(range(count)))
    names = tuple(vertex.name for vertex in vertices)
    return Case(source_of(data), data, PatternGraph(vertices, tuple(edges), (clause,), tests, outputs=names))


@EXAMPLES
@given(
    labelled_cases(),
    st.sampled_from(["direct", "hashed", "spans"]),
    st.sampled_from([np.int32, np.int64]),
    st.sampled_from([0.0, 1.5, 100.0]),
    st.sampled_from([1, 4, 64]),
)
def test_labelled_patterns(case: Case, layer: str, dtype: type, kept: float, most_kept: int) -> None:
    """However many counts are kept, and however often their places are taken by others."""
    with spaces(kept, most_kept):
        check(case, DataGraph(case.source, dtype=dtype, layer=layer))  # type: ignore[arg-type]


@EXAMPLES
@given(labelled_cases(), st.lists(st.floats(0.01, 50), min_size=1, max_size=6))
def test_whatever_tree_is_grown(case: Case, figures: list[float]) -> None:
    """Wrong figures lead to other trees, never to other counts."""
    true = tree._figures

    def wrong(found: space.CandidateSpace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sizes, shares, links = true(found)
        return np.resize(figures, len(sizes)), shares * figures[0], links

    with spaces(), mock.patch.object(tree, "_figures", wrong):
        check(case, DataGraph(case.source))


@settings(EXAMPLES, max_examples=scaled(30))
@given(labelled_cases())
def test_numbers_too_large_for_int64(case: Case) -> None:
    """Where int64 does not do, remainders modulo primes give the same number."""

    def without_int64(total, greatest):  # type: ignore[no-untyped-def]
        def overflows(modulus: int) -> int:
            if not modulus:
                raise crt.Overflow
            return int(total(modulus))

        return crt.by_remainders(overflows, greatest)

    with spaces(), mock.patch("graphdb.execute.counting.trees.by_remainders", without_int64):
        check(case, DataGraph(case.source))


def labelled_graph(seed: int, vertices: int, degree: float, classes: int) -> tuple[DataGraph, nx.Graph]:
    """A random graph with vertex labels, as both see it."""
    known = nx.gnp_random_graph(vertices, degree / vertices, seed=seed)
    rng = np.random.default_rng(seed)
    nx.set_node_attributes(known, dict(enumerate(rng.integers(0, classes, vertices).tolist())), "label")
    a, b = np.array(known.edges).T
    return DataGraph(ArraySource(a, np.full(len(a), vertices), b, vertices + 1)), known


def labelled_pattern(wanted: nx.Graph, known: nx.Graph, *, rows: bool) -> PatternGraph:
    """A connected part of a graph as a pattern: its vertices have the same labels."""
    labels = nx.get_node_attributes(known, "label")
    number = {v: i for i, v in enumerate(wanted.nodes)}
    names = tuple(f"v{i}" for i in range(len(number)))
    sets = [np.array(sorted(x for x in known if labels[x] == labels[v]), np.int64) for v in wanted.nodes]
    return PatternGraph(
        tuple(PatternVertex(name, found) for name, found in zip(names, sets, strict=True)),
        tuple(
            PatternEdge(f"e{i}", number[a], number[b], (len(known),), False, 0) for i, (a, b) in enumerate(wanted.edges)
        ),
        (Clause(MatchMode.DIFFERENT_NODES, tuple(range(len(names)))),),
        outputs=names if rows else (),
        count_only=not rows,
    )


@pytest.mark.parametrize("seed", range(6))
def test_large_labelled_patterns_against_networkx(seed: int) -> None:
    """Patterns of 8 to 13 vertices cut out of the graph, with every threshold as it is."""
    graph, known = labelled_graph(seed, 60, 4.0, 4)
    start = max(known, key=known.degree)
    part = list(nx.bfs_tree(known, start))[: 8 + seed]
    wanted = known.subgraph(part).copy()
    if seed % 2:
        wanted = nx.minimum_spanning_tree(wanted)
    matcher = GraphMatcher(known, wanted, node_match=lambda a, b: a["label"] == b["label"])
    found = sorted(
        tuple(sorted(row.items(), key=lambda pair: list(wanted).index(pair[1])))
        for row in matcher.subgraph_monomorphisms_iter()
    )
    want = sorted(tuple(v for v, _ in row) for row in found)
    plan = make_plan(labelled_pattern(wanted, known, rows=False), graph)
    assert plan.tree is not None or plan.automorphisms > 1  # what is found once for many needs no tree
    assert HostExecutor(1).count(plan) == HostExecutor(2, inline_cost=0).count(plan) == len(want)
    assert ("along a tree" in explain_text(plan)) == (plan.tree is not None)
    pattern = labelled_pattern(wanted, known, rows=True)
    assert sorted(rows_of(pattern, graph)) == want
    assert rows_of(pattern, graph) == rows_of(pattern, graph, PIECES)


def endless() -> tuple[PatternGraph, DataGraph]:
    """A pattern whose tree is a path, since all its vertices share all candidates: some 10**14 bindings."""
    graph, known = labelled_graph(1, 300, 60.0, 1)
    return labelled_pattern(nx.path_graph(9), known, rows=False), graph


@pytest.mark.parametrize("threads", [1, 2])
def test_a_count_along_a_tree_stops(threads: int) -> None:
    pattern, graph = endless()
    with mock.patch.object(tree, "MOST_CACHED", 1):
        plan = make_plan(pattern, graph)
    assert plan.tree is not None
    for seconds in (0.3, 3.0, 30.0):  # it is stopped before it begins where others have the processors for so long
        control = Control(timeout=seconds)
        with pytest.raises(QueryTimeout):
            HostExecutor(threads).count(plan, control)
        if control.rows.sum() > 0:
            break
    assert control.rows.sum() > 0
    control = Control(cancelled=threading.Event())
    threading.Timer(0.2, control.cancelled.set).start()  # type: ignore[union-attr]
    with pytest.raises(ExecutionError, match="interrupted"):
        HostExecutor(threads).count(plan, control)


def hub_and_path() -> tuple[PatternGraph, DataGraph, nx.Graph]:
    """A path through a graph whose hubs are joined: most bindings go from hub to hub, which averages do not show."""
    rng = np.random.default_rng(3)
    known = nx.Graph()
    known.add_nodes_from(range(600), label=0)
    known.add_edges_from((int(a), int(b)) for a, b in (600 * rng.random((3000, 2)) ** 4).astype(int) if a != b)
    nx.set_node_attributes(known, {v: v % 9 for v in known}, "label")
    a, b = np.array(known.edges).T
    graph = DataGraph(ArraySource(a, np.full(len(a), 600), b, 601))
    wanted = nx.path_graph(9)
    pattern = labelled_pattern(wanted, known, rows=False)
    return pattern, graph, known


def test_walks_down_a_tree_see_what_averages_do_not() -> None:
    pattern, graph, _ = hub_and_path()
    with mock.patch.object(tree, "LOOK", np.inf), mock.patch.object(passes, "LOOK", np.inf):
        blind = make_plan(pattern, graph)
    plan = make_plan(pattern, graph)
    assert plan.tree is not None
    assert blind.tree is not None
    rows = make_plan(pattern, graph, counting="never")
    matches = HostExecutor(1).count(plan)
    assert HostExecutor(1).count(blind) == matches
    # As many as there are, but for a small factor; without looking, they are taken for a fraction.
    assert matches / 3 < rows.steps[-1].estimate * rows.automorphisms < matches * 3
    assert blind.steps[-1].estimate < matches / 4
    assert blind.cost < plan.cost / 3


def test_a_search_that_the_model_takes_for_nothing_is_looked_at_where_its_tree_is_dear() -> None:
    pattern, graph, _ = hub_and_path()
    plain = passes.modelled

    def nothing(estimates: Estimates, order: tuple[int, ...]) -> Forecast:
        found = plain(estimates, order)
        return replace(found, rows=tuple(1e-3 for _ in order), work=tuple(1e-3 for _ in order))

    with mock.patch.object(passes, "modelled", nothing), mock.patch.object(passes, "LOOK", 100.0):
        plan = make_plan(pattern, graph)
    assert plan.tree is not None
    assert plan.tree.cost > 100.0
    assert plan.cost > plan.tree.cost


@pytest.mark.parametrize("seed", range(3))
def test_dear_trees_give_way_to_sums(seed: int) -> None:
    """And who walks along no trees plans a sum himself; both find what the tree does."""
    graph, known = labelled_graph(seed, 60, 4.0, 4)
    wanted = nx.minimum_spanning_tree(known.subgraph(list(nx.bfs_tree(known, max(known, key=known.degree)))[:8]))
    pattern = labelled_pattern(wanted, known, rows=False)
    plan = make_plan(pattern, graph)
    if plan.tree is None:
        pytest.skip("symmetry serves this one better")
    assert plan.otherwise is not None
    other = plan.otherwise()
    assert other is plan.otherwise()
    with mock.patch.object(passes, "BESIDE", 0.0), mock.patch.object(tree, "LOOK", -1.0):
        counting = make_plan(pattern, graph)
        dear = replace(plan.tree, cost=1e12)
        with mock.patch.object(passes, "_tree", return_value=dear):
            sums = make_plan(pattern, graph)
    found = {HostExecutor(1).count(each) for each in (plan, counting, sums)}
    if other is not None:
        found.add(HostExecutor(1).count(replace(plan, tree=None, counting=other)))
    assert len(found) == 1


def test_sums_of_thousands_of_terms_are_not_written_beside_a_tree() -> None:
    """A path of twelve vertices with one label: what must differ multiplies out to a term for each way to merge them."""
    graph, known = labelled_graph(0, 60, 4.0, 1)
    pattern = labelled_pattern(nx.path_graph(12), known, rows=False)
    plan = make_plan(pattern, graph)
    assert plan.tree is not None
    assert plan.otherwise is not None
    looked = 0

    def look() -> None:
        nonlocal looked
        looked += 1

    with graph.watched(look):
        assert plan.otherwise() is None
    assert looked < 2_000


def test_a_memory_limit_leaves_the_search() -> None:
    """Where there is no room for what a tree keeps, the steps count."""
    graph, known = labelled_graph(3, 60, 4.0, 4)
    wanted = known.subgraph(list(nx.bfs_tree(known, max(known, key=known.degree)))[:9]).copy()
    with spaces():
        plan = make_plan(labelled_pattern(wanted, known, rows=False), graph)
    assert plan.tree is not None
    small = HostExecutor(1, memory_limit=plan.tree.worker_bytes - 1, block_rows=1)
    assert small.memory(plan) == plan.tree.worker_bytes
    with mock.patch("graphdb.execute.host.count_along_tree", side_effect=AssertionError):
        found = small.count(plan)
    assert found == HostExecutor(1).count(plan)


def test_refinement_detects_patterns_without_matches() -> None:
    """A candidate that no edge leads to empties every set."""
    graph, known = labelled_graph(3, 60, 2.5, 4)
    lonely = next(iter(nx.isolates(known)))
    wanted = known.subgraph(list(nx.bfs_tree(known, max(known, key=known.degree)))[:9]).copy()
    pattern = labelled_pattern(wanted, known, rows=False)
    none = replace(pattern.vertices[0], candidates=np.array([lonely], np.int64))
    plan = make_plan(replace(pattern, vertices=(none, *pattern.vertices[1:])), graph)
    assert plan.tree is not None
    assert not any(map(len, plan.tree.space.candidates))
    assert HostExecutor(1).count(plan) == 0


def test_candidates_that_do_not_exist_are_an_error() -> None:
    graph, known = labelled_graph(3, 60, 4.0, 4)
    pattern = labelled_pattern(nx.path_graph(9), known, rows=False)
    wrong = replace(pattern.vertices[3], candidates=np.array([10_000], np.int64))
    with pytest.raises(ExecutionError, match="does not have"):
        make_plan(replace(pattern, vertices=(*pattern.vertices[:3], wrong, *pattern.vertices[4:])), graph)


def test_brute_force_agrees_on_the_oracle_itself() -> None:
    """NetworkX and brute force say the same of one small labelled pattern."""
    data = Data({(0, 1, 1), (1, 1, 2), (2, 1, 0), (2, 1, 3)}, 4, 0, None)
    edges = tuple(PatternEdge(f"e{i}", a, b, (1,), False, 0) for i, (a, b) in enumerate([(0, 1), (1, 2)]))
    pattern = PatternGraph(
        tuple(PatternVertex(f"v{i}") for i in range(3)), edges, (Clause(MatchMode.DIFFERENT_NODES, (0, 1, 2)),)
    )
    known = GraphMatcher(nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3)]), nx.path_graph(3))
    assert sum(1 for _ in matches(pattern, data)) == sum(1 for _ in known.subgraph_monomorphisms_iter())

"""Bundles of pattern edges between the same two vertices, in chains, stars and cycles, over multigraphs with loops.

Where elements may repeat, each pattern edge has its own choice of data edges, so that a count factorises; where edges
differ, those of one pair of data vertices share its edges.  The oracle takes every binding of the few vertices and
multiplies these numbers, Python's integers.  ``GRAPHDB_FUZZ`` multiplies the number of examples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import perm, prod

import pytest
from hypothesis import HealthCheck, Phase, event, given, note, settings
from hypothesis import strategies as st

import graphdb
from graphdb.relational import match_planner
from graphdb.relational.edges import bundles
from tests.fuzz import scaled
from tests.oracle.test_multigraph_counts import MOST
from tests.stops import Stopwatch, answered

EDGE = tuple[int, int, str]
"""(start, end, label) of a data edge."""

Count = Callable[[Counter[EDGE], "Bundles", tuple[int, ...]], int]
"""The matches of a pattern whose vertices are bound."""

ARROWS = {"out": "-[:{}]->", "in": "<-[:{}]-", "both": "-[:{}]-"}


@dataclass(frozen=True)
class Bundles:
    """A pattern: (vertex, vertex, direction, labels, number of such edges)."""

    vertices: int
    links: tuple[tuple[int, int, str, str, int], ...]

    def text(self) -> str:
        written = (
            f"(v{a}){ARROWS[direction].format(labels)}(v{b})"
            for a, b, direction, labels, count in self.links
            for _ in range(count)
        )
        return ", ".join(written).replace("[:]", "[]")


def choices(data: Counter[EDGE], x: int, y: int, direction: str, labels: str) -> int:
    """The data edges that a pattern edge may be, between two data vertices."""
    wanted = labels.split("|") if labels else "RST"
    out, back = (sum(data[one, other, label] for label in wanted) for one, other in ((x, y), (y, x)))
    return {"out": out, "in": back, "both": out if x == y else out + back}[direction]


def walks(data: Counter[EDGE], pattern: Bundles, at: tuple[int, ...]) -> int:
    return prod(choices(data, at[a], at[b], way, labels) ** n for a, b, way, labels, n in pattern.links)


def trails(data: Counter[EDGE], pattern: Bundles, at: tuple[int, ...]) -> int:
    """All of one label.  Directed edges choose first; undirected ones have what is left of both directions."""
    directed: Counter[tuple[int, int]] = Counter()
    undirected: Counter[tuple[int, int]] = Counter()
    for a, b, way, _, n in pattern.links:
        x, y = (at[b], at[a]) if way == "in" else (at[a], at[b])
        if way == "both":
            undirected[min(x, y), max(x, y)] += n
        else:
            directed[x, y] += n
    found = prod(perm(data[*pair, "R"], n) for pair, n in directed.items())
    for (x, y), n in undirected.items():
        pairs = {(x, y), (y, x)}
        found *= perm(max(sum(data[*pair, "R"] - directed[pair] for pair in pairs), 0), n)
    return found


def database(data: Counter[EDGE], vertices: int) -> graphdb.Database:
    found = graphdb.connect(device="cpu", threads=1)
    nodes = [f"(v{i} {{k: {i}}})" for i in range(vertices)]
    links = [f"(v{a})-[:{label}]->(v{b})" for (a, b, label), count in sorted(data.items()) for _ in range(count)]
    found.query("CREATE " + ", ".join(nodes + links))
    return found


def by_vertices(data: Counter[EDGE], vertices: int, pattern: Bundles, count: Count) -> dict[tuple[int, ...], int]:
    found = {at: count(data, pattern, at) for at in product(range(vertices), repeat=pattern.vertices)}
    return {at: number for at, number in found.items() if number}


@st.composite
def multigraphs(draw: st.DrawFn, labels: Sequence[str], most: int) -> tuple[Counter[EDGE], int]:
    vertices = draw(st.integers(2, 4))
    end = st.integers(0, vertices - 1)
    edges = st.dictionaries(st.tuples(end, end, st.sampled_from(labels)), st.integers(1, most), min_size=1, max_size=9)
    both_ways = {(0, 1, labels[0]): draw(st.integers(1, most)), (1, 0, labels[0]): draw(st.integers(1, most))}
    return Counter(draw(edges) | both_ways), vertices


@st.composite
def patterns(draw: st.DrawFn, labels: list[str], sizes: list[int]) -> Bundles:
    vertices = draw(st.integers(2, 5))
    shape = draw(st.sampled_from(["chain", "star", "cycle", "loop"]))
    pairs = [(i - 1, i) if shape != "star" else (0, i) for i in range(1, vertices)]
    if shape == "cycle" and vertices > 2:
        pairs.append((vertices - 1, 0))
    if shape == "loop":
        pairs.append((0, 0))
    arrows = st.sampled_from(["both", "both", "out", "in"])
    links = []
    for a, b in pairs:
        kinds = draw(st.integers(1, 2))
        links += [
            (a, b, draw(arrows), draw(st.sampled_from(labels)), draw(st.sampled_from(sizes))) for _ in range(kinds)
        ]
    return Bundles(vertices, tuple(links))


QUICK = settings(
    max_examples=scaled(20),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)


@QUICK
@given(multigraphs("RRS", 4), patterns(["R", "R", "S", "R|S", ""], [1, 2, 3, 9, 12]))
def test_walks_through_bundles(multigraph: tuple[Counter[EDGE], int], pattern: Bundles) -> None:
    data, vertices = multigraph
    found = by_vertices(data, vertices, pattern, walks)
    text = f"MATCH REPEATABLE ELEMENTS {pattern.text()} RETURN"
    note(f"{dict(data)}\n{text} {sum(found.values())}")
    event(f"{len(bin(sum(found.values()))) // 32 * 32} bits")
    with database(data, vertices) as db:
        assert answered(db, f"{text} count(*)", within=10).scalar() == sum(found.values())
        assert answered(db, f"RETURN EXISTS {{ {text} 1 AS one }}", within=10).scalar() is bool(found)
        grouped: Counter[int] = Counter()
        for at, number in found.items():
            grouped[at[0]] += number
        if max(grouped.values(), default=0) <= MOST:
            assert dict(answered(db, f"{text} v0.k, count(*)", within=10).fetchall()) == grouped


@QUICK
@given(multigraphs("R", 4), patterns(["R"], [1, 1, 2, 3]))
def test_trails_through_bundles(multigraph: tuple[Counter[EDGE], int], pattern: Bundles) -> None:
    data, vertices = multigraph
    found = by_vertices(data, vertices, pattern, trails)
    text = f"MATCH {pattern.text()} RETURN"
    note(f"{dict(data)}\n{text} {sum(found.values())}")
    with database(data, vertices) as db:
        assert answered(db, f"{text} count(*)", within=10).scalar() == sum(found.values())
        assert answered(db, f"RETURN EXISTS {{ {text} 1 AS one }}", within=10).scalar() is bool(found)


def assignments(data: Counter[EDGE], pattern: Bundles, at: tuple[int, ...]) -> int:
    """Choices of different data edges, one for each pattern edge: by sets of those that are taken."""
    numbered = [edge for edge, count in sorted(data.items()) for _ in range(count)]
    found: Counter[int] = Counter({0: 1})
    for a, b, way, labels, n in pattern.links:
        pairs = {"out": {(at[a], at[b])}, "in": {(at[b], at[a])}}
        pairs["both"] = pairs["out"] | pairs["in"]
        wanted = labels.split("|") if labels else "RST"
        bits = [1 << i for i, (x, y, label) in enumerate(numbered) if label in wanted and (x, y) in pairs[way]]
        for _ in range(n):
            more: Counter[int] = Counter()
            for taken, count in found.items():
                for bit in bits:
                    if not taken & bit:
                        more[taken | bit] += count
            found = more
    return found.total()


MODES = ["DIFFERENT EDGES", "REPEATABLE ELEMENTS", "DIFFERENT NODES"]
LABELS = st.sampled_from(
    [["R", "S"], ["R", "R|S"], ["R", "S", "R|S", ""], ["", "R|S"], ["R|S", "S|T"], ["R|S", "S|T", "T|R", ""]]
)


@QUICK
@given(multigraphs("RRST", 3), LABELS.flatmap(lambda labels: patterns(labels, [1, 1, 2])), st.sampled_from(MODES))
def test_choices_are_multiplied(multigraph: tuple[Counter[EDGE], int], pattern: Bundles, mode: str) -> None:
    """The vertices are matched alone wherever that can be, by no vertex, by one, by two, and whether there are any."""
    data, vertices = multigraph
    found = by_vertices(data, vertices, pattern, walks if mode == "REPEATABLE ELEMENTS" else assignments)
    if mode == "DIFFERENT NODES":
        found = {at: number for at, number in found.items() if len({*at}) == len(at)}
    text = f"MATCH {mode} {pattern.text()} RETURN"
    note(f"{dict(data)}\n{text} {sum(found.values())}")
    with pytest.MonkeyPatch.context() as patch, database(data, vertices) as db:
        patch.setattr(match_planner, "WORTH", -1.0)
        event("multiplied" if "bundles" in str(db.query(f"EXPLAIN {text} v0.k, v1.k, count(*)")) else "searched")
        assert db.query(f"{text} count(*)").scalar() == sum(found.values())
        for ends in (1, 2):
            grouped: Counter[tuple[int, ...]] = Counter()
            for at, number in found.items():
                grouped[at[:ends]] += number
            keys = ", ".join(f"v{i}.k" for i in range(ends))
            assert {row[:-1]: row[-1] for row in db.query(f"{text} {keys}, count(*)").fetchall()} == grouped
            assert {*db.query(f"{text} DISTINCT {keys}").fetchall()} == {*grouped}
        assert db.query(f"RETURN EXISTS {{ {text} 1 AS one }}").scalar() is bool(found)


WEIGHTS = {
    "R1|R2": ("R", ""),
    "R1": ("R", "{}.w = 1"),
    "R2": ("R", "{}.w > $w"),
    "R1|S1": ("R|S", "{}.w = 1"),
    "R2|S2": ("", "{}.w > $w"),
    "S0": ("S", "{}.w IS NULL"),
    "S0|S1|S2": ("S", ""),
    "R1|R2|S0|S1|S2": ("", ""),
}
"""Labels and conditions of pattern edges, by the data edges that these leave: of a label, with a property, 0 for none."""


def weighted(data: Counter[EDGE], vertices: int) -> graphdb.Database:
    """A database of edges whose labels say what their property is."""
    found = graphdb.connect(device="cpu", threads=1)
    links = [
        f"(v{a})-[:{label[0]}{'' if label[1] == '0' else f' {{w: {label[1]}}}'}]->(v{b})"
        for (a, b, label), count in sorted(data.items())
        for _ in range(count)
    ]
    found.query("CREATE " + ", ".join([f"(v{i} {{k: {i}}})" for i in range(vertices)] + links))
    return found


def with_conditions(pattern: Bundles) -> str:
    written: list[str] = []
    conditions: list[str] = []
    for a, b, way, admitted, count in pattern.links:
        labels, condition = WEIGHTS[admitted]
        for _ in range(count):
            edge = f"e{len(written)}"
            written.append(f"(v{a}){ARROWS[way].replace(':{}', edge + (f':{labels}' if labels else ''))}(v{b})")
            conditions += [condition.format(edge)] if condition else []
    return ", ".join(written) + (f" WHERE {' AND '.join(conditions)}" if conditions else "")


@QUICK
@given(
    multigraphs(["R1", "R2", "S0", "S1", "S2"], 2),
    patterns(list(WEIGHTS), [1, 1, 2]),
    st.sampled_from(MODES),
)
def test_conditions_on_edges_of_bundles(multigraph: tuple[Counter[EDGE], int], pattern: Bundles, mode: str) -> None:
    data, vertices = multigraph
    found = by_vertices(data, vertices, pattern, walks if mode == "REPEATABLE ELEMENTS" else assignments)
    if mode == "DIFFERENT NODES":
        found = {at: number for at, number in found.items() if len({*at}) == len(at)}
    text = f"MATCH {mode} {with_conditions(pattern)} RETURN"
    given = {"w": 1} if "$w" in text else {}
    note(f"{dict(data)}\n{text} {sum(found.values())}")
    with pytest.MonkeyPatch.context() as patch, weighted(data, vertices) as db:
        patch.setattr(match_planner, "WORTH", -1.0)
        event("multiplied" if "bundles" in str(db.query(f"EXPLAIN {text} v0.k, v1.k, count(*)", given)) else "searched")
        assert db.query(f"{text} count(*)", given).scalar() == sum(found.values())
        grouped: Counter[tuple[int, ...]] = Counter()
        for at, number in found.items():
            grouped[at[:2]] += number
        rows = db.query(f"{text} v0.k, v1.k, count(*)", given).fetchall()
        assert {(a, b): number for a, b, number in rows} == grouped
        assert {*db.query(f"{text} DISTINCT v0.k, v1.k", given).fetchall()} == {*grouped}


@pytest.mark.parametrize("arrow", ["both", "out"])
def test_bundles_of_conditions_that_no_search_can_go_through(arrow: str) -> None:
    """Three bundles of six edges, whose conditions are nested, overlap and leave others out."""
    ends = [(0, 2, 4), (3, 0, 3), (1, 0, 3), (0, 3, 1), (1, 1, 3), (1, 2, 4), (2, 3, 2), (0, 1, 3)]
    data = Counter({(a, b, label): count for a, b, count in ends for label in ("R1", "R2", "S0", "S1")})
    admitted = ["R1|R2", "R1", "R1|S1", "S0|S1|S2", "R1|R2|S0|S1|S2", "R2"]
    pattern = Bundles(4, tuple((i, i + 1, arrow, each, 1) for i in range(3) for each in admitted))
    found = by_vertices(data, 4, Bundles(2, pattern.links[:6]), assignments)
    text = f"MATCH DIFFERENT NODES {with_conditions(pattern)} RETURN"
    expected = {
        at: number
        for at in permutations(range(4))
        if (number := prod(found.get((at[i], at[i + 1]), 0) for i in range(3)))
    }
    with weighted(data, 4) as db:
        watch = Stopwatch()
        assert answered(db, f"{text} count(*)", w=1, within=20).scalar() == sum(expected.values())
        rows = answered(db, f"{text} v0.k, v1.k, v2.k, v3.k, count(*)", w=1, within=20).fetchall()
        assert watch.seconds() < 10
        assert {tuple(at): number for *at, number in rows} == expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("arrow", ["both", "out"])
def test_edges_of_one_pair_choose_among_parallel_ones(monkeypatch: pytest.MonkeyPatch, mode: str, arrow: str) -> None:
    """The vertices are matched where one triple is all there is for two pattern edges."""
    data = Counter({(0, 1, "R"): 2})
    pattern = Bundles(2, ((0, 1, arrow, "R", 1), (0, 1, arrow, "R|S", 1)))
    found = by_vertices(data, 2, pattern, walks if mode == "REPEATABLE ELEMENTS" else assignments)
    monkeypatch.setattr(match_planner, "WORTH", -1.0)
    with database(data, 2) as db:
        rows = db.query(f"MATCH {mode} {pattern.text()} RETURN v0.k, v1.k, count(*)").fetchall()
    assert {(a, b): number for a, b, number in rows} == found
    assert found[0, 1] == (4 if mode == "REPEATABLE ELEMENTS" else 2)


@pytest.mark.parametrize("mode", ["", "REPEATABLE ELEMENTS "])
@pytest.mark.parametrize("arrow", ["both", "out"])
def test_bundles_that_no_search_can_go_through(mode: str, arrow: str) -> None:
    """Three bundles of five and seven edges between four vertices; counted, grouped by two, and whether there are any."""
    ends = [(0, 2, 4), (3, 0, 3), (1, 0, 3), (0, 3, 1), (1, 1, 3), (1, 2, 4), (2, 3, 2), (0, 1, 3)]
    data = Counter({(a, b, "R"): 3 * count for a, b, count in ends})
    for size in (5, 7):
        pattern = Bundles(4, tuple((i, i + 1, arrow, "R", size) for i in range(3)))
        found = by_vertices(data, 4, pattern, walks if mode else trails)
        grouped: Counter[tuple[int, ...]] = Counter()
        for at, number in found.items():
            grouped[at[:2]] += number
        with database(data, 4) as db:
            text = f"MATCH {mode}{pattern.text()} RETURN"
            assert answered(db, f"{text} count(*)", within=10).scalar() == sum(found.values())
            assert answered(db, f"RETURN EXISTS {{ {text} 1 AS one }}", within=10).scalar() is bool(found)
            if max(grouped.values()) <= MOST:
                rows = answered(db, f"{text} v0.k, v1.k, count(*)", within=10).fetchall()
                assert {(a, b): number for a, b, number in rows} == grouped


@QUICK
@given(multigraphs("RRST", 3), LABELS.flatmap(lambda labels: patterns(labels, [1, 1, 2])), st.sampled_from(MODES[::2]))
def test_assignments_are_counted_for_any_sets(
    multigraph: tuple[Counter[EDGE], int], pattern: Bundles, mode: str
) -> None:
    """As where sets overlap: nested and disjoint ones are counted in the same way then."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundles, "choice_order", lambda *_: None)
        test_choices_are_multiplied.hypothesis.inner_test(multigraph, pattern, mode)  # type: ignore[attr-defined]


def by_partitions(data: Counter[EDGE], x: int, y: int, direction: str, labels: list[str]) -> int:
    """Choices of different edges between two vertices: inclusion-exclusion over which pattern edges take the same one."""

    def counted(blocks: tuple[tuple[frozenset[str], int], ...], at: int) -> int:
        if at == len(labels):
            return prod(choices(data, x, y, direction, "|".join(common) or "none") for common, _ in blocks)
        own = frozenset(labels[at].split("|") if labels[at] else "RST")
        found = counted((*blocks, (own, 1)), at + 1)
        for i, (common, size) in enumerate(blocks):
            # A block of b edges has the factor (-1)^(b - 1) (b - 1)!, of which its b-th edge brings -(b - 1).
            found -= size * counted((*blocks[:i], (common & own, size + 1), *blocks[i + 1 :]), at + 1)
        return found

    return counted((), 0)


@pytest.mark.parametrize("arrow", ["both", "out"])
@pytest.mark.parametrize("labels", [("R|S", "S|T"), ("R|S", "S|T", "T|R"), ("", "R|S", "S|T")])
def test_bundles_of_labels_that_overlap(labels: tuple[str, ...], arrow: str) -> None:
    """Three bundles of four to six edges that choose from overlapping sets, none of which is part of the other."""
    ends = [(0, 2, 4), (3, 0, 3), (1, 0, 3), (0, 3, 1), (1, 1, 3), (1, 2, 4), (2, 3, 2), (0, 1, 3)]
    data = Counter({(a, b, label): count for a, b, count in ends for label in "RST"})
    size = 2 if len(labels) == 3 else 3
    pattern = Bundles(4, tuple((i, i + 1, arrow, each, size) for i in range(3) for each in labels))
    text = f"MATCH {pattern.text()} RETURN"
    with database(data, 4) as db:
        assert "bundles" in str(db.query(f"EXPLAIN {text} v0.k, v1.k, count(*)"))
        watch = Stopwatch()
        total = answered(db, f"{text} count(*)", within=20).scalar()
        rows = answered(db, f"{text} v0.k, v1.k, v2.k, v3.k, count(*)", within=20).fetchall()
        assert watch.seconds() < 10
        assert answered(db, f"RETURN EXISTS {{ {text} 1 AS one }}", within=10).scalar() is True
    assert total == sum(number for *_, number in rows)
    for *at, number in [row for row in rows if len({*row[:-1]}) == 4]:
        assert number == prod(by_partitions(data, at[i], at[i + 1], arrow, [*labels] * size) for i in range(3)), at


@pytest.mark.parametrize("arrow", ["-[:R]-", "--", "-[:R|S]-", "-->"])
@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("edges", [9, 20, 42])
def test_chains_of_bundles(arrow: str, length: int, edges: int) -> None:
    """Each pattern edge has its choice of all edges between two vertices, whatever their number and direction."""
    ends = [(0, 2, 4), (3, 0, 3), (1, 0, 3), (0, 3, 1), (1, 1, 3), (1, 2, 4), (2, 3, 2), (0, 1, 3)]
    data = Counter({(a, b, "R"): count for a, b, count in ends})
    data |= Counter({(0, 1, "S"): 1, (2, 3, "S"): 2}) if arrow != "-[:R]-" else {}
    direction, labels = "out" if arrow.endswith(">") else "both", arrow.strip("-<>[]:")
    pattern = Bundles(length + 1, tuple((i, i + 1, direction, labels, edges) for i in range(length)))
    found = by_vertices(data, 4, pattern, walks)
    with database(data, 4) as db:
        text = f"MATCH REPEATABLE ELEMENTS {pattern.text()} RETURN count(*)"
        assert answered(db, text, within=10).scalar() == sum(found.values())

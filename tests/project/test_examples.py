"""The examples run, and say what an independent count says."""

from __future__ import annotations

import gzip
import re
from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest

from graphdb.data import GEOGRAPHY
from tests.programs import script

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture(scope="module")
def borders() -> nx.Graph:
    """The countries and their borders, read by a line's three words."""
    graph = nx.Graph()
    with gzip.open(GEOGRAPHY, "rt", encoding="utf-8") as lines:
        for line in lines:
            subject, predicate, rest = line.split(" ", 2)
            if predicate.endswith("#neighbour>"):
                graph.add_edge(subject, rest.split(" ")[0])
    return graph


def run(name: str) -> str:
    """What an example prints."""
    ran = script(ROOT / "examples" / name)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_every_example_is_tested() -> None:
    assert [path.name for path in EXAMPLES] == [
        "circles.py",
        "four_modes.py",
        "from_neo4j.py",
        "from_pandas.py",
        "from_rdf.py",
        "neighbours.py",
        "notebook_style.py",
        "own_mining.py",
    ]


def test_neighbours(borders: nx.Graph) -> None:
    printed = run("neighbours.py")
    with gzip.open(GEOGRAPHY, "rt", encoding="utf-8") as lines:
        words = [line.split(" ", 2) for line in lines]
    names = {s: o.split('"')[1] for s, p, o in words if p.endswith("#name>")}
    most = sorted(
        ((count, names[country]) for country, count in nx.triangles(borders).items()), key=lambda x: (-x[0], x[1])
    )
    assert f"{len(words):,} triples loaded" in printed
    countries = printed.split("Countries in most triangles:")[1]
    for count, name in most[:5]:
        assert re.search(rf"{re.escape(name)}\W+{count}\b", countries)


def test_four_modes(borders: nx.Graph) -> None:
    walks = [(a, b, c, d) for a in borders for b in borders[a] for c in borders[b] for d in borders[c]]
    trails = [w for w in walks if len({frozenset(pair) for pair in pairwise(w)}) == 3]
    paths = [w for w in walks if len(set(w)) == 4]
    induced = [w for w in paths if borders.subgraph(w).number_of_edges() == 3]
    printed = [int(found.replace(",", "")) for found in re.findall(r"([\d,]+) paths", run("four_modes.py"))]
    assert printed == [len(walks), len(trails), len(paths), len(induced)]


def test_notebook_style() -> None:
    pytest.importorskip("pandas")
    printed = run("notebook_style.py")
    with gzip.open(GEOGRAPHY, "rt", encoding="utf-8") as lines:
        words = [line.removesuffix(" .\n").split(" ", 2) for line in lines]
    (europe,) = (s for s, p, o in words if p.endswith("#name>") and o == '"Europe"')
    countries = {s for s, p, o in words if p.endswith("#parentFeature>") and o == europe}
    cities = {s for s, p, o in words if p.endswith("#parentCountry>") and o in countries}
    people = {s: int(o.split('"')[1]) for s, p, o in words if p.endswith("#population>") and s in cities}
    large = [city for city, count in people.items() if count > 1_000_000]
    assert f"{len(large)} cities of Europe" in printed
    assert "Moscow" in printed


@pytest.mark.parametrize(
    ("name", "packages"),
    [("from_neo4j", ()), ("from_pandas", ("pandas", "pyarrow", "polars")), ("from_rdf", ("rdflib",))],
)
def test_tasks_of_three_users(name: str, packages: tuple[str, ...]) -> None:
    """Each task compares its own answer: with Python's, pandas', DuckDB's, NetworkX's or rdflib's."""
    for package in packages:
        pytest.importorskip(package)
    text = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    assert [int(number) for number in re.findall(r"^        # (\d+)\. ", text, re.M)] == list(range(1, 13))
    assert all("assert " in task for task in re.split(r"^        # \d+\. ", text, flags=re.M)[1:])
    assert run(f"{name}.py") == "12 tasks done\n"


def test_own_mining(borders: nx.Graph) -> None:
    printed = run("own_mining.py")
    fours = sum(len(clique) == 4 for clique in nx.enumerate_all_cliques(borders))
    assert f"{fours} times four countries" in printed
    assert "have 6 patterns" in printed
    assert "MINE counts the same" in printed
    groups = set()
    for group in nx.enumerate_all_cliques(borders):
        if len(group) == 3:  # eight of ten pairs hold a triangle, and so does every connected way to add a vertex
            around = {other for country in group for other in borders[country]}
            around |= {further for other in around for further in borders[other]}
            groups |= {frozenset([*group, a, b]) for a in around for b in around if len({*group, a, b}) == 5}
    dense = [g for g in groups if borders.subgraph(g).number_of_edges() >= 8]
    assert f"{len(dense)} groups of five" in printed
    found, known = re.findall(r"(\d+) patterns .* MINE finds (\d+)", printed)[0]
    assert int(found) == int(known) > 3


def circles_of(edges: list[tuple[str, str]]) -> set[frozenset[str]]:
    return {frozenset(found) for found in nx.simple_cycles(nx.DiGraph(edges), length_bound=3) if len(found) == 3}


def test_circles() -> None:
    printed = run("circles.py")
    with gzip.open(GEOGRAPHY, "rt", encoding="utf-8") as lines:
        words = [line.split(" ")[:3] for line in lines]
    pairs = [(s, o) for s, p, o in words if p.endswith("#neighbour>") and s > o]
    stream = [pair[::-1] if number % 3 == 0 else pair for number, pair in enumerate(pairs)]
    closed = opened = 0
    before: set[frozenset[str]] = set()
    for end in range(30, len(stream) + 30, 30):
        now = circles_of(stream[max(end - 120, 0) : end])
        closed, opened, before = closed + len(now - before), opened + len(before - now), now
    assert closed > 5
    assert f"{closed} circles closed, {opened} opened again, {len(before)} are there" in printed

"""Small subgraphs in SNAP graphs: ours under DIFFERENT NODES, DuckDB's self-joins, igraph, NetworkX.

Run as ``python -m tests.benchmarks.subgraphs``.  Counts are distinct subgraphs (edge-induced).  Ours finds each
embedding and divides by the pattern's automorphisms; DuckDB is told to find each subgraph once where an order of the
vertices says so; igraph and NetworkX use what they have for the pattern.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from tests.benchmarks.harness import (
    CORES,
    SHARED,
    CannotExpress,
    Engine,
    Table,
    against,
    chosen,
    geomean,
    main,
    measure,
    options,
    progress,
    scratch,
    surroundings,
    workers,
)

GRAPHS = ("facebook-combined", "wiki-Vote", "email-Enron", "ca-AstroPh-cc1", "cit-HepTh")


@dataclass(frozen=True, slots=True)
class Pattern:
    """``smaller`` are pairs of vertices whose order makes each subgraph be found once."""

    name: str
    edges: tuple[tuple[int, int], ...]
    automorphisms: int
    smaller: tuple[tuple[int, int], ...]

    @property
    def order(self) -> int:
        """How many vertices it has."""
        return 1 + max(max(edge) for edge in self.edges)


PATTERNS = (
    Pattern("triangle", ((0, 1), (0, 2), (1, 2)), 6, ((0, 1), (1, 2))),
    Pattern("4-clique", tuple(combinations(range(4), 2)), 24, ((0, 1), (1, 2), (2, 3))),
    Pattern("diamond", ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3)), 4, ((0, 1), (2, 3))),
    Pattern("4-cycle", ((0, 1), (0, 2), (1, 3), (2, 3)), 8, ((0, 1), (0, 2), (0, 3), (1, 2))),
    Pattern("tailed triangle", ((0, 1), (0, 2), (1, 2), (0, 3)), 2, ((1, 2),)),
    Pattern("3-star", ((0, 1), (0, 2), (0, 3)), 6, ((1, 2), (2, 3))),
)


class Graphdb:
    """Ours, over one edge label; ``-[:e]-`` is the undirected edge."""

    def load(self, source: Path, folder: Path) -> int:
        lines = folder / "edges.nt"
        with lines.open("w") as file:
            file.writelines(f"<v:{a}> <v:e> <v:{b}> .\n" for a, b in _edges(source))
        self.open(folder)
        triples = self._database.load(lines).triples
        lines.unlink()
        return int(triples)

    def open(self, folder: Path) -> None:
        import graphdb

        self._database = graphdb.connect(folder / "graph.duckdb")

    def count(self, pattern: Pattern) -> int:
        edges = ", ".join(f"(v{a})-[:<v:e>]-(v{b})" for a, b in pattern.edges)
        found = self._database.query(f"MATCH DIFFERENT NODES {edges} RETURN count(*)").scalar()
        subgraphs, rest = divmod(int(found), pattern.automorphisms)
        return subgraphs if not rest else -int(found)


class DuckDB:
    """Self-joins of a table with both directions of each edge."""

    def load(self, source: Path, folder: Path) -> int:
        self.open(folder)
        self._connection.execute(
            "CREATE TABLE line AS SELECT a, b FROM read_csv($source, delim = '\t', header = false, skip = 1, auto_detect = false, "
            "columns = {'a': 'INTEGER', 'b': 'INTEGER'})",
            {"source": str(source)},
        )
        self._connection.execute(
            "CREATE TABLE edge AS SELECT a, b FROM line UNION SELECT b, a FROM line ORDER BY 1, 2; DROP TABLE line"
        )
        return int(self._connection.sql("FROM edge").count("*").fetchall()[0][0]) // 2

    def open(self, folder: Path) -> None:
        import duckdb

        self._connection = duckdb.connect(str(folder / "edges.duckdb"), config={"threads": CORES})

    def count(self, pattern: Pattern) -> int:
        columns: dict[int, str] = {}
        conditions = []
        for number, (a, b) in enumerate(pattern.edges):
            for vertex, column in ((a, "a"), (b, "b")):
                here = f"e{number}.{column}"
                if vertex in columns:
                    conditions.append(f"{here} = {columns[vertex]}")
                columns.setdefault(vertex, here)
        conditions += [f"{columns[a]} < {columns[b]}" for a, b in pattern.smaller]
        conditions += [
            f"{columns[a]} <> {columns[b]}"
            for a, b in combinations(range(pattern.order), 2)
            if (a, b) not in pattern.smaller and (a, b) not in pattern.edges
        ]
        tables = ", ".join(f"edge e{number}" for number in range(len(pattern.edges)))
        sql = f"SELECT count(*) FROM {tables} WHERE {' AND '.join(conditions)}"
        return int(self._connection.sql(sql).fetchall()[0][0])


class IGraph:
    """igraph: its lists of triangles and cliques, degrees for stars, VF2 for the rest."""

    def load(self, source: Path, folder: Path) -> int:
        import igraph

        self._module = igraph
        names: dict[int, int] = {}
        edges = [(names.setdefault(a, len(names)), names.setdefault(b, len(names))) for a, b in _edges(source)]
        self._graph = igraph.Graph(len(names), edges)
        (folder / "source").write_text(str(source))
        return len(edges)

    def open(self, folder: Path) -> None:
        self.load(Path((folder / "source").read_text()), folder)

    def count(self, pattern: Pattern) -> int:
        if pattern.name == "triangle":
            return len(self._graph.list_triangles())
        if pattern.name == "4-clique":
            return len(self._graph.cliques(4, 4))
        if pattern.name == "3-star":
            return sum(d * (d - 1) * (d - 2) // 6 for d in self._graph.degree())
        shape = self._module.Graph(pattern.order, list(pattern.edges))
        return int(self._graph.count_subisomorphisms_vf2(shape)) // pattern.automorphisms


class NetworkX:
    """NetworkX: triangles and stars only."""

    def load(self, source: Path, folder: Path) -> int:
        import networkx

        self._module = networkx
        self._graph = networkx.Graph(_edges(source))
        (folder / "source").write_text(str(source))
        return int(self._graph.number_of_edges())

    def open(self, folder: Path) -> None:
        self.load(Path((folder / "source").read_text()), folder)

    def count(self, pattern: Pattern) -> int:
        if pattern.name == "triangle":
            return sum(self._module.triangles(self._graph).values()) // 3
        if pattern.name == "3-star":
            return sum(d * (d - 1) * (d - 2) // 6 for _, d in self._graph.degree())
        raise CannotExpress("-")


ENGINES: dict[str, Callable[[], Engine]] = {
    "graphdb": Graphdb,
    "duckdb": DuckDB,
    "igraph": IGraph,
    "networkx": NetworkX,
}


def _edges(source: Path) -> list[tuple[int, int]]:
    with gzip.open(source, "rt") as lines:
        return [(int(a), int(b)) for a, b in (line.split() for line in lines if not line.startswith("#"))]


def expected() -> dict[str, dict[str, int]]:
    """Return the known counts, by graph and pattern."""
    folder = SHARED / "data" / "snap"
    if not folder.exists():
        raise SystemExit(f"{folder} is not here; set GRAPHDB_SHARED to the folder with the shared data sets")
    simple = json.loads((folder / "counts.json").read_text())["graphs"]
    known: dict[str, Any] = {
        graph: {name.removesuffix("s"): count for name, count in counts.items()} for graph, counts in simple.items()
    }
    for graph, patterns in json.loads((folder / "matchers-h200.json").read_text())["graphs"].items():
        known.setdefault(graph, {}).update({name: found["count"] for name, found in patterns.items()})
    return known


def run(argv: list[str]) -> list[Table]:
    """Measure and return one table per graph."""
    parser = options(__doc__, [name for name in ENGINES if name != "graphdb"], repeat=2, limit=60)
    parser.add_argument("--graphs", default=",".join(GRAPHS[:3]), help=f"comma-separated, among: {', '.join(GRAPHS)}")
    parser.add_argument("--patterns", default="", help="comma-separated; all where empty")
    arguments = parser.parse_args(argv)
    engines, known, tables = chosen(arguments.peers, ENGINES), expected(), []
    for name in arguments.graphs.split(","):
        source = SHARED / "data" / "snap" / f"{name}.txt.gz"
        table = Table(f"{name}: s per count of subgraphs, median", ["pattern", "subgraphs", *engines])
        with scratch() as folder, workers(engines) as started:
            for engine, worker in started.items():
                progress(f"{name}: loading into {engine}")
                (folder / engine).mkdir()
                loaded = worker.load(source, folder / engine, 120)
                if loaded.trouble:
                    raise SystemExit(f"{engine} did not load {name}: {loaded.trouble}")
            columns: dict[str, list[Any]] = {engine: [] for engine in engines}
            for pattern in PATTERNS:
                if arguments.patterns and pattern.name not in arguments.patterns.split(","):
                    continue
                progress(f"{name}: {pattern.name}")
                count = known[name].get(pattern.name)
                what = f"{name} {pattern.name}"
                cells = measure(started, pattern, count, arguments.repeat, arguments.limit, what)
                agreed = {cell.value for cell in cells.values() if not cell.trouble}
                if count is None and len(agreed) > 1:
                    table.notes.append(f"NOT AGREED on {pattern.name}: {', '.join(map(str, agreed))}")
                shown = f"{agreed.pop():,}" if len(agreed) == 1 else "?"
                table.add(pattern.name, shown, *(cells[engine].text(1, 3) for engine in engines))
                for engine in engines:
                    columns[engine].append(cells[engine])
        table.add("geometric mean", "", *(f"{geomean([c.median for c in columns[e]]):.3f}" for e in engines))
        ratios = ["-" if e == "graphdb" else against(columns["graphdb"], columns[e]) for e in engines]
        table.add("peer / graphdb", "", *ratios)
        table.notes.append(f"{surroundings('graphdb', 'duckdb', 'igraph', 'networkx')}; {arguments.repeat} runs")
        tables.append(table)
    return tables


if __name__ == "__main__":
    main(run)

"""Small subgraphs in SNAP graphs: ours, DuckDB's self-joins, ladybug, igraph, NetworkX.

Run as ``python -m tests.benchmarks.subgraphs``.  Counts are distinct subgraphs: edge-induced (ours DIFFERENT NODES), or
with ``--induced`` vertex-induced (ours INDUCED).  Ours counts each embedding and divides by the pattern's
automorphisms; DuckDB and ladybug are told to find each subgraph once by an order of its vertices; igraph and
NetworkX use what they have for the pattern.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
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


@dataclass(frozen=True)
class Pattern:
    """Undirected edges between vertices 0, 1, …; ``induced`` forbids any other edge between them."""

    name: str
    edges: tuple[tuple[int, int], ...]
    induced: bool = False

    @property
    def order(self) -> int:
        """How many vertices it has."""
        return 1 + max(max(edge) for edge in self.edges)

    @property
    def absent(self) -> list[tuple[int, int]]:
        """The pairs of vertices without an edge."""
        return [pair for pair in combinations(range(self.order), 2) if pair not in self.edges]

    @cached_property
    def automorphisms(self) -> list[tuple[int, ...]]:
        """The permutations that map edges to edges."""
        edges = {frozenset(edge) for edge in self.edges}
        moved = ((p, {frozenset((p[a], p[b])) for a, b in self.edges}) for p in permutations(range(self.order)))
        return [p for p, images in moved if images == edges]

    @cached_property
    def smaller(self) -> list[tuple[int, int]]:
        """Pairs whose order makes each subgraph be found once: a vertex comes before its images in the stabilizer."""
        group, pairs = self.automorphisms, []
        for vertex in range(self.order):
            pairs += [(vertex, image) for image in sorted({p[vertex] for p in group} - {vertex})]
            group = [p for p in group if p[vertex] == vertex]
        return pairs


PATTERNS = {
    "triangle": ((0, 1), (0, 2), (1, 2)),
    "4-clique": tuple(combinations(range(4), 2)),
    "diamond": ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3)),
    "4-cycle": ((0, 1), (0, 2), (1, 3), (2, 3)),
    "tailed triangle": ((0, 1), (0, 2), (1, 2), (0, 3)),
    "3-star": ((0, 1), (0, 2), (0, 3)),
    "5-clique": tuple(combinations(range(5), 2)),
    "5-clique minus an edge": tuple(pair for pair in combinations(range(5), 2) if pair != (3, 4)),
    "4-clique with a triangle on an edge": ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (2, 3)),
    "4-wheel": ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (2, 4), (3, 4)),
    "diamond closed by a vertex": ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 4), (3, 4)),
}


class Graphdb:
    """Ours, over one edge label; ``-[:e]-`` is the undirected edge."""

    def load(self, source: Path, folder: Path) -> int:
        lines = folder / "edges.nt"
        with lines.open("w") as file:
            file.writelines(f"<v:{a}> <v:e> <v:{b}> .\n" for a, b in _edges(source))
        self.open(folder)
        triples = self._database.load(lines).triples
        lines.unlink()
        # The first query ever compiles all kernels, which no limit on a cell should meet.
        self._database.query("MATCH (a)-[]->(b) RETURN count(*)").scalar()
        return int(triples)

    def open(self, folder: Path) -> None:
        import graphdb

        self._database = graphdb.connect(folder / "graph.duckdb")

    def count(self, pattern: Pattern) -> int:
        edges = ", ".join(f"(v{a})-[:<v:e>]-(v{b})" for a, b in pattern.edges)
        mode = "INDUCED" if pattern.induced else "DIFFERENT NODES"
        found = self._database.query(f"MATCH {mode} {edges} RETURN count(*)").scalar()
        subgraphs, rest = divmod(int(found), len(pattern.automorphisms))
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
        joined = {*pattern.smaller, *pattern.edges}
        conditions += [f"{columns[a]} <> {columns[b]}" for a, b in pattern.absent if (a, b) not in joined]
        if pattern.induced:
            conditions += [
                f"NOT EXISTS (SELECT 1 FROM edge x WHERE x.a = {columns[a]} AND x.b = {columns[b]})"
                for a, b in pattern.absent
            ]
        tables = ", ".join(f"edge e{number}" for number in range(len(pattern.edges)))
        sql = f"SELECT count(*) FROM {tables} WHERE {' AND '.join(conditions)}"
        return int(self._connection.sql(sql).fetchall()[0][0])


class Ladybug:
    """Ladybug, the maintained fork of Kùzu: one relationship table with both directions of each edge."""

    def load(self, source: Path, folder: Path) -> int:
        import duckdb

        edges = DuckDB()
        count = edges.load(source, folder)
        edges._connection.close()
        files = {"nodes": "SELECT DISTINCT a::BIGINT AS id FROM edge", "edges": "SELECT a::BIGINT, b::BIGINT FROM edge"}
        with duckdb.connect(str(folder / "edges.duckdb")) as connection:
            for name, sql in files.items():
                connection.execute(f"COPY ({sql}) TO '{folder / name}.parquet'")
        self.open(folder)
        self._connection.execute("CREATE NODE TABLE N(id INT64 PRIMARY KEY)")
        self._connection.execute("CREATE REL TABLE E(FROM N TO N)")
        self._connection.execute(f"COPY N FROM '{folder / 'nodes.parquet'}'")
        self._connection.execute(f"COPY E FROM '{folder / 'edges.parquet'}'")
        return count

    def open(self, folder: Path) -> None:
        import ladybug

        self._connection = ladybug.Connection(ladybug.Database(str(folder / "ladybug"), max_num_threads=CORES))

    def count(self, pattern: Pattern) -> int:
        edges = ", ".join(f"(v{a}:N)-[:E]->(v{b}:N)" for a, b in pattern.edges)
        conditions = [f"v{a}.id < v{b}.id" for a, b in pattern.smaller]
        joined = {*pattern.smaller, *pattern.edges}
        conditions += [f"v{a}.id <> v{b}.id" for a, b in pattern.absent if (a, b) not in joined]
        if pattern.induced:
            conditions += [f"NOT EXISTS {{ MATCH (v{a})-[:E]->(v{b}) }}" for a, b in pattern.absent]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return int(self._connection.execute(f"MATCH {edges}{where} RETURN count(*)").get_next()[0])


class IGraph:
    """igraph: its lists of triangles and cliques, degrees for stars, motifs for what is induced, VF2 and LAD for the rest."""

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
        size, shape = pattern.order, self._module.Graph(pattern.order, list(pattern.edges))
        if pattern.name == "triangle":
            return len(self._graph.list_triangles())
        if "clique" in pattern.name and not pattern.absent:
            return len(self._graph.cliques(size, size))
        if pattern.induced and size <= 4:
            return int(self._graph.motifs_randesu(size)[shape.isoclass()])
        if pattern.induced:
            found = len(self._graph.get_subisomorphisms_lad(shape, induced=True))
            return found // len(pattern.automorphisms)
        if pattern.name == "3-star":
            return sum(d * (d - 1) * (d - 2) // 6 for d in self._graph.degree())
        return int(self._graph.count_subisomorphisms_vf2(shape)) // len(pattern.automorphisms)


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
        if pattern.name == "3-star" and not pattern.induced:
            return sum(d * (d - 1) * (d - 2) // 6 for _, d in self._graph.degree())
        raise CannotExpress("-")


ENGINES: dict[str, Callable[[], Engine]] = {
    "graphdb": Graphdb,
    "duckdb": DuckDB,
    "ladybug": Ladybug,
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
    parser.add_argument("--induced", action="store_true", help="count vertex-induced subgraphs")
    arguments = parser.parse_args(argv)
    engines, known, tables = chosen(arguments.peers, ENGINES), expected(), []
    for name in arguments.graphs.split(","):
        source = SHARED / "data" / "snap" / f"{name}.txt.gz"
        kind = "vertex-induced" if arguments.induced else "edge-induced"
        table = Table(f"{name}: ms per count of {kind} subgraphs, median", ["pattern", "subgraphs", *engines])
        with scratch() as folder, workers(engines) as started:
            for engine, worker in started.items():
                progress(f"{name}: loading into {engine}")
                (folder / engine).mkdir()
                loaded = worker.load(source, folder / engine, 120)
                if loaded.trouble:
                    raise SystemExit(f"{engine} did not load {name}: {loaded.trouble}")
            columns: dict[str, list[Any]] = {engine: [] for engine in engines}
            for label, edges in PATTERNS.items():
                if arguments.patterns and label not in arguments.patterns.split(","):
                    continue
                pattern = Pattern(label, edges, arguments.induced)
                progress(f"{name}: {label}")
                count = known[name].get(label) if not (arguments.induced and pattern.absent) else None
                what = f"{name} {label}"
                cells = measure(started, pattern, count, arguments.repeat, arguments.limit, what)
                agreed = {cell.value for cell in cells.values() if not cell.trouble}
                if count is None and len(agreed) > 1:
                    table.notes.append(f"NOT AGREED on {pattern.name}: {', '.join(map(str, agreed))}")
                shown = f"{agreed.pop():,}" if len(agreed) == 1 else "?"
                table.add(pattern.name, shown, *(cells[engine].text(1e3, 1) for engine in engines))
                for engine in engines:
                    columns[engine].append(cells[engine])
        table.add("geometric mean", "", *(f"{1e3 * geomean([c.median for c in columns[e]]):.1f}" for e in engines))
        ratios = ["-" if e == "graphdb" else against(columns["graphdb"], columns[e]) for e in engines]
        table.add("peer / graphdb", "", *ratios)
        table.notes.append(
            f"{surroundings('graphdb', 'duckdb', 'ladybug', 'igraph', 'networkx')}; {arguments.repeat} runs"
        )
        tables.append(table)
    return tables


if __name__ == "__main__":
    main(run)

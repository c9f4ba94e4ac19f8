"""Random labelled graphs: paths, stars and cycles of 3 to 8 vertices, counted by ours, DuckDB, ladybug and igraph.

Run as ``python -m tests.benchmarks.random_labelled [--modes walks,nodes] [--graphs even,power-law] [--sizes 3-8]``.

The graphs have 4 vertex labels (of which a vertex has one) and 3 edge labels, all of uneven shares; ``even`` draws the
ends of edges at random, ``power-law`` by weights with exponent 2.3 (Chung and Lu).  Every vertex and edge of a pattern
has a label, edges run in random directions.  ``walks`` counts homomorphisms, ``nodes`` matches whose vertices differ.
All counts are compared.  igraph knows no homomorphisms (VF2 with colours counts the others); NetworkX would take hours.
``graphdb`` repeats a text, for which we keep the plan; ``graphdb-new`` sends a text never seen before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.harness import (
    CORES,
    CannotExpress,
    Cell,
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

VERTICES, EDGES = 5_000, 60_000
VERTEX_LABELS, EDGE_LABELS = (0.4, 0.3, 0.2, 0.1), (0.6, 0.3, 0.1)
SHAPES = ("path", "star", "cycle")


@dataclass(frozen=True, slots=True)
class Pattern:
    """``labels`` are those of the vertices, ``edges`` (source, target, label)."""

    name: str
    labels: tuple[int, ...]
    edges: tuple[tuple[int, int, int], ...]
    distinct: bool

    @property
    def unequal(self) -> list[tuple[int, int]]:
        """The pairs that must differ and could be the same: vertices of different labels differ anyway."""
        pairs = combinations(range(len(self.labels)), 2) if self.distinct else ()
        return [(a, b) for a, b in pairs if self.labels[a] == self.labels[b]]


def patterns(sizes: list[int], distinct: bool) -> list[Pattern]:
    """The patterns of one table, the same every time."""
    found = []
    for shape in SHAPES:
        for size in sizes:
            rng = np.random.default_rng([SHAPES.index(shape), size])
            labels = tuple(int(label) for label in rng.choice(len(VERTEX_LABELS), size, p=VERTEX_LABELS))
            ends = [(i, i + 1) if shape != "star" else (0, i + 1) for i in range(size - 1)]
            ends += [(size - 1, 0)] if shape == "cycle" else []
            edges = tuple(
                (*((a, b) if rng.random() < 0.5 else (b, a)), int(rng.choice(len(EDGE_LABELS), p=EDGE_LABELS)))
                for a, b in ends
            )
            found.append(Pattern(f"{shape} of {size}", labels, edges, distinct))
    return found


def make_graph(name: str, file: Path) -> None:
    """Write a graph: the label of each vertex, and unique edges (source, target, label) without loops."""
    rng = np.random.default_rng(7)
    weights = np.ones(VERTICES) if name == "even" else (np.arange(VERTICES) + 10.0) ** (-1 / 1.3)
    weights /= weights.sum()
    # Each pair has one label: igraph's simple graphs can hold no more.
    ends = np.stack([rng.permutation(VERTICES)[rng.choice(VERTICES, EDGES, p=weights)] for _ in range(2)])
    pairs = np.unique(ends[:, ends[0] != ends[1]], axis=1)
    labels = rng.choice(len(EDGE_LABELS), pairs.shape[1], p=EDGE_LABELS)
    np.savez(file, vertices=rng.choice(len(VERTEX_LABELS), VERTICES, p=VERTEX_LABELS), source=pairs[0], target=pairs[1],
             label=labels)  # fmt: skip


class Graphdb:
    """Ours."""

    def load(self, source: Path, folder: Path) -> int:
        data, lines = np.load(source), folder / "graph.nt"
        rdf_type = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
        with lines.open("w") as file:
            file.writelines(f"<v:{v}> {rdf_type} <l:{label}> .\n" for v, label in enumerate(data["vertices"]))
            rows = zip(data["source"], data["label"], data["target"], strict=True)
            file.writelines(f"<v:{a}> <e:{label}> <v:{b}> .\n" for a, label, b in rows)
        self.open(folder)
        triples = self._database.load(lines).triples
        lines.unlink()
        self._database.query("MATCH (a)-[:<e:0>]->(b) RETURN count(*)")  # machine code is read: times are warm
        return int(triples)

    def open(self, folder: Path) -> None:
        import graphdb

        self._database = graphdb.connect(folder / "graph.duckdb")

    def count(self, pattern: Pattern) -> int:
        return int(self._database.query(self._text(pattern)).scalar())

    def _text(self, pattern: Pattern) -> str:
        vertices = ", ".join(f"(v{v}:<l:{label}>)" for v, label in enumerate(pattern.labels))
        edges = ", ".join(f"(v{a})-[:<e:{label}>]->(v{b})" for a, b, label in pattern.edges)
        mode = "DIFFERENT NODES" if pattern.distinct else "REPEATABLE ELEMENTS"
        return f"MATCH {mode} {vertices}, {edges} RETURN count(*)"


class GraphdbNew(Graphdb):
    """Ours, each text a new one."""

    _asked = 0

    def _text(self, pattern: Pattern) -> str:
        self._asked += 1
        return f"{super()._text(pattern)} AS c{self._asked}"


class DuckDB:
    """A table of vertices, and one of edges per label."""

    def load(self, source: Path, folder: Path) -> int:
        import pyarrow as pa

        self.open(folder)
        data = np.load(source)
        vertices = pa.table({"id": np.arange(VERTICES), "label": data["vertices"]})
        edges = pa.table({"a": data["source"], "b": data["target"], "label": data["label"]})
        self._connection.register("vertices_in", vertices)
        self._connection.register("edges_in", edges)
        for label in range(len(VERTEX_LABELS)):
            self._connection.execute(f"CREATE TABLE v{label} AS SELECT id FROM vertices_in WHERE label = {label}")
        for label in range(len(EDGE_LABELS)):
            self._connection.execute(
                f"CREATE TABLE e{label} AS SELECT a, b FROM edges_in WHERE label = {label} ORDER BY ALL"
            )
        return int(edges.num_rows)

    def open(self, folder: Path) -> None:
        import duckdb

        self._connection = duckdb.connect(str(folder / "graph.duckdb"), config={"threads": CORES})

    def count(self, pattern: Pattern) -> int:
        tables = [f"v{label} AS n{v}" for v, label in enumerate(pattern.labels)]
        tables += [f"e{label} AS r{number}" for number, (_, _, label) in enumerate(pattern.edges)]
        conditions = [f"r{i}.a = n{a}.id AND r{i}.b = n{b}.id" for i, (a, b, _) in enumerate(pattern.edges)]
        conditions += [f"n{a}.id <> n{b}.id" for a, b in pattern.unequal]
        sql = f"SELECT count(*) FROM {', '.join(tables)} WHERE {' AND '.join(conditions)}"
        return int(self._connection.sql(sql).fetchall()[0][0])


class Ladybug:
    """A node table per vertex label, and a relationship table per edge label between all of them."""

    def load(self, source: Path, folder: Path) -> int:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        self.open(folder)
        data = np.load(source)
        of, label = data["vertices"], data["label"]
        kinds = range(len(VERTEX_LABELS))
        for kind in kinds:
            file = folder / f"n{kind}.parquet"
            parquet.write_table(pa.table({"id": np.flatnonzero(of == kind)}), file)
            self._connection.execute(f"CREATE NODE TABLE L{kind}(id INT64 PRIMARY KEY)")
            self._connection.execute(f"COPY L{kind} FROM '{file}'")
        for edge in range(len(EDGE_LABELS)):
            pairs = [(x, y) for x in kinds for y in kinds]
            self._connection.execute(f"CREATE REL TABLE E{edge}({', '.join(f'FROM L{x} TO L{y}' for x, y in pairs)})")
            for x, y in pairs:
                chosen = (label == edge) & (of[data["source"]] == x) & (of[data["target"]] == y)
                file = folder / f"e{edge}-{x}-{y}.parquet"
                parquet.write_table(pa.table({"a": data["source"][chosen], "b": data["target"][chosen]}), file)
                self._connection.execute(f"COPY E{edge} FROM '{file}' (from='L{x}', to='L{y}')")
        return len(label)

    def open(self, folder: Path) -> None:
        import ladybug

        self._connection = ladybug.Connection(ladybug.Database(str(folder / "ladybug"), max_num_threads=CORES))

    def count(self, pattern: Pattern) -> int:
        edges = ", ".join(
            f"(v{a}:L{pattern.labels[a]})-[:E{label}]->(v{b}:L{pattern.labels[b]})" for a, b, label in pattern.edges
        )
        conditions = " AND ".join(f"v{a}.id <> v{b}.id" for a, b in pattern.unequal)
        where = f" WHERE {conditions}" if conditions else ""
        return int(self._connection.execute(f"MATCH {edges}{where} RETURN count(*)").get_next()[0])


class IGraph:
    """igraph: VF2 with colours of vertices and edges."""

    def load(self, source: Path, folder: Path) -> int:
        import igraph

        self._module, data = igraph, np.load(source)
        pairs = np.stack([data["source"], data["target"]], axis=1).tolist()
        self._graph = igraph.Graph(VERTICES, pairs, directed=True)
        self._colours = data["vertices"].tolist(), data["label"].tolist()
        (folder / "source").write_text(str(source))
        return len(pairs)

    def open(self, folder: Path) -> None:
        self.load(Path((folder / "source").read_text()), folder)

    def count(self, pattern: Pattern) -> int:
        if not pattern.distinct:
            raise CannotExpress("-")
        shape = self._module.Graph(len(pattern.labels), [(a, b) for a, b, _ in pattern.edges], directed=True)
        return int(
            self._graph.count_subisomorphisms_vf2(
                shape,
                color1=self._colours[0],
                color2=list(pattern.labels),
                edge_color1=self._colours[1],
                edge_color2=[label for _, _, label in pattern.edges],
            )
        )


ENGINES: dict[str, Callable[[], Engine]] = {
    "graphdb": Graphdb,
    "graphdb-new": GraphdbNew,
    "duckdb": DuckDB,
    "ladybug": Ladybug,
    "igraph": IGraph,
}


def run(argv: list[str]) -> list[Table]:
    """Measure and return one table per graph and mode."""
    parser = options(__doc__, [name for name in ENGINES if name != "graphdb"], repeat=3, limit=5)
    parser.add_argument("--graphs", default="even,power-law", help="comma-separated")
    parser.add_argument("--modes", default="walks,nodes", help="comma-separated")
    parser.add_argument("--sizes", default="3-8", help="vertices of the patterns, from-to")
    arguments = parser.parse_args(argv)
    engines, tables = chosen(arguments.peers, ENGINES), []
    first, _, last = arguments.sizes.partition("-")
    sizes = list(range(int(first), int(last or first) + 1))
    for name in arguments.graphs.split(","):
        with scratch() as folder, workers(engines) as started:
            make_graph(name, folder / "graph.npz")
            for engine, worker in started.items():
                progress(f"{name}: loading into {engine}")
                (folder / engine).mkdir()
                loaded = worker.load(folder / "graph.npz", folder / engine, 120)
                if loaded.trouble:
                    raise SystemExit(f"{engine} did not load {name}: {loaded.trouble}")
            for mode in arguments.modes.split(","):
                tables.append(_table(name, mode, sizes, started, arguments.repeat, arguments.limit))
    return tables


def _table(name: str, mode: str, sizes: list[int], started: dict[str, Any], repeat: int, limit: float) -> Table:
    table = Table(f"{name}, {mode}: warm ms per count, median", ["pattern", "count", *started, "duckdb / graphdb-new"])
    columns: dict[str, list[Cell]] = {engine: [] for engine in started}
    slower: list[str] = []
    for pattern in patterns(sizes, mode == "nodes"):
        progress(f"{name}, {mode}: {pattern.name}")
        cells = measure(started, pattern, None, repeat, limit, f"{name} {mode} {pattern.name}")
        agreed = {cell.value for cell in cells.values() if not cell.trouble}
        if len(agreed) > 1:
            table.notes.append(
                f"NOT AGREED on {pattern.name}: { ({e: c.value for e, c in cells.items() if not c.trouble}) }"
            )
        shown = f"{agreed.pop():,}" if len(agreed) == 1 else "?"
        ours = cells.get("graphdb-new", cells["graphdb"]).median
        theirs = cells["duckdb"].median if "duckdb" in cells else math.nan
        ratio = "-" if math.isnan(theirs / ours) else f"{theirs / ours:,.1f}"
        slower += [pattern.name] if theirs < ours else []
        table.add(pattern.name, shown, *(cells[engine].text() for engine in started), ratio)
        for engine in started:
            columns[engine].append(cells[engine])
    table.add("geometric mean", "", *(f"{geomean([c.median for c in columns[e]]) * 1e3:,.1f}" for e in started), "")
    ratios = ["-" if e == "graphdb" else against(columns["graphdb"], columns[e]) for e in started]
    table.add("peer / graphdb", "", *ratios, "")
    table.notes.append(f"slower than duckdb, text new: {', '.join(slower) or 'none'}")
    table.notes.append(f"{surroundings('graphdb', 'duckdb', 'ladybug', 'igraph')}; {repeat} runs")
    return table


if __name__ == "__main__":
    main(run)

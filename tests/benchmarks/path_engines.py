"""Questions that :mod:`tests.benchmarks.paths` asks, and engines with a method for each: ours, DuckDB, ladybug, igraph, NetworkX."""

from __future__ import annotations

import gzip
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.benchmarks.harness import (
    CORES,
    CannotExpress,
    Engine,
)

LONGEST = 30
"""The bound on edges for peers that need one: no shortest path of these graphs is longer."""


@dataclass(frozen=True)
class Question:
    """What is asked: ``kind`` names the method of an engine; pairs of vertices, or sources and targets."""

    name: str
    kind: str
    pairs: tuple[tuple[int, int], ...] = ()
    sources: tuple[int, ...] = ()
    targets: tuple[int, ...] = ()
    most: int = field(default=0)


def questions(vertices: list[int], hub: int, count: int) -> list[Question]:
    """Return the questions over vertices of one component, of which one has very many neighbours, and ``count`` pairs."""
    chance = random.Random(7)
    pairs = tuple((a, b) for a, b in (chance.sample(vertices, 2) for _ in range(count)))
    (one, *_), many = pairs[0], tuple(sorted(chance.sample(vertices, 20)))
    others = tuple(sorted(set(chance.sample(vertices, 40)) - {*many}))[:20]
    return [
        Question(f"length of a shortest path, {count} pairs one by one", "length", pairs),
        Question(f"a shortest path, {count} pairs one by one", "path", pairs),
        Question("all shortest paths, 5 pairs one by one", "all_paths", pairs[:5]),
        Question("number of shortest paths, 5 pairs one by one", "number", pairs[:5]),
        Question("lengths from one vertex to all", "lengths_from", sources=(one,)),
        Question("paths from one vertex to all", "paths_from", sources=(one,)),
        Question("paths from one vertex to all, as values", "values_from", sources=(one,)),
        Question("the same, each vertex and edge of them read", "read_from", sources=(one,)),
        Question("lengths from 20 vertices to 20", "across", sources=many, targets=others),
        Question("5 shortest paths without a vertex twice, 5 pairs", "k_shortest", pairs[:5], most=5),
        Question("trails of 1 to 2 edges, count", "trails", most=2),
        Question("trails of 1 to 3 edges, count", "trails", most=3),
        Question("ends of 1 to 3 edges from one vertex, distinct", "ends", sources=(one,), most=3),
        Question("rows of trails of 1 to 2 edges from a hub", "rows", sources=(hub,), most=2),
        Question("vertices that reach one within 3 edges", "reach", targets=(one,), most=3),
        Question("3 edges between vertices with a property, count", "quantified", sources=(hub,), most=3),
    ]


def edges_of(source: Path) -> list[tuple[int, int]]:
    """The edges of a SNAP graph's file."""
    with gzip.open(source, "rt") as lines:
        return [(int(a), int(b)) for a, b in (line.split() for line in lines if not line.startswith("#"))]


class _Asked:
    """An engine with a method for each kind of question."""

    def count(self, question: Question) -> int:
        method: Callable[[Question], int] | None = getattr(self, question.kind, None)
        if method is None:
            raise CannotExpress("-")
        return int(method(question))


class Graphdb(_Asked):
    """Ours, over one edge label."""

    def load(self, source: Path, folder: Path) -> int:
        edges = edges_of(source)
        lines = folder / "edges.nt"
        with lines.open("w") as file:
            file.writelines(f"<v:{a}> <v:e> <v:{b}> .\n" for a, b in edges)
            integer = "http://www.w3.org/2001/XMLSchema#integer"
            vertices = sorted({vertex for edge in edges for vertex in edge})
            file.writelines(f'<v:{vertex}> <v:id> "{vertex}"^^<{integer}> .\n' for vertex in vertices)
        self.open(folder)
        self._database.load(lines)
        lines.unlink()
        # What is compiled or derived with the first query belongs to no cell.
        for question in questions(vertices[:200], vertices[0], 5) * 2:
            self.count(question)
        return len(edges)

    def open(self, folder: Path) -> None:
        import graphdb

        self._database = graphdb.connect(folder / "graph.duckdb")

    def _ask(self, text: str, **arguments: Any) -> Any:
        return self._database.query(text, **arguments)

    def _each(self, question: Question, text: str, value: Callable[[Any], int]) -> int:
        return sum(value(self._ask(text, s=f"v:{a}", t=f"v:{b}")) for a, b in question.pairs)

    def length(self, question: Question) -> int:
        text = "MATCH p = ANY SHORTEST (a)-[:<v:e>]-+(b) WHERE iri(a) = $s AND iri(b) = $t RETURN length(p)"
        return self._each(question, text, lambda found: sum(n for (n,) in found))

    def path(self, question: Question) -> int:
        text = "MATCH p = ANY SHORTEST (a)-[:<v:e>]-+(b) WHERE iri(a) = $s AND iri(b) = $t RETURN p"
        return self._each(question, text, lambda found: sum(len(p) for (p,) in found))

    def all_paths(self, question: Question) -> int:
        text = "MATCH p = ALL SHORTEST (a)-[:<v:e>]-+(b) WHERE iri(a) = $s AND iri(b) = $t RETURN p"
        return self._each(question, text, len)

    def number(self, question: Question) -> int:
        text = "MATCH p = ALL SHORTEST (a)-[:<v:e>]-+(b) WHERE iri(a) = $s AND iri(b) = $t RETURN count(*)"
        return self._each(question, text, lambda found: found.scalar())

    def lengths_from(self, question: Question) -> int:
        text = "MATCH p = ANY SHORTEST (a)-[:<v:e>]-*(b) WHERE iri(a) = $s RETURN length(p) AS n"
        return self._ask(text, s=f"v:{question.sources[0]}").to_arrow().column("n").to_numpy().sum()

    def paths_from(self, question: Question) -> int:
        text = "MATCH p = ANY SHORTEST (a)-[:<v:e>]-*(b) WHERE iri(a) = $s RETURN p"
        return len(self._ask(text, s=f"v:{question.sources[0]}"))

    def values_from(self, question: Question) -> int:
        text = "MATCH p = ANY SHORTEST (a)-[:<v:e>]-*(b) WHERE iri(a) = $s RETURN p"
        return len(self._ask(text, s=f"v:{question.sources[0]}").fetchall())

    def read_from(self, question: Question) -> int:
        text = "MATCH p = ANY SHORTEST (a)-[:<v:e>]-*(b) WHERE iri(a) = $s RETURN p"
        paths = self._ask(text, s=f"v:{question.sources[0]}").fetchall()
        return sum(len(path.nodes) + len(path.relationships) for (path,) in paths)

    def across(self, question: Question) -> int:
        text = "MATCH p = ANY SHORTEST (a)-[:<v:e>]-+(b) WHERE a.<v:id> IN $s AND b.<v:id> IN $t RETURN sum(length(p))"
        return self._ask(text, s=list(question.sources), t=list(question.targets)).scalar()

    def k_shortest(self, question: Question) -> int:
        text = (
            f"MATCH p = SHORTEST {question.most} ACYCLIC PATHS (a)-[:<v:e>]-+(b) "
            "WHERE iri(a) = $s AND iri(b) = $t RETURN length(p)"
        )
        return self._each(question, text, lambda found: sum(n for (n,) in found))

    def trails(self, question: Question) -> int:
        return self._ask(f"MATCH (a)-[:<v:e>*1..{question.most}]-(b) RETURN count(*)").scalar()

    def ends(self, question: Question) -> int:
        text = f"MATCH (a)-[:<v:e>*1..{question.most}]-(b) WHERE iri(a) = $s AND b <> a RETURN count(DISTINCT b)"
        return self._ask(text, s=f"v:{question.sources[0]}").scalar()

    def rows(self, question: Question) -> int:
        text = f"MATCH (a)-[:<v:e>*1..{question.most}]-(b) WHERE iri(a) = $s RETURN b.<v:id>"
        return len(self._ask(text, s=f"v:{question.sources[0]}"))

    def reach(self, question: Question) -> int:
        pattern = f"(a)-[:<v:e>]-{{0,{question.most}}}(b {{<v:id>: {question.targets[0]}}})"
        return self._ask(f"MATCH (a) WHERE EXISTS {{ {pattern} }} RETURN count(*)").scalar()

    def quantified(self, question: Question) -> int:
        text = f"MATCH (a)((x)-[:<v:e>]-(y WHERE y.<v:id> % 3 = 0)){{{question.most}}}(b) WHERE iri(a) = $s RETURN count(*)"
        return self._ask(text, s=f"v:{question.sources[0]}").scalar()


class DuckDB(_Asked):
    """Recursive queries over a table with both directions of each edge, by vertex and then whatever DuckDB does."""

    def load(self, source: Path, folder: Path) -> int:
        self.open(folder)
        self._connection.execute(
            "CREATE TABLE line AS SELECT row_number() OVER () AS id, a, b FROM read_csv($source, delim = '\t', "
            "header = false, comment = '#', auto_detect = false, columns = {'a': 'INTEGER', 'b': 'INTEGER'})",
            {"source": str(source)},
        )
        self._connection.execute(
            "CREATE TABLE edge AS SELECT a, b, id FROM line UNION ALL SELECT b, a, id FROM line ORDER BY 1, 2"
        )
        return int(self._connection.sql("FROM line").count("*").fetchall()[0][0])

    def open(self, folder: Path) -> None:
        import duckdb

        self._connection = duckdb.connect(str(folder / "edges.duckdb"), config={"threads": CORES})

    def _scalar(self, sql: str) -> Any:
        return self._connection.sql(sql).fetchall()[0][0]

    @staticmethod
    def _reached(sources: tuple[int, ...], most: int = LONGEST) -> str:
        starts = ", ".join(f"({source}, {source}, 0)" for source in sources)
        return (
            f"WITH RECURSIVE reached(s, v, depth) USING KEY (s, v) AS (FROM (VALUES {starts}) t(s, v, depth) UNION "
            "SELECT r.s, e.b, r.depth + 1 FROM reached r JOIN edge e ON e.a = r.v LEFT JOIN recurring.reached k "
            f"ON k.s = r.s AND k.v = e.b WHERE k.v IS NULL AND r.depth < {most}) "
        )

    def length(self, question: Question) -> int:
        return sum(
            self._scalar(f"{self._reached((a,))} SELECT min(depth) FROM reached WHERE v = {b}")
            for a, b in question.pairs
        )

    def lengths_from(self, question: Question) -> int:
        return self._scalar(f"{self._reached(question.sources)} SELECT sum(depth) FROM reached")

    def across(self, question: Question) -> int:
        targets = ", ".join(map(str, question.targets))
        return self._scalar(f"{self._reached(question.sources)} SELECT sum(depth) FROM reached WHERE v IN ({targets})")

    def trails(self, question: Question) -> int:
        parts = []
        for edges in range(1, question.most + 1):
            joins = "".join(f" JOIN edge e{i} ON e{i}.a = e{i - 1}.b" for i in range(1, edges))
            where = [f"e{i}.id <> e{j}.id" for i, j in itertools.combinations(range(edges), 2)]
            parts.append(f"(SELECT count(*) FROM edge e0{joins} WHERE {' AND '.join(where) or 'true'})")
        return self._scalar(f"SELECT {' + '.join(parts)}")

    def ends(self, question: Question) -> int:
        return self._scalar(f"{self._reached(question.sources, question.most)} SELECT count(*) - 1 FROM reached")

    def reach(self, question: Question) -> int:
        return self._scalar(f"{self._reached(question.targets, question.most)} SELECT count(*) FROM reached")

    def rows(self, question: Question) -> int:
        first = f"SELECT b FROM edge WHERE a = {question.sources[0]}"
        second = f"SELECT f.b FROM edge e JOIN edge f ON f.a = e.b AND f.id <> e.id WHERE e.a = {question.sources[0]}"
        return len(self._connection.sql(f"{first} UNION ALL {second}").to_arrow_table())

    def quantified(self, question: Question) -> int:
        joins = "".join(f" JOIN edge e{i} ON e{i}.a = e{i - 1}.b AND e{i}.b % 3 = 0" for i in range(1, question.most))
        where = [f"e{i}.id <> e{j}.id" for i, j in itertools.combinations(range(question.most), 2)]
        where += [f"e0.a = {question.sources[0]}", "e0.b % 3 = 0"]
        return self._scalar(f"SELECT count(*) FROM edge e0{joins} WHERE {' AND '.join(where)}")


class Ladybug(_Asked):
    """ladybug, over one table of vertices and one of edges."""

    def load(self, source: Path, folder: Path) -> int:
        edges = edges_of(source)
        files = folder / "vertices.csv", folder / "edges.csv"
        files[0].write_text("".join(f"{v}\n" for v in sorted({vertex for edge in edges for vertex in edge})))
        files[1].write_text("".join(f"{a},{b}\n" for a, b in edges))
        self.open(folder)
        self._connection.execute("CREATE NODE TABLE V(id INT64, PRIMARY KEY(id))")
        self._connection.execute("CREATE REL TABLE e(FROM V TO V)")
        self._connection.execute(f'COPY V FROM "{files[0]}"')
        self._connection.execute(f'COPY e FROM "{files[1]}"')
        return len(edges)

    def open(self, folder: Path) -> None:
        import ladybug

        self._connection = ladybug.Connection(ladybug.Database(str(folder / "graph")))
        self._connection.execute("CALL var_length_extend_max_depth=30")

    def _all(self, text: str, **arguments: Any) -> list[Any]:
        return self._connection.execute(text, arguments).get_all()

    def _each(self, question: Question, text: str) -> int:
        return sum(row[0] for a, b in question.pairs for row in self._all(text, s=a, t=b))

    def length(self, question: Question) -> int:
        text = f"MATCH p = (a:V {{id: $s}})-[:e* SHORTEST 1..{LONGEST}]-(b:V {{id: $t}}) RETURN length(p)"
        return self._each(question, text)

    def path(self, question: Question) -> int:
        text = f"MATCH p = (a:V {{id: $s}})-[:e* SHORTEST 1..{LONGEST}]-(b:V {{id: $t}}) RETURN p"
        return sum(len(row[0]["_RELS"]) for a, b in question.pairs for row in self._all(text, s=a, t=b))

    def all_paths(self, question: Question) -> int:
        text = f"MATCH p = (a:V {{id: $s}})-[:e* ALL SHORTEST 1..{LONGEST}]-(b:V {{id: $t}}) RETURN p"
        return sum(len(self._all(text, s=a, t=b)) for a, b in question.pairs)

    def number(self, question: Question) -> int:
        text = f"MATCH p = (a:V {{id: $s}})-[:e* ALL SHORTEST 1..{LONGEST}]-(b:V {{id: $t}}) RETURN count(*)"
        return self._each(question, text)

    def lengths_from(self, question: Question) -> int:
        text = f"MATCH p = (a:V {{id: $s}})-[:e* SHORTEST 1..{LONGEST}]-(b:V) WHERE b.id <> $s RETURN sum(length(p))"
        return self._all(text, s=question.sources[0])[0][0]

    def paths_from(self, question: Question) -> int:
        text = f"MATCH p = (a:V {{id: $s}})-[:e* SHORTEST 1..{LONGEST}]-(b:V) WHERE b.id <> $s RETURN p"
        return self._connection.execute(text, {"s": question.sources[0]}).get_num_tuples() + 1

    def values_from(self, question: Question) -> int:
        text = f"MATCH p = (a:V {{id: $s}})-[:e* SHORTEST 1..{LONGEST}]-(b:V) WHERE b.id <> $s RETURN p"
        return len(self._all(text, s=question.sources[0])) + 1

    def read_from(self, question: Question) -> int:
        text = f"MATCH p = (a:V {{id: $s}})-[:e* SHORTEST 1..{LONGEST}]-(b:V) WHERE b.id <> $s RETURN p"
        paths = [row[0] for row in self._all(text, s=question.sources[0])]
        return sum(len(path["_NODES"]) + len(path["_RELS"]) for path in paths) + 1

    def across(self, question: Question) -> int:
        text = (
            f"MATCH p = (a:V)-[:e* SHORTEST 1..{LONGEST}]-(b:V) WHERE a.id IN $s AND b.id IN $t RETURN sum(length(p))"
        )
        return self._all(text, s=list(question.sources), t=list(question.targets))[0][0]

    def trails(self, question: Question) -> int:
        return self._all(f"MATCH (a:V)-[:e* TRAIL 1..{question.most}]-(b:V) RETURN count(*)")[0][0]

    def ends(self, question: Question) -> int:
        text = f"MATCH (a:V {{id: $s}})-[:e* 1..{question.most}]-(b:V) WHERE b.id <> $s RETURN count(DISTINCT b.id)"
        return self._all(text, s=question.sources[0])[0][0]

    def rows(self, question: Question) -> int:
        text = f"MATCH (a:V {{id: $s}})-[:e* TRAIL 1..{question.most}]-(b:V) RETURN b.id"
        return self._connection.execute(text, {"s": question.sources[0]}).get_num_tuples()

    def reach(self, question: Question) -> int:
        text = f"MATCH (a:V)-[:e* SHORTEST 1..{question.most}]-(b:V {{id: $t}}) WHERE a.id <> $t RETURN count(*)"
        return self._all(text, t=question.targets[0])[0][0] + 1

    def quantified(self, question: Question) -> int:
        most = question.most
        text = (
            f"MATCH (a:V {{id: $s}})-[:e* TRAIL {most}..{most} (r, n | WHERE n.id % 3 = 0)]-(b:V) "
            "WHERE b.id % 3 = 0 RETURN count(*)"
        )
        return self._all(text, s=question.sources[0])[0][0]


class IGraph(_Asked):
    """igraph's own functions, over the vertices' numbers."""

    def load(self, source: Path, folder: Path) -> int:
        import igraph

        edges = edges_of(source)
        self._graph = igraph.Graph(1 + max(map(max, edges)), edges)
        (folder / "source").write_text(str(source))
        return len(edges)

    def open(self, folder: Path) -> None:
        self.load(Path((folder / "source").read_text()), folder)

    def length(self, question: Question) -> int:
        return sum(self._graph.distances(a, b)[0][0] for a, b in question.pairs)

    def path(self, question: Question) -> int:
        return sum(len(self._graph.get_shortest_path(a, b)) - 1 for a, b in question.pairs)

    def all_paths(self, question: Question) -> int:
        return sum(len(self._graph.get_all_shortest_paths(a, b)) for a, b in question.pairs)

    def lengths_from(self, question: Question) -> int:
        return sum(n for n in self._graph.distances(question.sources[0])[0] if n < LONGEST)

    def paths_from(self, question: Question) -> int:
        return sum(bool(path) for path in self._graph.get_shortest_paths(question.sources[0]))

    values_from = paths_from

    def read_from(self, question: Question) -> int:
        return sum(2 * len(path) - 1 for path in self._graph.get_shortest_paths(question.sources[0]) if path)

    def across(self, question: Question) -> int:
        return sum(map(sum, self._graph.distances(list(question.sources), list(question.targets))))

    def k_shortest(self, question: Question) -> int:
        found = (self._graph.get_k_shortest_paths(a, b, question.most) for a, b in question.pairs)
        return sum(len(path) - 1 for paths in found for path in paths)

    def ends(self, question: Question) -> int:
        return self._graph.neighborhood_size(question.sources[0], order=question.most) - 1

    def reach(self, question: Question) -> int:
        return self._graph.neighborhood_size(question.targets[0], order=question.most)


class NetworkX(_Asked):
    """NetworkX, in Python."""

    def load(self, source: Path, folder: Path) -> int:
        import networkx

        self._graph, self._module = networkx.Graph(edges_of(source)), networkx
        (folder / "source").write_text(str(source))
        return int(self._graph.number_of_edges())

    def open(self, folder: Path) -> None:
        self.load(Path((folder / "source").read_text()), folder)

    def length(self, question: Question) -> int:
        return sum(self._module.shortest_path_length(self._graph, a, b) for a, b in question.pairs)

    def path(self, question: Question) -> int:
        return sum(len(self._module.shortest_path(self._graph, a, b)) - 1 for a, b in question.pairs)

    def all_paths(self, question: Question) -> int:
        return sum(len(list(self._module.all_shortest_paths(self._graph, a, b))) for a, b in question.pairs)

    def lengths_from(self, question: Question) -> int:
        return sum(self._module.single_source_shortest_path_length(self._graph, question.sources[0]).values())

    def paths_from(self, question: Question) -> int:
        return len(self._module.single_source_shortest_path(self._graph, question.sources[0]))

    values_from = paths_from

    def read_from(self, question: Question) -> int:
        paths = self._module.single_source_shortest_path(self._graph, question.sources[0])
        return sum(2 * len(path) - 1 for path in paths.values())

    def k_shortest(self, question: Question) -> int:
        found = (
            itertools.islice(self._module.shortest_simple_paths(self._graph, a, b), question.most)
            for a, b in question.pairs
        )
        return sum(len(path) - 1 for paths in found for path in paths)

    def ends(self, question: Question) -> int:
        (source,) = question.sources
        return len(self._module.single_source_shortest_path_length(self._graph, source, question.most)) - 1

    def reach(self, question: Question) -> int:
        (target,) = question.targets
        return len(self._module.single_source_shortest_path_length(self._graph, target, question.most))


ENGINES: dict[str, Callable[[], Engine]] = {
    "graphdb": Graphdb,
    "duckdb": DuckDB,
    "ladybug": Ladybug,
    "igraph": IGraph,
    "networkx": NetworkX,
}

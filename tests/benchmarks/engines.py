"""The engines that are compared, each with its own way to load N-Triples and to ask a conjunction of triple patterns.

Each is used as a competent user would: from its Python package, on a database on disk, on all cores, its statement
sent as text.  Peers are not asked to resolve names: DuckDB and Ladybug get integers for the constants of a query.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.benchmarks.datasets import Query, Triple
from tests.benchmarks.harness import CORES, CannotExpress, Engine


class Graphdb:
    """Ours: one DuckDB file."""

    def __init__(self) -> None:
        import graphdb

        self._connect = graphdb.connect
        self._database: graphdb.Database | None = None

    def load(self, source: Path, folder: Path) -> int:
        self.open(folder)
        assert self._database is not None
        return self._database.load(source).triples

    def open(self, folder: Path) -> None:
        self._database = self._connect(folder / "graph.duckdb")

    def count(self, query: Query) -> int:
        assert self._database is not None
        return int(self._database.query(query.text).scalar())


class GraphdbWarm(Graphdb):
    """Ours, in a process that has loaded something before: the kernels are in memory."""

    def __init__(self) -> None:
        import tempfile

        super().__init__()
        with tempfile.NamedTemporaryFile("w", suffix=".nt") as one, self._connect() as database:
            one.write("<http://e/a> <http://e/b> <http://e/c> .\n")
            one.flush()
            database.load(one.name)


class GraphdbNew(Graphdb):
    """Ours, with a text that it has not seen: nothing that is kept for a repeated statement helps."""

    def __init__(self) -> None:
        super().__init__()
        self._asked = 0

    def count(self, query: Query) -> int:
        assert self._database is not None
        self._asked += 1
        unseen = f"{self._asked:b}".replace("0", " ").replace("1", "\n")
        return int(self._database.query(query.text + unseen).scalar())


class Oxigraph:
    """pyoxigraph, a SPARQL store on RocksDB."""

    def __init__(self) -> None:
        import pyoxigraph

        self._module = pyoxigraph
        self._store: pyoxigraph.Store | None = None

    def load(self, source: Path, folder: Path) -> int:
        import gzip

        self.open(folder)
        assert self._store is not None
        with gzip.open(source) as lines:
            self._store.bulk_load(lines, format=self._module.RdfFormat.N_TRIPLES)
        self._store.flush()
        return len(self._store)

    def open(self, folder: Path) -> None:
        self._store = self._module.Store(str(folder / "oxigraph"))

    def count(self, query: Query) -> int:
        assert self._store is not None
        (row,) = self._store.query(sparql(query))  # type: ignore[misc]
        return int(row[0].value)


def sparql(query: Query) -> str:
    """Return a query in SPARQL."""

    def written(triple: Triple) -> str:
        subject, predicate, object = triple
        if predicate.endswith("~"):
            predicate = f"({predicate[:-1]}|^{predicate[:-1]})"
        return f"{subject} {predicate} {object}"

    parts = [*map(written, query.patterns), *(f"FILTER({a} != {b})" for a, b in query.differ)]
    if query.absent:
        parts.append(f"FILTER NOT EXISTS {{ {written(query.absent)} }}")
    return f"SELECT (COUNT(*) AS ?n) WHERE {{ {' . '.join(parts)} }}"


# What a line of N-Triples looks like; literals stay whole, as one term.
_LINE = r"^\s*(<[^>]*>|_:\S+)\s*<([^>]*)>\s*(.+?)\s*\.\s*(#.*)?$"

_READ = rf"""
CREATE TEMP TABLE line AS
SELECT DISTINCT m.s AS s, '<' || m.p || '>' AS p, m.o AS o FROM (
    SELECT regexp_extract(line, '{_LINE}', ['s', 'p', 'o']) AS m
    FROM read_csv($source, columns = {{'line': 'VARCHAR'}}, delim = E'\x07', quote = '', escape = '', header = false,
                  auto_detect = false)
) WHERE m.s <> ''
"""

_ENCODE = """
CREATE TABLE term AS SELECT row_number() OVER ()::INTEGER AS id, term FROM (
    SELECT s AS term FROM line UNION SELECT p FROM line UNION SELECT o FROM line
);
CREATE TABLE triple AS SELECT a.id AS s, b.id AS p, c.id AS o
FROM line JOIN term a ON line.s = a.term JOIN term b ON line.p = b.term JOIN term c ON line.o = c.term ORDER BY 2, 1, 3;
DROP TABLE line;
CREATE VIEW both_ways AS SELECT s, p, o FROM triple UNION ALL SELECT o, p, s FROM triple;
CHECKPOINT
"""


class DuckText:
    """The bare floor of loading: DuckDB reads the lines, splits them by a regular expression, keeps three texts."""

    def load(self, source: Path, folder: Path) -> int:
        import duckdb

        with duckdb.connect(str(folder / "text.duckdb"), config={"threads": CORES}) as connection:
            connection.execute(_READ.replace("TEMP TABLE", "TABLE").replace("DISTINCT ", ""), {"source": str(source)})
            connection.execute("CHECKPOINT")
            return connection.sql("FROM line").count("*").fetchall()[0][0]

    def open(self, folder: Path) -> None:
        raise CannotExpress

    def count(self, query: Query) -> int:
        raise CannotExpress


class DuckIds:
    """DuckDB with one table of distinct triples of integer ids, sorted by predicate, and a dictionary of terms."""

    def __init__(self) -> None:
        self._connection: Any = None
        self._ids: dict[str, int | None] = {}

    def load(self, source: Path, folder: Path) -> int:
        self.open(folder)
        self._connection.execute(_READ, {"source": str(source)})
        self._connection.execute(_ENCODE)
        return int(self._connection.sql("FROM triple").count("*").fetchall()[0][0])

    def open(self, folder: Path) -> None:
        import duckdb

        self._connection = duckdb.connect(str(folder / "ids.duckdb"), config={"threads": CORES})
        self._ids = {}

    def count(self, query: Query) -> int:
        self._resolve(query)
        return int(self._connection.execute(self._sql(query)).fetchall()[0][0])

    def _sql(self, query: Query) -> str:
        return self_joins(query, self._ids)

    def _resolve(self, query: Query) -> None:
        for term in {term.rstrip("~") for triple in _triples(query) for term in triple}:
            if term not in self._ids and not term.startswith("?"):
                # Outside the warm runs: the first call asks, the next ones know.
                found = self._connection.execute("SELECT id FROM term WHERE term = ?", [term]).fetchall()
                self._ids[term] = found[0][0] if found else None


class DuckTables(DuckIds):
    """DuckDB with a table per predicate too: its statistics are then the predicate's own, and its plans better."""

    def load(self, source: Path, folder: Path) -> int:
        triples = super().load(source, folder)
        for (predicate,) in self._connection.sql("SELECT DISTINCT p FROM triple").fetchall():
            self._connection.execute(
                f"CREATE TABLE p{predicate} AS SELECT s, o, {predicate} AS p FROM triple WHERE p = {predicate}"
            )
        return triples

    def _sql(self, query: Query) -> str:
        return self_joins(query, self._ids, partitioned=True)


def _triples(query: Query) -> list[Triple]:
    return [*query.patterns, query.absent] if query.absent else list(query.patterns)


def self_joins(query: Query, ids: dict[str, int | None], *, partitioned: bool = False) -> str:
    """Return a query in SQL: one self-join of the table of triples per pattern, or of its predicates' tables."""
    columns: dict[str, str] = {}
    tables, conditions = [], [f"{_first(query, a)} <> {_first(query, b)}" for a, b in query.differ]

    def joined(triple: Triple, alias: str, columns: dict[str, str]) -> tuple[str, list[str]]:
        table = "triple"
        if triple[1].endswith("~"):
            table = "both_ways"
        elif partitioned and ids.get(triple[1]) is not None:
            table = f"p{ids[triple[1]]}"
        found = []
        for term, column in zip(triple, "spo", strict=True):
            here = f"{alias}.{column}"
            if not term.startswith("?"):
                known = ids[term.rstrip("~")]
                found.append(f"{here} = {'NULL' if known is None else known}")
            elif term in columns:
                found.append(f"{here} = {columns[term]}")
            else:
                columns[term] = here
        return f"{table} {alias}", found

    for number, triple in enumerate(query.patterns):
        table, found = joined(triple, f"t{number}", columns)
        tables.append(table)
        conditions += found
    if query.absent:
        table, found = joined(query.absent, "t", columns)
        conditions.append(f"NOT EXISTS (SELECT 1 FROM {table} WHERE {' AND '.join(found)})")
    return f"SELECT count(*) FROM {', '.join(tables)} WHERE {' AND '.join(conditions) or 'true'}"


def _first(query: Query, variable: str) -> str:
    """The column where a variable is first met."""
    for number, triple in enumerate(query.patterns):
        if variable in triple:
            return f"t{number}.{'spo'[triple.index(variable)]}"
    raise AssertionError(variable)


class Ladybug:
    """Ladybug, the maintained fork of Kùzu: one node table of ids, one relationship table per predicate.

    Only the predicates of the queries get a table (Wikidata has 876); for variable predicates one more holds all
    triples.  DuckDB numbers the terms and hands them over as Parquet, and that is in no measured time.
    """

    def __init__(self) -> None:
        self._connection: Any = None
        self._ids: dict[str, int] = {}

    def load(self, source: Path, folder: Path) -> int:
        from tests.benchmarks.datasets import FILES, queries

        duck = DuckIds()
        duck.load(source, folder)
        sql = duck._connection
        self._attach(folder)
        sql.execute("COPY (SELECT id::BIGINT AS id FROM term) TO $file", {"file": str(folder / "nodes.parquet")})
        self._run("CREATE NODE TABLE N(id INT64 PRIMARY KEY)")
        self._run(f"COPY N FROM '{folder / 'nodes.parquet'}'")
        (name,) = (name for name, file in FILES.items() if source.match(file))
        terms = {term.rstrip("~") for query in queries(name) for triple in _triples(query) for term in triple}
        sql.execute("CREATE TABLE used AS SELECT id, term FROM term WHERE term IN (SELECT unnest(?))", [sorted(terms)])
        used = {t.rstrip("~") for query in queries(name) for _, t, _ in _triples(query) if not t.startswith("?")}
        variable = any(p.startswith("?") for query in queries(name) for _, p, _ in query.patterns)
        self._ids = dict(sql.execute("SELECT term, id FROM used").fetchall())
        tables = {f"P{self._ids[p]}": f"p = {self._ids[p]}" for p in used if p in self._ids}
        if variable:
            tables["Everything"] = "true"
        for table, condition in tables.items():
            file = folder / f"{table}.parquet"
            sql.execute(
                f"COPY (SELECT s::BIGINT, o::BIGINT FROM triple WHERE {condition}) TO '{file}' (FORMAT parquet)"
            )
            self._run(f"CREATE REL TABLE {table}(FROM N TO N)")
            self._run(f"COPY {table} FROM '{file}'")
        return int(sql.sql("FROM triple").count("*").fetchall()[0][0])

    def open(self, folder: Path) -> None:
        duck = DuckIds()
        duck.open(folder)
        self._ids = dict(duck._connection.execute("SELECT term, id FROM used").fetchall())
        duck._connection.close()
        self._attach(folder)

    def count(self, query: Query) -> int:
        return int(self._run(self._cypher(query)).get_next()[0])

    def _attach(self, folder: Path) -> None:
        import ladybug

        self._connection = ladybug.Connection(ladybug.Database(str(folder / "ladybug"), max_num_threads=CORES))

    def _run(self, text: str) -> Any:
        return self._connection.execute(text)

    def _cypher(self, query: Query) -> str:
        predicates = [p for _, p, _ in query.patterns if p.startswith("?")]
        if len(set(predicates)) < len(predicates):
            raise CannotExpress("a predicate variable twice")

        def vertex(term: str) -> str:
            return f"({term[1:]}:N)" if term.startswith("?") else f"(:N {{id: {self._ids.get(term, -1)}}})"

        def edge(triple: Triple) -> str:
            subject, predicate, object = triple
            table = "Everything" if predicate.startswith("?") else f"P{self._ids.get(predicate.rstrip('~'), -1)}"
            return f"{vertex(subject)}-[:{table}]-{'' if predicate.endswith('~') else '>'}{vertex(object)}"

        conditions = [f"{a[1:]}.id <> {b[1:]}.id" for a, b in query.differ]
        if query.absent:
            conditions.append(f"NOT EXISTS {{ MATCH {edge(query.absent)} }}")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"MATCH {', '.join(map(edge, query.patterns))}{where} RETURN count(*)"


class Rdflib:
    """RDFLib, in memory."""

    def load(self, source: Path, folder: Path) -> int:
        import gzip

        import rdflib

        graph = rdflib.Graph()
        with gzip.open(source) as lines:
            graph.parse(lines, format="nt")
        return len(graph)

    def open(self, folder: Path) -> None:
        raise CannotExpress

    def count(self, query: Query) -> int:
        raise CannotExpress


LOADERS: dict[str, type[Engine]] = {
    "graphdb": Graphdb,
    "graphdb-warm": GraphdbWarm,
    "oxigraph": Oxigraph,
    "duckdb-text": DuckText,
    "duckdb-ids": DuckIds,
    "rdflib": Rdflib,
}

STORES: dict[str, type[Engine]] = {
    "graphdb": Graphdb,
    "graphdb-new": GraphdbNew,
    "oxigraph": Oxigraph,
    "duckdb": DuckIds,
    "duckdb-tables": DuckTables,
    "ladybug": Ladybug,
}

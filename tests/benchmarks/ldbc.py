"""LDBC's Social Network Benchmark: its reads (our wording) against DuckDB's SQL over one table per label, in one run.

    python -m tests.benchmarks.ldbc DATA [--only IC2,BI9] [--cases 3] [--repeat 3] [--limit 60] [--keep FOLDER]

DATA has the folders ``static`` and ``dynamic``, as the suite's ``generate.py`` makes them.  Each read is asked with the
parameters of seeded samples of the data; both engines must give the same rows.  *First* is the time of a read's first
run in a process, *warm* the median of further runs with other parameters.  This is no audited LDBC result.
"""

from __future__ import annotations

import datetime as dt
import json
import random
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

import graphdb
from tests import ldbc
from tests.benchmarks.harness import (
    Engine,
    Table,
    Worker,
    chosen,
    geomean,
    main,
    options,
    progress,
    scratch,
    surroundings,
    workers,
)

SAMPLES = {
    "person": "SELECT k_person1id FROM iv.knows",
    "name": "SELECT p_firstname FROM iv.person",
    "country": "SELECT c.pl_name FROM iv.person JOIN iv.place t ON p_placeid = t.pl_placeid"
    " JOIN iv.place c ON t.pl_containerplaceid = c.pl_placeid",
    "city": "SELECT p_placeid FROM iv.person",
    "tag": "SELECT t_name FROM iv.message_tag JOIN iv.tag ON mt_tagid = t_tagid",
    "class": "SELECT tc_name FROM iv.message_tag JOIN iv.tag ON mt_tagid = t_tagid JOIN iv.tagclass ON tc_tagclassid = t_tagclassid",
    "message": "SELECT m_messageid FROM iv.message",
    "company": "SELECT o_name FROM iv.person_company JOIN iv.organisation ON pc_organisationid = o_organisationid",
    "moment": "SELECT m_creationdate FROM iv.message",
}
"""What a parameter is drawn from, by frequency."""
KINDS = {
    "personId": "person", "person1Id": "person", "person2Id": "person", "firstName": "name", "countryXName": "country",
    "countryYName": "country", "countryName": "country", "country": "country", "country1": "country", "country2": "country",
    "city1Id": "city", "city2Id": "city", "tagName": "tag", "tag": "tag", "tagA": "tag", "tagB": "tag", "tagClassName": "class",
    "tagClass": "class", "messageId": "message", "company": "company",
}  # fmt: skip
STARTS = {"startDate", "datetime", "date", "dateA", "maxDate", "minDate", "endDate"}
"""Parameters that are a moment; ``endDate`` and ``dateB`` come as long after them as in the suite."""
FOLLOWING = {"endDate": "startDate", "dateB": "dateA"}


def parameters(connection: duckdb.DuckDBPyConnection, cases: int, seed: int = 1) -> dict[str, list[dict[str, Any]]]:
    """Return ``cases`` sets of parameters for every read, drawn from the data; what is no sample stays as the suite has it."""
    draw = random.Random(seed)
    pools = {
        kind: [row[0] for row in connection.execute(f"{sql} ORDER BY 1").fetchall()] for kind, sql in SAMPLES.items()
    }

    def drawn(query: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        made = {name: draw.choice(pools[KINDS[name]]) if name in KINDS else value for name, value in given.items()}
        for name in sorted(STARTS & set(given)):  # in an order that does not change with the process
            made[name] = _moment(draw.choice(pools["moment"]), given[name])
        for name, start in FOLLOWING.items():
            if name in given and start in given:
                made[name] = _later(made[start], given[start], given[name])
        return made

    reads = ldbc.queries()
    return {
        query["id"]: [drawn(query, query["cases"][i % len(query["cases"])]["parameters"]) for i in range(cases)]
        for query in reads
    }


def _moment(milliseconds: int, like: Any) -> Any:
    return str(dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC).date()) if isinstance(like, str) else milliseconds


def _later(start: Any, given: Any, later: Any) -> Any:
    if isinstance(start, str):
        days = dt.date.fromisoformat(later) - dt.date.fromisoformat(given)
        return str(dt.date.fromisoformat(start) + days)
    return start + later - given


class GraphDB:
    """Ours: a file for each of the two graphs."""

    def load(self, source: Path, folder: Path) -> int:
        for graph in ("iv", "bi"):
            with graphdb.connect(folder / f"{graph}.duckdb") as database:
                ldbc.load(database, source, graph)
        self.open(folder)
        return 0

    def open(self, folder: Path) -> None:
        self._graphs = {graph: graphdb.connect(folder / f"{graph}.duckdb") for graph in ("iv", "bi")}

    def count(self, query: Any) -> Any:
        read, given = query
        graph = read["graph"]
        return self._graphs[graph].query(read["cypher"], ldbc.arguments(graph, given)).fetchall()


class DuckDB:
    """The suite's SQL over its tables and indexes."""

    def load(self, source: Path, folder: Path) -> int:
        with duckdb.connect(folder / "tables.duckdb") as connection:
            ldbc.sql().load(source, connection)
        self.open(folder)
        return 0

    def open(self, folder: Path) -> None:
        # Read-only, so that the parameters can be drawn from the same file beside it.
        self._connection = duckdb.connect(folder / "tables.duckdb", read_only=True)

    def count(self, query: Any) -> Any:
        read, given = query
        sql = re.sub(r"(?<!:):([A-Za-z]\w*)", r"$\1", read["sql"])
        used = set(re.findall(r"\$(\w+)", sql))
        day = re.compile(r"\d{4}-\d\d-\d\d")
        bound = {
            name: dt.datetime.fromisoformat(value) if isinstance(value, str) and day.fullmatch(value) else value
            for name, value in given.items()
            if name in used
        }
        self._connection.execute(f"USE {read['graph']}")
        return self._connection.execute(sql, bound).fetchall()


KNOWN: dict[str, Callable[[], Engine]] = {"graphdb": GraphDB, "duckdb": DuckDB}


def run(argv: list[str]) -> list[Table]:
    parser = options(__doc__ or "", ["duckdb"], 3, 60.0)
    parser.add_argument("data", type=Path, help="folder with static/ and dynamic/")
    parser.add_argument("--only", default="", help="comma-separated names of reads")
    parser.add_argument("--cases", type=int, default=3, help="sets of parameters for each read")
    parser.add_argument("--seed", type=int, default=1, help="of the parameters")
    parser.add_argument("--keep", type=Path, help="folder whose databases are used, and made where it has none")
    given = parser.parse_args(argv)
    names = set(given.only.split(",")) - {""}
    reads = [query for query in ldbc.queries() if not names or query["id"] in names]
    table = Table(
        f"LDBC's reads, {given.data.name}: milliseconds",
        ["read", "first", "warm", "DuckDB first", "DuckDB warm", "ours/theirs"],
    )
    ratios = []
    with scratch() as space, workers(chosen(given.peers, KNOWN)) as engines:
        folder = given.keep or space
        for name, worker in engines.items():
            progress(f"loading into {name}")
            place = folder / name
            if place.exists():
                worker.reopen(place)
                continue
            place.mkdir(parents=True)
            loaded = worker.load(given.data, place, 1800)
            table.notes.append(f"{name} loaded in {loaded.seconds:.1f} s {loaded.trouble}")
        with duckdb.connect(folder / "duckdb" / "tables.duckdb", read_only=True) as connection:
            samples = parameters(connection, given.cases, given.seed)
        for read in reads:
            progress(read["id"])
            ours, theirs = (_asked(engines[name], read, samples[read["id"]], given) for name in ("graphdb", "duckdb"))
            ratio = ours["warm"] / theirs["warm"] if ours["warm"] and theirs["warm"] else None
            same = ours["rows"] is None or theirs["rows"] is None or ours["rows"] == theirs["rows"]
            if ratio:
                ratios.append(ratio)
            table.add(
                read["id"],
                *(_time(cell, at) for cell in (ours, theirs) for at in ("first", "warm")),
                "OTHER ROWS" if not same else f"{ratio:.2f}" if ratio else "-",
            )
    table.notes.append(
        f"geometric mean of ours/theirs {geomean(ratios):.2f} over {len(ratios)}; over 1.2: {sum(r > 1.2 for r in ratios)}"
    )
    table.notes.append(surroundings("graphdb", "duckdb"))
    return [table]


def _asked(worker: Worker, read: dict[str, Any], cases: list[dict[str, Any]], given: Any) -> dict[str, Any]:
    """Ask a read: once for its first time and each case's rows, then every case in turn; medians."""
    found: dict[str, Any] = {"first": None, "warm": None, "rows": [], "trouble": ""}
    seconds = []
    for turn in range(given.repeat + 1):
        for at, case in enumerate(cases):
            answer = worker.count((read, case), given.limit)
            if answer.trouble:
                return found | {"rows": None, "warm": None, "trouble": answer.trouble}
            if turn == 0:
                found["rows"].append(ldbc.sql().rows(json.loads(json.dumps(answer.value, default=_text)), read))
                found["first"] = answer.first if at == 0 else found["first"]
            else:
                seconds.append(answer.seconds)
            if turn and sum(seconds) > given.limit:
                break
    return found | {"warm": statistics.median(seconds)}


def _text(value: Any) -> Any:
    return ldbc.sql().plain(value) if not hasattr(value, "tolist") else value.tolist()


def _time(cell: dict[str, Any], at: str) -> str:
    if cell[at] is None:
        return cell["trouble"] or "-"
    return f"{cell[at] * 1000:,.1f}"


if __name__ == "__main__":
    main(run)

"""LDBC's Social Network Benchmark: its reads (our wording) against DuckDB's SQL over its tables and ladybug, in one run.

    python -m tests.benchmarks.ldbc DATA [--only IC2,BI9] [--cases 3] [--repeat 3] [--limit 60] [--keep FOLDER]
        [--memory-limit 1GB]

DATA has the folders ``static`` and ``dynamic``, as the suite's ``generate.py`` makes them.  Each read is asked with the
parameters of seeded samples of the data, of all engines in turns; all must give the same rows.  *First* is the time of a
read's first run in a process, *warm* the median over the sets of parameters, of each the least of its further runs, by the
clock; it is compared, and the processor's time of all threads like it.  A set of parameters that passes the limit counts
as one that takes so long.  With a memory limit, ours and DuckDB have the same, for reads and loads.  What ladybug cannot say is in :mod:`tests.benchmarks.ldbc_ladybug_reads`.  This is no audited LDBC result.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import random
import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

import graphdb
from tests import ldbc
from tests.benchmarks.harness import (
    LONG,
    Answer,
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
from tests.benchmarks.ldbc_ladybug import Ladybug

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


@dataclass(slots=True)
class GraphDB:
    """Ours: a file for each of the two graphs."""

    memory_limit: str | None = None
    _graphs: dict[str, graphdb.Database] = field(default_factory=dict)

    def load(self, source: Path, folder: Path) -> int:
        for graph in ("iv", "bi"):
            with graphdb.connect(folder / f"{graph}.duckdb", memory_limit=self.memory_limit) as database:
                ldbc.load(database, source, graph)
        self.open(folder)
        return 0

    def open(self, folder: Path) -> None:
        for graph in ("iv", "bi"):
            self._graphs[graph] = graphdb.connect(folder / f"{graph}.duckdb", memory_limit=self.memory_limit)

    def count(self, query: Any) -> Any:
        read, given = query
        graph = read["graph"]
        return self._graphs[graph].query(read["cypher"], ldbc.arguments(graph, given)).fetchall()


class DuckDB:
    """The suite's SQL over its tables and indexes."""

    def __init__(self, memory_limit: str | None = None) -> None:
        self._config: dict[str, Any] = {} if memory_limit is None else {"memory_limit": memory_limit}

    def load(self, source: Path, folder: Path) -> int:
        with duckdb.connect(folder / "tables.duckdb", config=self._config) as connection:
            ldbc.sql().load(source, connection)
        self.open(folder)
        return 0

    def open(self, folder: Path) -> None:
        # Read-only, so that the parameters can be drawn from the same file beside it.
        self._connection = duckdb.connect(folder / "tables.duckdb", read_only=True, config=self._config)
        self._connection.execute("SET enable_progress_bar = false")

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


KNOWN: dict[str, Callable[[], Engine]] = {"graphdb": GraphDB, "duckdb": DuckDB, "ladybug": Ladybug}
CLOCKS = ("clock", "processor")
"""What is compared: a call's seconds by the clock, and those of the processor over all threads."""


@dataclass(slots=True)
class Asked:
    """One engine's answers to a read: for each set of parameters its rows, and the least seconds of its warm runs."""

    rows: list[Any]
    least: dict[str, list[float]]
    first: float = math.nan
    trouble: str = ""

    def add(self, read: dict[str, Any], at: int, turn: int, answer: Answer) -> None:
        """Note an answer for the parameters ``at``; one that took too long counts as the limit, without rows."""
        late = bool(answer.trouble) and not math.isnan(answer.seconds)
        self.trouble = self.trouble or ("" if late else answer.trouble)
        if turn == 0:
            self.first = (answer.seconds if late else answer.first) if at == 0 else self.first
            self.rows[at] = None if answer.trouble else _rows(answer.value, read)
        if late or turn > 0:
            worked = answer.seconds if late else answer.processor
            for clock, seconds in zip(CLOCKS, (answer.seconds, worked), strict=True):
                self.least[clock][at] = min(seconds, self.least[clock][at])

    def warm(self, clock: str) -> float:
        """Return the median of the sets of parameters; not a number where there is no answer."""
        return math.nan if self.trouble else statistics.median(self.least[clock])

    def times(self) -> tuple[str, str]:
        """Return the first and the warm milliseconds as texts."""
        return tuple(self.trouble or f"{seconds * 1e3:,.1f}" for seconds in (self.first, self.warm("clock")))  # type: ignore[return-value]


def asked(engines: dict[str, Worker], read: dict[str, Any], cases: list[Any], given: Any) -> dict[str, Asked]:
    """Ask all engines in turns, each once for its first time and the rows of all ``cases``, then warm."""
    none = [math.inf] * len(cases)
    found = {name: Asked([None] * len(cases), {clock: none.copy() for clock in CLOCKS}) for name in engines}
    for turn in range(given.repeat + 1):
        for at, case in enumerate(cases):
            for name, worker in engines.items():
                mine = found[name]
                if not mine.trouble and not LONG < mine.least["clock"][at] < math.inf:
                    mine.add(read, at, turn, worker.count((read, case), given.limit))
    return found


def run(argv: list[str]) -> list[Table]:
    parser = options(__doc__ or "", ["duckdb", "ladybug"], 3, 60.0)
    parser.add_argument("data", type=Path, help="folder with static/ and dynamic/")
    parser.add_argument("--only", default="", help="comma-separated names of reads")
    parser.add_argument("--cases", type=int, default=3, help="sets of parameters for each read")
    parser.add_argument("--seed", type=int, default=1, help="of the parameters")
    parser.add_argument("--memory-limit", help="of our databases and of DuckDB; ladybug has none")
    parser.add_argument("--keep", type=Path, help="folder whose databases are used, and made where it has none")
    given = parser.parse_args(argv)
    names = set(given.only.split(",")) - {""}
    reads = [query for query in ldbc.queries() if not names or query["id"] in names]
    known = chosen(given.peers, KNOWN)
    for name, engine in (("graphdb", GraphDB), ("duckdb", DuckDB)):
        if name in known:
            known[name] = partial(engine, given.memory_limit)
    peers = [name for name in known if name != "graphdb"]
    headings = [heading for peer in peers for heading in (f"{peer} first", "warm", "ours/its", "processor")]
    limited = "" if given.memory_limit is None else f", within {given.memory_limit} of memory"
    table = Table(f"LDBC's reads, {given.data.name}{limited}: milliseconds", ["read", "first", "warm", *headings])
    ratios: dict[tuple[str, str], list[float]] = {(peer, clock): [] for peer in peers for clock in CLOCKS}
    over: dict[tuple[str, str], list[str]] = {key: [] for key in ratios}
    with scratch() as space, workers(known) as engines:
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
            found = asked(engines, read, samples[read["id"]], given)
            ours = found["graphdb"]
            row = [read["id"], *ours.times()]
            for peer in peers:
                theirs = found[peer]
                both = [pair for pair in zip(ours.rows, theirs.rows, strict=True) if None not in pair]
                same = all(one == other for one, other in both)
                row += theirs.times()
                for clock in CLOCKS:
                    ratio = ours.warm(clock) / theirs.warm(clock)
                    if not math.isnan(ratio):
                        ratios[peer, clock].append(ratio)
                        single = (a / b for a, b in zip(ours.least[clock], theirs.least[clock], strict=True))
                        over[peer, clock] += [f"{read['id']} {one:.2f}" for one in single if one > 1.2]
                    row.append("-" if math.isnan(ratio) else f"{ratio:.2f}" if same else "OTHER ROWS")
            table.add(*row)
    for (peer, clock), values in ratios.items():
        table.notes.append(
            f"ours/{peer}, {clock}: geometric mean {geomean(values):.2f} over {len(values)}, over 1.2: "
            f"{sum(r > 1.2 for r in values)}; single sets of parameters over 1.2: {', '.join(over[peer, clock]) or 'none'}"
        )
    table.notes.append(surroundings("graphdb", *peers))
    return [table]


def _rows(value: Any, read: dict[str, Any]) -> Any:
    return ldbc.sql().rows(json.loads(json.dumps(value, default=_text)), read)


def _text(value: Any) -> Any:
    return ldbc.sql().plain(value) if not hasattr(value, "tolist") else value.tolist()


if __name__ == "__main__":
    main(run)

"""LDBC's inserts on generated data: how long each takes, and whether the reads are right after them.

    python -m tests.benchmarks.ldbc_updates DATA [--runs 24] [--cases 2] [--limit 60] [--reads IC1,BI2]

DATA is as for :mod:`tests.benchmarks.ldbc`.  Each insert runs with ids drawn from the data, on the graphs of both kinds
(``iv`` with numbers, ``bi`` with times).  What it adds is also added as lines to a copy of the files, which DuckDB
loads afterwards: every read must give the same rows.  Times are those of the graph ``iv``, elapsed and of the processor;
the median is of the later half.  This is no audited LDBC result.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import random
import shutil
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

import graphdb
from tests import ldbc
from tests.benchmarks.harness import Table, main, progress, scratch, surroundings
from tests.benchmarks.ldbc import parameters

MOMENTS = {"creationDate", "joinDate"}
DAYS = {"birthday"}
Line = tuple[str, tuple[object, ...]]
"""A file's name, without its end, and the fields of a line."""


class Draws:
    """Parameters of inserts, drawn from the data, and the lines that say the same."""

    def __init__(self, tables: duckdb.DuckDBPyConnection, seed: int) -> None:
        self._random = random.Random(seed)
        self._next = 1 << 50

        def column(sql: str) -> list[Any]:
            return [row[0] for row in tables.execute(f"{sql} ORDER BY 1").fetchall()]

        self._pools = {
            "person": column("SELECT p_personid FROM iv.person"),
            "forum": column("SELECT f_forumid FROM iv.forum"),
            "post": column("SELECT m_messageid FROM iv.message WHERE m_c_replyof IS NULL"),
            "comment": column("SELECT m_messageid FROM iv.message WHERE m_c_replyof IS NOT NULL"),
            "tag": column("SELECT t_tagid FROM iv.tag"),
            "city": column("SELECT pl_placeid FROM iv.place WHERE pl_type = 'city'"),
            "country": column("SELECT pl_placeid FROM iv.place WHERE pl_type = 'country'"),
            "university": column("SELECT o_organisationid FROM iv.organisation WHERE o_type = 'university'"),
            "company": column("SELECT o_organisationid FROM iv.organisation WHERE o_type = 'company'"),
            "moment": column("SELECT m_creationdate FROM iv.message USING SAMPLE 1000 ROWS (reservoir, 1)"),
        }
        pairs = {
            "likes": "SELECT l_personid, l_messageid FROM iv.likes",
            "member": "SELECT fp_forumid, fp_personid FROM iv.forum_person",
            "knows": "SELECT k_person1id, k_person2id FROM iv.knows",
        }
        self._there = {name: set(tables.execute(sql).fetchall()) for name, sql in pairs.items()}

    def one(self, pool: str) -> Any:
        """Draw one of a pool."""
        return self._random.choice(self._pools[pool])

    def some(self, pool: str) -> list[Any]:
        """Draw up to three different ones."""
        return self._random.sample(self._pools[pool], self._random.randint(0, 3))

    def new(self) -> int:
        """Return an id that nothing has."""
        self._next += 1
        return self._next

    def pair(self, relation: str, left: str, right: str) -> tuple[int, int]:
        """Draw a pair that a relation lacks, and note that it has it now."""
        while True:
            one, two = self.one(left), self.one(right)
            if one != two and (one, two) not in self._there[relation]:
                self._there[relation] |= {(one, two), (two, one)} if relation == "knows" else {(one, two)}
                return one, two


def insert_person(draw: Draws) -> tuple[dict[str, Any], list[Line]]:
    """IU1."""
    person, city, born, at = draw.new(), draw.one("city"), 365_126_400_000, draw.one("moment")
    tags, studies = draw.some("tag"), [[each, 2005] for each in draw.some("university")]
    jobs = [[each, 2007] for each in draw.some("company")]
    own = (person, "Akira", "Ito", "female", born, at, "27.126.77.1", "Chrome", "ja;en", f"a{person}@gmail.com")
    lines: list[Line] = [("person", own), ("person_isLocatedIn_place", (person, city))]
    lines += [("person_hasInterest_tag", (person, tag)) for tag in tags]
    lines += [("person_studyAt_organisation", (person, *study)) for study in studies]
    lines += [("person_workAt_organisation", (person, *job)) for job in jobs]
    given = {
        "personId": person, "personFirstName": "Akira", "personLastName": "Ito", "gender": "female", "birthday": born,
        "creationDate": at, "locationIP": "27.126.77.1", "browserUsed": "Chrome", "cityId": city,
        "languages": ["ja", "en"], "emails": [f"a{person}@gmail.com"], "tagIds": tags, "studyAt": studies,
        "workAt": jobs,
    }  # fmt: skip
    return given, lines


def insert_like(kind: str) -> Callable[[Draws], tuple[dict[str, Any], list[Line]]]:
    """IU2 and IU3."""

    def draw_like(draw: Draws) -> tuple[dict[str, Any], list[Line]]:
        (person, message), at = draw.pair("likes", "person", kind), draw.one("moment")
        given = {"personId": person, f"{kind}Id": message, "creationDate": at}
        return given, [(f"person_likes_{kind}", (person, message, at))]

    return draw_like


def insert_forum(draw: Draws) -> tuple[dict[str, Any], list[Line]]:
    """IU4."""
    forum, chair, at, tags = draw.new(), draw.one("person"), draw.one("moment"), draw.some("tag")
    given = {"forumId": forum, "forumTitle": f"Album {forum}", "creationDate": at, "moderatorPersonId": chair}
    lines: list[Line] = [("forum", (forum, f"Album {forum}", at)), ("forum_hasModerator_person", (forum, chair))]
    return given | {"tagIds": tags}, [*lines, *(("forum_hasTag_tag", (forum, tag)) for tag in tags)]


def insert_member(draw: Draws) -> tuple[dict[str, Any], list[Line]]:
    """IU5."""
    (forum, person), at = draw.pair("member", "forum", "person"), draw.one("moment")
    given = {"forumId": forum, "personId": person, "joinDate": at}
    return given, [("forum_hasMember_person", (forum, person, at))]


def insert_post(draw: Draws) -> tuple[dict[str, Any], list[Line]]:
    """IU6."""
    post, writer, forum, land = draw.new(), draw.one("person"), draw.one("forum"), draw.one("country")
    at, tags, content = draw.one("moment"), draw.some("tag"), f"About {draw.one('tag')}"
    given = {
        "postId": post, "imageFile": "", "creationDate": at, "locationIP": "27.34.236.2", "browserUsed": "Safari",
        "language": "en", "content": content, "length": len(content), "authorPersonId": writer, "forumId": forum,
        "countryId": land, "tagIds": tags,
    }  # fmt: skip
    lines: list[Line] = [
        ("post", (post, "", at, "27.34.236.2", "Safari", "en", content, len(content))),
        ("post_hasCreator_person", (post, writer)),
        ("post_isLocatedIn_place", (post, land)),
        ("forum_containerOf_post", (forum, post)),
    ]
    return given, [*lines, *(("post_hasTag_tag", (post, tag)) for tag in tags)]


def insert_comment(draw: Draws) -> tuple[dict[str, Any], list[Line]]:
    """IU7."""
    comment, writer, land, at = draw.new(), draw.one("person"), draw.one("country"), draw.one("moment")
    kind, tags = draw._random.choice(["post", "comment"]), draw.some("tag")
    asked, content = draw.one(kind), f"maybe {draw.one('tag')}"
    given = {
        "commentId": comment, "creationDate": at, "locationIP": "31.24.148.1", "browserUsed": "Firefox",
        "content": content, "length": len(content), "authorPersonId": writer, "countryId": land, "tagIds": tags,
        "replyToPostId": asked if kind == "post" else -1, "replyToCommentId": asked if kind == "comment" else -1,
    }  # fmt: skip
    lines: list[Line] = [
        ("comment", (comment, at, "31.24.148.1", "Firefox", content, len(content))),
        ("comment_hasCreator_person", (comment, writer)),
        ("comment_isLocatedIn_place", (comment, land)),
        (f"comment_replyOf_{kind}", (comment, asked)),
    ]
    return given, [*lines, *(("comment_hasTag_tag", (comment, tag)) for tag in tags)]


def insert_friendship(draw: Draws) -> tuple[dict[str, Any], list[Line]]:
    """IU8."""
    (one, two), at = draw.pair("knows", "person", "person"), draw.one("moment")
    return {"person1Id": one, "person2Id": two, "creationDate": at}, [("person_knows_person", (one, two, at))]


INSERTS = {
    "IU1": insert_person, "IU2": insert_like("post"), "IU3": insert_like("comment"), "IU4": insert_forum,
    "IU5": insert_member, "IU6": insert_post, "IU7": insert_comment, "IU8": insert_friendship,
}  # fmt: skip


def as_times(given: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of an insert as the graph ``bi`` has them."""

    def value(name: str, each: Any) -> Any:
        if name not in MOMENTS | DAYS:
            return each
        moment = dt.datetime.fromtimestamp(each / 1000, dt.UTC)
        return moment.date() if name in DAYS else moment

    return {name: value(name, each) for name, each in given.items()}


def run(argv: list[str]) -> list[Table]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with static/ and dynamic/")
    parser.add_argument("--runs", type=int, default=24, help="of each insert")
    parser.add_argument("--cases", type=int, default=2, help="sets of parameters for each read")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a read")
    parser.add_argument("--reads", default="", help="comma-separated names of reads; all by default")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(argv)
    table = Table(f"LDBC's inserts, {given.data.name}: milliseconds", ["insert", "first", "elapsed", "processor"])
    with scratch() as space:
        graphs = {graph: graphdb.connect(space / f"{graph}.duckdb") for graph in ("iv", "bi")}
        for graph, database in graphs.items():
            progress(f"loading {graph}")
            ldbc.load(database, given.data, graph)
        with duckdb.connect() as tables:
            ldbc.sql().load(given.data, tables)
            draws = Draws(tables, given.seed)
        lines = _inserted(graphs, draws, given.runs, table)
        shutil.copytree(given.data, space / "data")
        for name, rows in lines.items():
            with (space / "data" / "dynamic" / f"{name}_0_0.csv").open("a", encoding="utf-8") as file:
                file.writelines("|".join(map(str, row)) + "\n" for row in rows)
        table.notes.append(_compared(graphs, space / "data", given))
    table.notes.append(surroundings("graphdb", "duckdb"))
    return [table]


def _inserted(
    graphs: dict[str, graphdb.Database], draws: Draws, runs: int, table: Table
) -> dict[str, list[tuple[object, ...]]]:
    lines: dict[str, list[tuple[object, ...]]] = defaultdict(list)
    for update in ldbc.updates():
        progress(update["id"])
        times: list[tuple[float, float]] = []
        for _ in range(runs):
            parameters, own = INSERTS[update["id"]](draws)
            for name, row in own:
                lines[name].append(row)
            elapsed, processor = time.perf_counter(), time.process_time()
            graphs["iv"].query(update["cypher"], parameters)
            times.append((time.perf_counter() - elapsed, time.process_time() - processor))
            graphs["bi"].query(update["cypher"], as_times(parameters))
        later = times[runs // 2 :]
        medians = [statistics.median(each) * 1000 for each in zip(*later, strict=True)]
        table.add(update["id"], f"{times[0][0] * 1000:.1f}", *(f"{each:.1f}" for each in medians))
    return lines


def _compared(graphs: dict[str, graphdb.Database], data: Path, given: Any) -> str:
    """Ask all reads of both, after the inserts; say how many give the same rows."""
    names, right, other = set(given.reads.split(",")) - {""}, [], []
    with duckdb.connect() as tables:
        ldbc.sql().load(data, tables)
        samples = parameters(tables, given.cases, given.seed)
        for read in ldbc.queries():
            if names and read["id"] not in names:
                continue
            progress(read["id"])
            same = True
            for case in samples[read["id"]]:
                values = ldbc.arguments(read["graph"], case)
                found = graphs[read["graph"]].query(read["cypher"], values, timeout=given.limit).fetchall()
                ours = ldbc.sql().rows([[_plain(value) for value in row] for row in found], read)
                same = same and json.dumps(ours, default=str) == json.dumps(
                    ldbc.sql().ask(tables, read, case), default=str
                )
            (right if same else other).append(read["id"])
    rows = sum(given.runs for _ in INSERTS)
    return f"after {rows} inserts {len(right)} reads give DuckDB's rows; others: {', '.join(other) or 'none'}"


def _plain(value: Any) -> Any:
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


if __name__ == "__main__":
    main(run)

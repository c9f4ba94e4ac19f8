"""LDBC's Social Network Benchmark: its files as tables to load, and its queries (ours in wording) asked of us and of DuckDB.

The suite lies in the shared folder (``suites/ldbc``); its own ``tables.py`` says how DuckDB is asked and how rows are compared.
"""

from __future__ import annotations

import datetime as dt
import gzip
import importlib.util
import json
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import graphdb
from tests.datasets import SHARED

SUITE = SHARED / "suites" / "ldbc"
LABELS = {
    "comment": "Comment:Message",
    "post": "Post:Message",
    "forum": "Forum",
    "person": "Person",
    "tag": "Tag",
    "tagclass": "TagClass",
}
KINDS = {"place", "organisation"}
"""Files whose vertices have a label of their own, and one by their column ``type``."""
LISTS = {"language": "speaks", "email": "email"}
"""Columns of persons that are lists, and the names of their properties."""
INTEGERS = {"length", "classYear", "workFrom"}
MOMENTS = {"creationDate", "joinDate"}


CHEAPEST = {
    "BI15": """MATCH (one:Person {id: $person1Id}), (two:Person {id: $person2Id})
OPTIONAL MATCH ANY SHORTEST (one)((x)-[:KNOWS]-(y))+(two)
COST BY 1 / (1 + COUNT {
            MATCH (f:Forum)-[:CONTAINER_OF]->(:Post)<-[:REPLY_OF*0..]-(m:Message)
            WHERE $startDate <= f.creationDate <= $endDate
            MATCH (x)<-[:HAS_CREATOR]-(m)-[:REPLY_OF]-(n:Message)-[:HAS_CREATOR]->(y)
            WHERE m:Post OR n:Post
        } + 0.5 * COUNT {
            MATCH (f:Forum)-[:CONTAINER_OF]->(:Post)<-[:REPLY_OF*]-(m:Comment)
            WHERE $startDate <= f.creationDate <= $endDate
            MATCH (x)<-[:HAS_CREATOR]-(m)-[:REPLY_OF]-(:Comment)-[:HAS_CREATOR]->(y)
        }) AS weight
RETURN coalesce(weight, -1.0) AS weight""",
    "BI19": """MATCH (:City {id: $city1Id})<-[:IS_LOCATED_IN]-(one:Person),
      ANY SHORTEST (one)((x)-[:KNOWS]-(y) WHERE COUNT {
          (x)<-[:HAS_CREATOR]-(:Message)-[:REPLY_OF]-(:Message)-[:HAS_CREATOR]->(y)
      } > 0)+(two:Person)
      COST BY CASE
          WHEN round(40 - sqrt(COUNT { (x)<-[:HAS_CREATOR]-(:Message)-[:REPLY_OF]-(:Message)-[:HAS_CREATOR]->(y) })) < 1 THEN 1
          ELSE toInteger(round(40 - sqrt(COUNT { (x)<-[:HAS_CREATOR]-(:Message)-[:REPLY_OF]-(:Message)-[:HAS_CREATOR]->(y) })))
      END AS weight,
      (two)-[:IS_LOCATED_IN]->(:City {id: $city2Id})
WITH collect({one: one.id, two: two.id, weight: weight}) AS found, min(weight) AS least
UNWIND [f IN found WHERE f.weight = least] AS best
RETURN best.one AS oneId, best.two AS twoId, best.weight AS weight
ORDER BY oneId, twoId""",
    "BI20": """MATCH (start:Person {id: $person2Id}), (employee:Person)-[:WORK_AT]->(:Company {name: $company})
WHERE employee <> start
MATCH ANY SHORTEST (start)((x)-[:KNOWS]-(y)
          WHERE size([(x)-[a:STUDY_AT]->(:University)<-[b:STUDY_AT]-(y) | abs(a.classYear - b.classYear)]) > 0
      )+(employee)
      COST BY 1 + reduce(
          least = 10000, gap IN [(x)-[a:STUDY_AT]->(:University)<-[b:STUDY_AT]-(y) | abs(a.classYear - b.classYear)] |
          CASE WHEN gap < least THEN gap ELSE least END
      ) AS weight
WITH collect({id: employee.id, weight: weight}) AS found, min(weight) AS least
UNWIND [f IN found WHERE f.weight = least] AS best
RETURN best.id AS employeeId, best.weight AS weight
ORDER BY employeeId
LIMIT 20""",
}
"""The queries for the cheapest of all paths, with ``COST BY``: in openCypher they can but look at every trail."""


def queries() -> list[dict[str, Any]]:
    """Return the reads, those of cheapest paths in the form of :data:`CHEAPEST`; none where the suite is not there."""
    found = json.loads((SUITE / "queries.json").read_text()) if SUITE.exists() else []
    return [{**query, "cypher": CHEAPEST.get(query["id"], query["cypher"])} for query in found]


def updates() -> list[dict[str, Any]]:
    """Return the inserts; none where the suite is not there."""
    return json.loads((SUITE / "updates.json").read_text()) if SUITE.exists() else []


@cache
def sql() -> ModuleType:
    """Return the suite's own module: ``load``, ``ask`` and ``rows`` for DuckDB."""
    found = importlib.util.spec_from_file_location("ldbc_tables", SUITE / "tables.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def load(database: graphdb.Database, folder: Path, graph: str) -> None:
    """Load a folder's files (``static`` and ``dynamic``) as the graph ``iv`` (numbers) or ``bi`` (times)."""
    database.load([_table(path, graph) for path in sorted(folder.glob("*/*.csv*"))], delimiter="|", quote="")


def ask(database: graphdb.Database, query: dict[str, Any], parameters: dict[str, Any]) -> list[Any]:
    """Return a query's rows, as the suite compares them."""
    found = database.query(query["cypher"], arguments(query["graph"], parameters)).fetchall()
    return sql().rows([[_plain(value) for value in row] for row in found], query)  # type: ignore[no-any-return]


def arguments(graph: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return a case's parameters as values: in ``bi``, a text that is a day is the moment it begins in UTC."""
    day = re.compile(r"\d{4}-\d\d-\d\d")

    def value(given: Any) -> Any:
        if graph == "bi" and isinstance(given, str) and day.fullmatch(given):
            return dt.datetime.fromisoformat(given).replace(tzinfo=dt.UTC)
        return given

    return {name: value(given) for name, given in parameters.items()}


def _plain(value: Any) -> Any:
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def _table(path: Path, graph: str) -> graphdb.Table:
    ends = path.name.split(".")[0].removesuffix("_0_0").split("_")
    names = header(path)
    group = {"comment": "message", "post": "message"}
    if len(ends) == 3:
        kinds = [group.get(kind, kind) for kind in (ends[0], ends[2])]
        heads = [f":{where}_ID({kind}){{long}}" for where, kind in zip(("START", "END"), kinds, strict=True)]
        label = re.sub(r"(?=[A-Z])", "_", ends[1]).upper()
        return graphdb.Table(path, type=label, columns=[*heads, *(_header(name, graph) for name in names[2:])])
    (kind,) = ends
    heads = [
        f"id:ID({group.get(kind, kind)}){{long}}",
        *(_listed(name) or _header(name, graph) if kind == "person" else _header(name, graph) for name in names[1:]),
    ]
    if kind not in KINDS:
        return graphdb.Table(path, label=LABELS[kind], columns=heads)
    read = f"""SELECT *, upper(type[1]) || type[2:] AS kind FROM read_csv('{path}', delim = '|', quote = '', header = true)"""
    return graphdb.Table(sql=read, label=kind.capitalize(), columns=[*heads, ":LABEL"])


def header(path: Path) -> list[str]:
    """Return the names of a file's columns."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        return next(file).rstrip("\n").split("|")


def _listed(name: str) -> str | None:
    return f"{LISTS[name]}:list<string>" if name in LISTS else None


def _header(name: str, graph: str) -> str:
    if graph == "bi" and name in MOMENTS:
        return f"{name}:datetime{{epoch_ms}}"
    if graph == "bi" and name == "birthday":
        return "birthday:date{epoch_ms}"
    return f"{name}:long" if name in INTEGERS | MOMENTS | {"birthday"} else f"{name}:string"

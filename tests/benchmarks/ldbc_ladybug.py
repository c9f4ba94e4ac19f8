"""LDBC's graphs in ladybug: its tables, the suite's files copied into them, and how it runs a read.

Places and organisations have a table for each kind, a message is a ``Post`` or a ``Comment``.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from tests import ldbc
from tests.benchmarks.harness import CORES, CannotExpress
from tests.benchmarks.ldbc_ladybug_reads import CANNOT, TEXTS

VERTICES = {
    "City": "place",
    "Country": "place",
    "Continent": "place",
    "University": "organisation",
    "Company": "organisation",
    "Tag": "tag",
    "TagClass": "tagclass",
    "Person": "person",
    "Forum": "forum",
    "Post": "post",
    "Comment": "comment",
}
"""The file of each label."""
EDGES = {
    "isPartOf": ["City Country", "Country Continent"],
    "isSubclassOf": ["TagClass TagClass"],
    "hasType": ["Tag TagClass"],
    "isLocatedIn": ["University City", "Company Country", "Person City", "Post Country", "Comment Country"],
    "hasInterest": ["Person Tag"],
    "knows": ["Person Person"],
    "studyAt": ["Person University"],
    "workAt": ["Person Company"],
    "hasCreator": ["Post Person", "Comment Person"],
    "replyOf": ["Comment Post", "Comment Comment"],
    "likes": ["Person Post", "Person Comment"],
    "hasMember": ["Forum Person"],
    "hasModerator": ["Forum Person"],
    "containerOf": ["Forum Post"],
    "hasTag": ["Forum Tag", "Post Tag", "Comment Tag"],
}
"""The labels that each type joins; one of several that share a file takes the rows whose ends it has."""


class Ladybug:
    """ladybug: a file for each of the two graphs."""

    def load(self, source: Path, folder: Path) -> int:
        self.open(folder)
        table = folder / "table.parquet"
        for graph, connection in self._graphs.items():
            for statement in statements(source, graph, table):
                connection.execute(statement)
        table.unlink()
        return 0

    def open(self, folder: Path) -> None:
        import ladybug

        self._graphs: dict[str, Any] = {
            graph: ladybug.Connection(ladybug.Database(str(folder / graph), max_num_threads=CORES))
            for graph in ("iv", "bi")
        }

    def count(self, query: Any) -> Any:
        read, given = query
        if read["id"] in CANNOT:
            raise CannotExpress(CANNOT[read["id"]])
        text = TEXTS[read["id"]]
        used = set(re.findall(r"\$(\w+)", text))
        values = {
            # Times here have no zone: UTC is meant.
            name: value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value
            for name, value in ldbc.arguments(read["graph"], given).items()
            if name in used
        }
        rows = self._graphs[read["graph"]].execute(text, values).get_all()
        return [[_listed(value) for value in row] for row in rows]


def _listed(value: Any) -> Any:
    """A record as the list of its values, one without a value (of an optional match) as null."""
    if isinstance(value, dict):
        return list(value.values()) if any(part is not None for part in value.values()) else None
    return [_listed(part) for part in value] if isinstance(value, list) else value


def statements(source: Path, graph: str, table: Path) -> Iterator[str]:
    """Return the statements that make ``iv`` or ``bi`` and copy the files of ``source``: through Parquet, each as ``table``."""
    for label, file in VERTICES.items():
        columns = {name: _column(name, graph, label == "Person") for name in _header(source, file)}
        where = f"WHERE c{list(columns).index('type')} = '{label.lower()}'" if "type" in columns else ""
        _write(ldbc.sql().source(source, f"*/{file}") + " " + where, columns, table)
        made = ", ".join(f"{name} {kind}" for name, kind, _ in columns.values())
        yield f"CREATE NODE TABLE {label}({made}, PRIMARY KEY (id))"
        yield f"COPY {label} FROM '{table}'"
    for name, ends in EDGES.items():
        label, joined = re.sub(r"(?=[A-Z])", "_", name).upper(), [end.split() for end in ends]
        for start, end in joined:
            file = f"{VERTICES[start]}_{name}_{VERTICES[end]}"
            rest = {column: _column(column, graph, False) for column in _header(source, file)[2:]}
            ids = {column: (column, "INT64", "{}::BIGINT") for column in ("start", "end")}
            _write(ldbc.sql().source(source, f"*/{file}"), ids | rest, table)
            if [start, end] == joined[0]:
                pairs = [f"FROM {one} TO {other}" for one, other in joined]
                yield f"CREATE REL TABLE {label}({', '.join([*pairs, *(f'{name} {kind}' for name, kind, _ in rest.values())])})"
            # A file of places or organisations has rows of other labels, too.
            some = ", IGNORE_ERRORS=true" if {VERTICES[start], VERTICES[end]} & ldbc.KINDS else ""
            yield f"COPY {label} FROM '{table}' (FROM='{start}', TO='{end}'{some})"


def _header(source: Path, file: str) -> list[str]:
    (path,) = source.glob(f"*/{file}_0_0.csv*")
    return ldbc.header(path)


def _column(name: str, graph: str, person: bool) -> tuple[str, str, str]:
    """Return a column's name and type in ladybug, and the SQL that makes it of the file's text."""
    if person and name in ldbc.LISTS:
        return ldbc.LISTS[name], "STRING[]", "string_split({}, ';')"
    if graph == "bi" and name in ldbc.MOMENTS | {"birthday"}:
        return name, "TIMESTAMP", "epoch_ms({}::BIGINT)"
    whole = name in {"id", "birthday"} | ldbc.INTEGERS | ldbc.MOMENTS
    return name, "INT64" if whole else "STRING", "{}::BIGINT" if whole else "{}"


def _write(rows: str, columns: dict[str, tuple[str, str, str]], path: Path) -> None:
    made = [f'{sql.format(f"c{at}")} AS "{name}"' for at, (name, _, sql) in enumerate(columns.values())]
    duckdb.sql(f"COPY (SELECT {', '.join(made)} FROM {rows}) TO '{path}'")

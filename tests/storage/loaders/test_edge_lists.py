"""Edge lists: those of integers are read by a kernel, all others by DuckDB, and both say the same."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import graphdb
from graphdb.storage.loaders.sources import Options, sources_of
from graphdb.storage.loaders.streams import blocks
from graphdb.storage.loaders.tables.fields import edge_lists
from graphdb.storage.loaders.tables.headers import Mapping


def pairs(folder: Path, text: str | bytes) -> list[list[int]] | None:
    """What the kernel reads."""
    path = folder / "list.edges"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    found = edge_lists.pairs(str(path), lambda: None)
    return None if found is None else np.concatenate(found).tolist()


def edges(folder: Path, text: str) -> list[tuple[str, str]]:
    path = folder / "list.edges"
    path.write_bytes(text.encode())
    with graphdb.connect(threads=1) as db:
        db.load(str(path))
        assert db.sql("SELECT count(*) FROM _graphdb.edge").fetchall() == [(0,)]  # repeated ones are not parallel
        return sorted(db.query("MATCH (a)-[:edge]->(b) RETURN iri(a), iri(b)").fetchall())


READ = {
    "1 2\n": [(1, 2)],
    "1\t2\r\n3, 4": [(1, 2), (3, 4)],
    "# a comment\n% another\n\n  1 ,\t 2  \n \t\n-5 0\n": [(1, 2), (-5, 0)],
    "999999999999999999 -999999999999999999\n": [(10**18 - 1, 1 - 10**18)],
    "1 2\n# last": [(1, 2)],
    "1 2\n#\r\n\r\n3 4\r\n": [(1, 2), (3, 4)],
    "#\n": [],
}


@pytest.mark.parametrize(("text", "expected"), READ.items())
def test_pairs_of_integers(text: str, expected: list[tuple[int, int]], tmp_path: Path) -> None:
    assert pairs(tmp_path, text) == [list(pair) for pair in expected]
    assert edges(tmp_path, text) == sorted((f"urn:graphdb:{a}", f"urn:graphdb:{b}") for a, b in expected)


OTHERS: list[str | bytes] = [
    "1\n", "1 2 3\n", "1 2 x\n", "a b\n", "01 2\n", "1 -0\n", "+1 2\n", "1 1000000000000000000\n", "1.0 2\n", ",1 2\n", "1 2,\n",
    "1 2\r3 4\r", "1 2 # no comment\n", "1 -\n", "- 1\n", "1 2\0\n", "#\0\n", b"# \xff\n", "\ufeff1 2\n", "1\x0b2\n",
]  # fmt: skip


@pytest.mark.parametrize("text", OTHERS)
def test_what_the_kernel_leaves_to_duckdb(text: str | bytes, tmp_path: Path) -> None:
    assert pairs(tmp_path, "5 6\n" + text if isinstance(text, str) and text[0] != "\ufeff" else text) is None


def test_names_and_weights_are_read_as_before(tmp_path: Path) -> None:
    assert edges(tmp_path, "1 2\n01 b\n1 2\n") == [
        ("urn:graphdb:01", "urn:graphdb:b"),
        ("urn:graphdb:1", "urn:graphdb:2"),
    ]
    path = tmp_path / "weights.edges"
    path.write_text("1 2 0.5\n2 3 1\n")
    with graphdb.connect(threads=1) as db:
        db.load(str(path), type="ROAD")
        assert db.query("MATCH ()-[e:ROAD]->() RETURN e.weight ORDER BY e.weight").fetchall() == [(0.5,), (1.0,)]
    path.write_text("1 2\n3\n")
    with graphdb.connect(threads=1) as db, pytest.raises(graphdb.LoadError, match="expected two vertices"):
        db.load(str(path))


@pytest.mark.parametrize("step", [1, 7, 64, 1 << 20])
def test_any_edge_list(step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_lists, "_STEP", step)
    draw = random.Random(step)
    expected, lines = [], []
    for _ in range(300):
        a, b = (draw.choice([draw.randrange(10), draw.randrange(-(10**6), 10**18)]) for _ in "ab")
        kind = draw.randrange(8)
        if kind < 6:
            expected.append([a, b])
        between, before, behind = (draw.choice(["", " ", "\t", "  "]) for _ in range(3))
        line = f"{before}{a}{draw.choice([' ', chr(9), ',', ', '])}{between}{b}{behind}"
        lines.append(line if kind < 6 else draw.choice(["", " ", "# x", "  % 1 2"]))
    text = "".join(line + draw.choice(["\n", "\r\n"]) for line in lines)
    assert pairs(tmp_path, text) == expected
    assert pairs(tmp_path, text[:-1].rstrip("\r")) == expected


def test_an_empty_graph_and_one_that_has_some_get_the_same(tmp_path: Path) -> None:
    path = tmp_path / "list.edges"
    path.write_text("1 2\n2 3\n1 2\n3 1\n")
    (tmp_path / "ids.csv").write_text(":ID\n1\n9\n")
    counts: list[Any] = []
    for first in (False, True):
        with graphdb.connect(threads=1) as db:
            if first:
                db.load(str(tmp_path / "ids.csv"), label="V")
            assert db.load(str(path)).new_triples == 3
            assert db.load(str(path)).new_triples == 0
            assert db.sql("SELECT triples FROM _graphdb.source WHERE path LIKE '%edges'").fetchall() == [(4,), (4,)]
            counts.append(db.query("MATCH (a)-->(b)-->(c)-->(a) RETURN count(*)").scalar())
    assert counts == [3, 3]


def test_edges_of_many_rows_are_read_in_little_memory(tmp_path: Path) -> None:
    """Which of them are parallel is found without all of them in memory: here two rows, which are spoken of apart."""
    rows, path = 120_000, str(tmp_path / "edges.parquet")
    ends = "least(i % 1000, 998) AS a, i // 1000 AS b"  # the two last of each thousand are the same
    duckdb.sql(f"COPY (SELECT {ends} FROM range({rows}) t(i)) TO '{path}'")
    mapping = Mapping(columns={"a": ":START_ID(P){long}", "b": ":END_ID(P){long}"}, type="K")
    [source] = sources_of(path, Options(mapping=mapping), str(tmp_path), 14_000_000)
    lines = [line for block in blocks(source.produce, lambda *_: None) for line in bytes(block.text).splitlines()]
    reified = [line for line in lines if b"<<(" in line]
    assert (len(lines) - len(reified), len(reified)) == (rows, 2 * rows // 1000)

"""The first load of an empty graph: the same database as by the general way, whatever threads, memory and blocks."""

from __future__ import annotations

import json
import random
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.common import arrow
from graphdb.common.config import Budget
from graphdb.data import GEOGRAPHY
from graphdb.storage.arrays import external_sort, spill
from graphdb.storage.arrays.batch import Batch
from graphdb.storage.loaders import loading, streams
from graphdb.storage.loaders.tables import assembly
from graphdb.storage.loaders.terms import collect, stored, unify
from graphdb.storage.statistics import labels as statistics
from graphdb.storage.statistics import streaming
from graphdb.storage.statistics import tables as label_tables
from graphdb.storage.updates import append, bulk
from tests.fuzz import scaled

TABLES = {
    "resource": "id",
    "literal": "id",
    "triple": "label, subject, object",
    "edge_label": "id",
    "vertex_label": "id",
    "degree": "label, direction, bucket",
    "label_pair": "label, class, direction",
}


OTHERS = {
    "quad": "graph, label, subject, object",
    "edge": "label, subject, object, ordinal",
    "reifier": "reifier, label, subject, object",
    "edge_graph": "label, subject, object, ordinal, graph",
    "edge_property": "label, subject, object, ordinal, key, value",
}


def contents(db: graphdb.Database, *tables: str) -> dict[str, list[Any]]:
    """The rows of tables, in order; those that are added up when they are read, added up."""
    rows = db._state.connection.rows
    read = {name: f"({label_tables.summed(name)})" for name in label_tables.APPENDED}
    return {
        name: rows(f"SELECT * FROM {read.get(name, f'_graphdb.{name}')} ORDER BY {(TABLES | OTHERS)[name]}")
        for name in tables or TABLES
    }


def recounted(db: graphdb.Database) -> dict[str, list[Any]]:
    """The statistics as SQL counts them."""
    names = list(TABLES)[3:]
    with db._state.connection.guard() as raw:
        labels = raw.execute("SELECT id FROM _graphdb.edge_label").fetchnumpy()["id"]
        raw.begin()
        for name in names:
            raw.execute(f"DELETE FROM _graphdb.{name}")
        statistics.refresh(raw, labels.astype(np.int64))
        found = contents(db, *names)
        raw.rollback()
    return found


def loaded(data: Any, **options: Any) -> dict[str, list[Any]]:
    with graphdb.connect(**options) as db:
        db.load(data)
        return contents(db)


def test_statistics_are_those_that_sql_counts() -> None:
    with graphdb.connect() as db:
        db.load(GEOGRAPHY)
        assert contents(db, *list(TABLES)[3:]) == recounted(db)


def test_threads_do_not_matter() -> None:
    """Ids are those of the first occurrence in the file."""
    assert loaded(GEOGRAPHY, threads=1) == loaded(GEOGRAPHY, threads=4)


@pytest.mark.parametrize("way", ["spilled", "several batches", "as if there were more"])
def test_every_way_gives_the_same(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Texts and triples on disk; terms that do not fit; and terms that DuckDB finds."""
    expected = loaded(GEOGRAPHY)
    monkeypatch.setattr(streams, "BLOCK", 50_000)
    monkeypatch.setattr(collect, "_PIECE", 5_000)
    taken: list[bool] = []

    def batch(self: collect.Collector) -> Batch:
        taken.append(self.spilled)
        return whole(self)

    whole = collect.Collector._batch
    monkeypatch.setattr(collect.Collector, "_batch", batch)
    if way == "spilled":
        monkeypatch.setattr(Budget, "of", lambda limit: Budget(1 << 30, 1 << 22, 100))
        monkeypatch.setattr(collect.Collector, "full", False)
    elif way == "several batches":
        monkeypatch.setattr(collect, "_SLOTS", 1_000)
        monkeypatch.setattr(unify, "PARTS", 8)
        monkeypatch.setattr(Budget, "of", lambda limit: Budget(1 << 30, 10_000, 10_000))
    else:
        monkeypatch.setattr(bulk, "is_empty", lambda connection: False)
    assert loaded(GEOGRAPHY) == expected
    assert taken[0] == (way != "as if there were more")
    assert (len(taken) > 1) == (way == "several batches")


terms = st.sampled_from([f"<a:{name}>" for name in "stuvw"])
labels = st.sampled_from(["<a:p>", "<a:q>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"])
values = st.sampled_from(['"x"', '"x"@en', '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', '"y"^^<a:t>', "_:b"])


@settings(max_examples=scaled(40), deadline=None)
@given(st.lists(st.tuples(terms | st.just("_:b"), labels, terms | values), max_size=40), st.integers(1, 200))
def test_random_graphs(tmp_path_factory: pytest.TempPathFactory, triples: list[tuple[str, ...]], memory: int) -> None:
    """Runs of a few triples, windows of two, and terms in any number of batches make what one piece makes."""
    file = tmp_path_factory.mktemp("random") / "data.nt"
    file.write_text("".join(" ".join(triple) + " .\n" for triple in triples))
    expected = loaded(file)
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            (streams, "BLOCK", 100), (collect, "_SLOTS", 8), (unify, "PARTS", 2), (spill, "WINDOW", 2),
            (external_sort, "_LABELS", 2), (external_sort, "SMALL_LABEL", memory % 9), (external_sort, "_TOGETHER", 5), (streaming, "_PAIRS", 1),
            (bulk, "ROWS", 3), (streaming, "ROWS", 3), (Budget, "of", lambda _: Budget(1 << 30, memory, memory)),
        ):  # fmt: skip
            patch.setattr(module, name, value)
        with graphdb.connect() as db:
            report = db.load(file)
            assert report.new_triples == len({(s, p, o) for s, p, o in triples})
            assert contents(db) == expected
            assert contents(db, *list(TABLES)[3:]) == recounted(db)


@settings(max_examples=scaled(12), deadline=None)
@given(st.lists(st.tuples(terms, labels, terms | values), min_size=2, max_size=40), st.integers(1, 200), st.data())
def test_what_is_appended_is_as_if_it_had_been_there(
    tmp_path_factory: pytest.TempPathFactory, triples: list[tuple[str, ...]], memory: int, data: st.DataObject
) -> None:
    """Statistics that are counted anew, in runs of a few triples, are those of all the triples loaded at once."""
    at = data.draw(st.integers(1, len(triples) - 1))
    files = [tmp_path_factory.mktemp("append") / name for name in ("first.nt", "second.nt")]
    for file, some in zip(files, (triples[:at], triples[at:]), strict=True):
        file.write_text("".join(" ".join(triple) + " .\n" for triple in some))
    expected = loaded(files)
    room = data.draw(st.sampled_from([memory, 1 << 20]), "whether all is one batch")
    with pytest.MonkeyPatch.context() as patch, graphdb.connect() as db:
        for module, name, value in (
            (streams, "BLOCK", 100), (collect, "_SLOTS", 8), (unify, "PARTS", 2), (stored, "_ROWS", 3), (append, "_SHARE", 1_000),
            (spill, "WINDOW", 2), (external_sort, "SMALL_LABEL", memory % 9), (external_sort, "_TOGETHER", 5), (streaming, "ROWS", 3),
            (Budget, "of", lambda _: Budget(1 << 30, room, memory)),
        ):  # fmt: skip
            patch.setattr(module, name, value)
        for file in files:
            db.load(file)
        assert contents(db) == expected


reifiers = st.sampled_from(["<a:s>", "_:r", "_:q"])
quads = st.tuples(terms | reifiers, labels, terms | values, st.sampled_from(["", "", "<a:g>", "_:b"])).map(" ".join)
reified = st.tuples(reifiers, terms, labels, terms | values, st.sampled_from(["", "", "<a:g>", "_:b"])).map(
    lambda row: f"{row[0]} <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> <<( {' '.join(row[1:4])} )>> {row[4]}"
)


@settings(max_examples=scaled(15), deadline=None)
@given(st.lists(quads | reified, max_size=40), st.integers(1, 200))
def test_graphs_and_edges(tmp_path_factory: pytest.TempPathFactory, lines: list[str], memory: int) -> None:
    """Named graphs, and edges with properties: what is written at once is what is appended, as little or as much."""
    file = tmp_path_factory.mktemp("random") / "data.nq"
    file.write_text("".join(f"{line} .\n" for line in lines))
    found = []
    for first in (True, False):
        with pytest.MonkeyPatch.context() as patch, graphdb.connect() as db:
            if first:
                for module, name, value in (
                    (streams, "BLOCK", 100), (collect, "_SLOTS", 8), (unify, "PARTS", 2), (spill, "WINDOW", 2),
                    (bulk, "ROWS", 3), (streaming, "ROWS", 3), (append, "_PROPERTIES_AT_ONCE", 2),
                    (Budget, "of", lambda _: Budget(1 << 30, memory, memory)),
                ):  # fmt: skip
                    patch.setattr(module, name, value)
            else:
                patch.setattr(bulk, "is_empty", lambda connection: False)
                patch.setattr(loading, "MOST", memory % 2 and loading.MOST)
            report = db.load(file)
            found.append((report.new_triples, contents(db, *TABLES, *OTHERS)))
    assert found[0] == found[1]


STRING = "^^<http://www.w3.org/2001/XMLSchema#string>"


def test_terms_that_are_there_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large append finds every sort of term by its fingerprint, whoever made it; of triples, only others are written."""
    texts = ["", "x", "a text of sixteen", "a text of more than sixteen bytes", "é\U0001f600\n", "NaN", "2024-02-29"]
    notes = ["", "@en", "@EN-GB", "@en--rtl", "^^<a:t>", STRING]
    objects = [json.dumps(text, ensure_ascii=False) + note for text in texts for note in notes] + ["<a:s>", "<a:é>"]
    lines = [f"<a:s> <a:p> {thing} .\n" for thing in objects]
    some, every, made = (tmp_path / name for name in ("some.nt", "every.nt", "made.nt"))
    some.write_text("".join(lines[::2]), encoding="utf-8")
    every.write_text("".join(lines), encoding="utf-8")
    with graphdb.connect() as db:
        db.query("CREATE (:T {text: 'x', n: 1, d: 1.5, b: true, day: date('2024-02-29')})")
        db.load(some)
        monkeypatch.setattr(loading, "MOST", 0)
        before, there = contents(db), {line.replace(STRING, "") for line in lines[::2]}
        assert db.load(every).new_triples == len({line.replace(STRING, "") for line in lines} - there)
        db.export(made)
        made.write_text(re.sub(".*_:.*\n", "", made.read_text(encoding="utf-8")), encoding="utf-8")
        assert db.load(made).new_triples == 0
        after = contents(db)
        assert contents(db, *list(TABLES)[3:]) == recounted(db)
    for table in ("resource", "literal"):
        assert after[table][: len(before[table])] == before[table]
        assert len({str(row[1:]) for row in after[table]}) == len(after[table])


def test_terms_fill_the_row_groups_of_the_file(tmp_path: Path) -> None:
    """Row groups with few rows are written again when the file is closed, and leave holes in it."""
    file, terms = tmp_path / "data.nt", 400_001
    file.write_text("".join(f"<a:{i}> <a:p> <a:{i + 200_000}> .\n" for i in range(terms // 2)))
    with graphdb.connect(tmp_path / "db") as db:
        db.load(file)
        [(groups,)] = db._state.connection.rows(
            "SELECT count(DISTINCT row_group_id) FROM pragma_storage_info('_graphdb.resource')"
        )
        assert groups == -(terms // -streaming.ROWS)


def test_threads_read_what_is_spilled_at_a_time(tmp_path: Path) -> None:
    """A first load sorts its triples while it writes its terms: long texts bring both into one file."""
    with spill.SpillFile(tmp_path / "spool", 0) as kept, ThreadPoolExecutor(4) as threads:
        arrays = [np.full((20_000, 2), number) for number in range(20)]
        spilled = [kept.add(array) for array in arrays]
        for _ in range(10):
            found = threads.map(lambda one: one.get(), spilled)
            assert all(np.array_equal(*pair) for pair in zip(found, arrays, strict=True))


@pytest.mark.own_duckdb
def test_a_limit_that_is_too_small_says_which_is_enough(tmp_path: Path) -> None:
    file = tmp_path / "data.nt"
    file.write_text("<a:s> <a:p> <a:o> .\n")
    with graphdb.connect() as db:
        db.load(file)
        db.sql("SET memory_limit = '8MB'")
        with pytest.raises(graphdb.MemoryLimitError, match="the load needs more memory than memory_limit") as error:
            db.load(GEOGRAPHY)
        assert "500MB is enough" in str(error.value)
        db.sql("SET memory_limit = '1GB'")
        assert db.sql("SELECT count(*) FROM triples").scalar() == 1


def test_more_pairs_of_labels_than_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "data.nt"
    dice = random.Random(5)
    of_type = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    lines = [f"<a:{i}> {of_type} <a:C{dice.randrange(9)}> .\n" for i in range(50)]
    lines += [f"<a:{dice.randrange(50)}> <a:p{dice.randrange(5)}> <a:{dice.randrange(50)}> .\n" for _ in range(100)]
    file.write_text("".join(lines))
    for module in (streaming, statistics):
        monkeypatch.setattr(module, "PAIRS", 20)
    with graphdb.connect() as db:
        db.load(file)
        found = contents(db, "label_pair")
        assert len(found["label_pair"]) == 20
        assert found["label_pair"] == recounted(db)["label_pair"]


def test_long_texts_are_compressed_by_what_is_quick(tmp_path: Path) -> None:
    """DuckDB's own choice packs texts of this length at a quarter of the speed."""
    file = tmp_path / "data.nt"
    words = random.Random(3).choices(["graph", "database", "of", "long", "texts", "and", "few", "triples"], k=60_000)
    texts = [" ".join(words[i : i + 2_000]) for i in range(0, 58_000, 200)]
    file.write_text("".join(f'<a:{i}> <a:p> "{text}" .\n' for i, text in enumerate(texts)))
    with graphdb.connect(tmp_path / "db") as db:
        db.load(file)
        rows = db._state.connection.rows
        used = rows(
            "SELECT DISTINCT compression FROM pragma_storage_info('_graphdb.literal') WHERE column_name = 'text'"
        )
        assert ("ZSTD",) in used
        assert ("DICT_FSST",) not in used
        assert rows("SELECT current_setting('disabled_compression_methods')") == [("",)]
        assert sorted(row[0] for row in rows("SELECT object FROM triples")) == sorted(texts)


@pytest.mark.parametrize("sizes", [[], [3], [0, 5, 0], [1, 1, 1, 9], [10, 10], [4, 21, 2, 5], [23]])
def test_texts_are_written_in_whole_row_groups(sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece of some rows before large ones is inserted by itself, and what follows takes more of the file."""
    monkeypatch.setattr(assembly, "_PIECE", 5)
    names = iter(range(1000))
    chunks = [arrow.array([f"t{next(names)}" for _ in range(size)], arrow.STRING) for size in sizes]
    pieces = list(assembly._in_row_groups(chunks))
    assert [text for piece in pieces for text in arrow.pylist(piece)] == [f"t{i}" for i in range(sum(sizes))]
    assert [len(piece) for piece in pieces[:-1]] == [5] * (len(pieces) - 1)
    assert all(0 < len(piece) <= 5 for piece in pieces)

"""Loads and exports stop soon after their ``timeout`` or an interrupt, and leave the database as it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import graphdb
from graphdb.common.errors import LoadError, QueryTimeout

SLACK = 2.0
"""Seconds that a stop may take on a machine under load; on a quiet one it is half a second."""

ROWS = 30_000
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def _lines(form: Callable[[int], str]) -> str:
    return "".join(map(form, range(ROWS)))


TEXTS: dict[str, Callable[[], str]] = {
    "nt": lambda: _lines(lambda i: f'<e:{i}> <e:p> "{i}" .\n<e:{i}> <e:q> <e:{i * 7919 % ROWS}> .\n'),
    "ttl": lambda: _lines(lambda i: f'<e:{i}> <e:p> "{i}" ; <e:q> <e:{i * 7919 % ROWS}> .\n'),
    "rdf": lambda: (
        f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="e:">'
        + _lines(lambda i: f'<rdf:Description rdf:about="e:{i}"><e:p>{i}</e:p></rdf:Description>\n')
        + "</rdf:RDF>"
    ),
    "jsonld": lambda: "[" + _lines(lambda i: f'{{"@id": "e:{i}", "e:p": "{i}"}},') + "{}]",
    "graphml": lambda: (
        '<graphml><key id="k" for="node" attr.name="k" attr.type="int"/><graph>'
        + _lines(lambda i: f'<node id="n{i}"><data key="k">{i}</data></node>')
        + _lines(lambda i: f'<edge source="n{i}" target="n{i * 7919 % ROWS}"/>')
        + "</graph></graphml>"
    ),
    "csv": lambda: ":ID,name,age:int\n" + _lines(lambda i: f"n{i},name {i},{i % 90}\n"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file of each format, which takes a while to load."""
    folder = tmp_path_factory.mktemp("stops")
    for suffix, text in TEXTS.items():
        (folder / f"data.{suffix}").write_text(text())
    return {suffix: folder / f"data.{suffix}" for suffix in TEXTS}


@pytest.fixture(scope="module")
def loaded(files: dict[str, Path]) -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu") as db:
        db.load(files["nt"])
        yield db


def stopped(run: Callable[[], object], after: float) -> None:
    """Run what must be stopped, soon after so many seconds, unless it ends before."""
    begun = time.monotonic()
    with suppress(QueryTimeout):
        run()
    assert time.monotonic() - begun < after + SLACK


@pytest.mark.parametrize("suffix", TEXTS)
def test_a_load_stops_at_its_timeout(files: dict[str, Path], loaded: graphdb.Database, suffix: str) -> None:
    with graphdb.connect(device="cpu") as db:
        for share in (0.0, 0.01):
            with pytest.raises(QueryTimeout):
                db.load(files[suffix], timeout=share)
            with pytest.raises(QueryTimeout):
                db.query(f"LOAD '{files[suffix]}'", timeout=share)
        stopped(lambda: db.load(files[suffix], timeout=0.1), 0.1)
        db.query("CREATE (:After {stop: 1})")
        assert db.query("MATCH (n:After) RETURN n.stop").scalar() == 1


@pytest.mark.parametrize("suffix", ["nt", "ttl", "nq.gz", "trig", "graphml", "parquet"])
def test_an_export_stops_at_its_timeout(loaded: graphdb.Database, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"out.{suffix}"
    for seconds in (0.0, 0.02):
        with pytest.raises(QueryTimeout):
            loaded.export(target, timeout=seconds)
        assert not target.exists()
        assert not list(tmp_path.iterdir())
    assert loaded.query("MATCH (n) RETURN count(*)").scalar() == ROWS


def test_a_network_stops_at_its_timeout(loaded: graphdb.Database) -> None:
    pytest.importorskip("networkx")
    for seconds in (0.0, 0.05):
        with pytest.raises(QueryTimeout):
            loaded.to_networkx(timeout=seconds)
    assert loaded.query("MATCH (n) RETURN count(*)").scalar() == ROWS


def _nested(depth: int) -> str:
    description = "<rdf:Description><e:p>"
    return (
        f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="e:">'
        + description * depth
        + "</e:p></rdf:Description>" * depth
        + "</rdf:RDF>"
    )


def test_elements_nested_too_deeply_are_refused(tmp_path: Path) -> None:
    deep = tmp_path / "deep.rdf"
    with graphdb.connect(device="cpu") as db:
        deep.write_text(_nested(6000))  # twice as many elements
        with pytest.raises(LoadError, match="elements are nested deeper than 2,000"):
            db.load(deep)
        deep.write_text(_nested(900))
        assert db.load(deep).triples == 900


@pytest.mark.parametrize("form", ["file", "query"])
def test_tables_of_too_many_columns_are_refused(tmp_path: Path, form: str) -> None:
    """DuckDB took 40 s to bind 100,000 columns, and did not stop."""
    names = [f"c{i}" for i in range(20_000)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n1\n")
    sources = {
        "file": f"'{tmp_path / 'wide.csv'}'",
        "query": f"FROM (SELECT {', '.join(f'1 AS {name}' for name in names)}) AS LABEL X",
    }
    started = time.perf_counter()
    with graphdb.connect() as db, pytest.raises(LoadError, match="the table has 20,000 columns"):
        db.query(f"LOAD {sources[form]}")
    assert time.perf_counter() - started < 20


def test_text_that_looks_like_tags_is_none(tmp_path: Path) -> None:
    text = "<br><p>" * 60
    lines = [
        f'<rdf:Description rdf:about="e:{i}"><e:p><![CDATA[{text}{i}]]></e:p></rdf:Description>' for i in range(300)
    ]
    file = tmp_path / "cdata.rdf"
    file.write_text(f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="e:">' + "\n".join(lines) + "</rdf:RDF>")
    with graphdb.connect(device="cpu") as db:
        assert db.load(file).triples == 300

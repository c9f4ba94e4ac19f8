"""Behind an error, too, the parser library is never handed triple terms nested so deeply that it crashes."""

from __future__ import annotations

import io
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.common.errors import LoadError
from graphdb.storage.loaders import formats
from graphdb.storage.loaders.files import DataFile
from graphdb.storage.loaders.formats import TRIG
from graphdb.storage.loaders.rdf import reader
from graphdb.storage.loaders.rdf.depth import DEEPEST_TERM, Depth, Nesting, Unparsed
from graphdb.storage.loaders.rdf.depth_kernels import turtle
from graphdb.storage.loaders.rdf.source import Source
from tests.fuzz import scaled

pyoxigraph = pytest.importorskip("pyoxigraph")

REIFIES = "http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies"


def nested(times: int) -> str:
    return "<<(<e:a><e:b>" * times + "<e:c>" + ")>>" * times


HIDDEN = {
    "a string": "'''\\<e:a> .\n<e:a> <e:b> {} .\n",
    "a string of another line": "'''\n\\<e:a> .\n<e:a> <e:b> {} .\n",
    "a string, CR LF": "'''\\\r\n<e:a> .\r\n<e:a> <e:b> {} .\r\n",
    "a string that ends": "'''\\q {} ''' .\n",
    "an IRI": "<e:\\q {} > .\n",
    "a string never closed": "<e:a> <e:b> '''\\q {}",
    "many strings": "'\\q\n" * 3000 + "'''\\<e:a> .\n<e:a> <e:b> {} .\n",
}

PROGRAM = """
import io, sys
import graphdb
with graphdb.connect(device="cpu") as db:
    for text in sys.stdin.read().split(chr(0)):
        for name in "ttl", "trig":
            try:
                db.load(io.BytesIO(text.encode()), format=name, on_error="skip")
            except graphdb.LoadError as error:
                assert error.line and error.column, error
                assert "more than 1,000" in str(error), error
            print(name)
"""


def test_what_an_error_hides_crashes_nothing() -> None:
    """In a process of its own, which might crash."""
    texts = [text.replace("{}", nested(50_000)) for text in HIDDEN.values()]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=chr(0).join(texts), capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout.count("\n")) == (0, 2 * len(texts)), done.stderr


def load(db: graphdb.Database, text: str) -> Any:
    return db.load(io.BytesIO(text.encode()), format="ttl", on_error="skip")


def test_many_errors_about_triple_terms_are_skipped() -> None:
    """What each of them left open is open no more."""
    with graphdb.connect(device="cpu") as db:
        lines = "<e:a> <e:b> <<( <e:a> !! .\n" * 4000
        assert load(db, lines + "<e:a> <e:b> <e:c> .\n").triples == 1
        assert load(db, "<e:a> <e:b> <<(<e:a> <e:b> 1)>> .\n" * 4000).triples == 4000
        assert load(db, f"!! .\n<e:a> <e:b> {nested(DEEPEST_TERM)} .\n").triples == 1


@pytest.mark.parametrize("skip", ["stop", "skip"])
@pytest.mark.parametrize(
    ("form", "mark"), [("<< <e:a> <e:b> {} >> <e:b> 1 .", "<<("), ("<e:a> <e:b> {} ~ <e:r> .", "~"), ("<e:a> <e:b> {}{{| <e:b> 1 |}} .", "{|")]
)  # fmt: skip
def test_what_is_reified_is_one_deeper(form: str, mark: str, skip: str) -> None:
    with graphdb.connect(device="cpu") as db:
        fits, deeper = form.format(nested(DEEPEST_TERM - 1)), "\n" + form.format(nested(DEEPEST_TERM))
        assert db.load(io.BytesIO(fits.encode()), format="ttl", on_error=skip).triples >= 2
        with pytest.raises(LoadError, match="more than 1,000 deep") as refused:
            db.load(io.BytesIO(deeper.encode()), format="ttl", on_error=skip)
        assert (refused.value.line, refused.value.column) == (2, deeper.rindex(mark))


def test_errors_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is looked at in constant time, but for the library's count of columns; which is bounded."""
    sniffed = []
    monkeypatch.setattr(formats, "sniff", lambda head: sniffed.append(head))
    line = "<e:a> <e:b> !! . "
    with graphdb.connect(device="cpu") as db:
        assert load(db, line * 1000).errors == 1000
        assert len(sniffed) == 1
        assert load(db, (line * 10 + "\n") * 100).errors == 1000
        monkeypatch.setattr(reader, "_PASSED", 1 << 15)
        assert load(db, (line * 10 + "\n") * 100).errors == 1000
        with pytest.raises(LoadError, match="too many errors in one line") as refused:
            load(db, line * 1000)
        assert refused.value.line == 1
        assert refused.value.column is not None


TOKENS = [
    "<<(", "<<(", "<<(<e:a><e:b>", "<<( <e:a> <e:b> ", ")>>", " )>> ", "<<", ">>", "<e:a>", "<", ">", "(", ")", "[", "]", "{", "}",
    "{|", "|}", "'", '"', "'''", '"""', "#", "\n", "\r", "\r\n", "\\", " ", ".", ";", ",", "<e:a> <e:b> ", "^^", "@", "_:", "p:", "~", "a",
    " .\n<e:a> <e:b> ", "<<(<e:a><e:b><<(<e:a><e:b><e:c>)>>)>> .", "'''\\<e:a> .\n", "'\\q",
]  # fmt: skip

SOUP = st.lists(st.sampled_from(TOKENS), max_size=20).map("".join)
STATEMENTS = st.integers(0, 5).map(lambda depth: f" .\n<e:a> <e:b> {nested(depth)} .\n")


@settings(max_examples=scaled(300), deadline=None)
@given(st.lists(SOUP | STATEMENTS, max_size=6).map("".join), st.randoms(use_true_random=False))
def test_no_more_is_nested_than_counts(text: str, chance: random.Random) -> None:
    """Random texts, handed on in any parts: what the library yields is never deeper than the bound of that moment.

    ``GRAPHDB_FUZZ`` multiplies the number of examples.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.trig"
        path.write_bytes(text.encode())
        file = DataFile(path, path.stat().st_size, None, TRIG)
        source = Source(file, 1 << 16, skip=True)
        source.unparsed = unparsed = Unparsed(Depth(file, Nesting(turtle, 10**9, "")), part=chance.randint(1, 9))
        read, source.read = source.read, lambda size=-1: read(chance.choice((1, 9, 99, 999)))  # type: ignore[method-assign]
        parser = pyoxigraph.parse(source, pyoxigraph.RdfFormat.TRIG, base_iri="e:")
        target: Any = type("Target", (), {"bad": []})
        for quad in reader._skipping(parser, None, file, source, target):
            term, depth = quad.object, -(quad.predicate.value == REIFIES)
            while isinstance(term, pyoxigraph.Triple):
                term, depth = term.object, depth + 1
            assert depth <= unparsed.count

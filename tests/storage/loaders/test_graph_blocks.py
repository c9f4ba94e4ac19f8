"""Statements of TriG stay in their graphs behind errors, and an error costs its own statement alone."""

from __future__ import annotations

import io
import random
import tempfile
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest

import graphdb
from graphdb.storage.loaders.rdf.graph_blocks import GraphBlocks

PREFIX = "@prefix ex: <http://e.org/> .\n"
HEADERS = {"": None, "ex:{g} ": "{g}", "GRAPH <http://e.org/{g}> ": "{g}", "GRAPH ex:{g} # of {{ and }}\n": "{g}"}
GOOD = [
    "ex:s{i} ex:p ex:o .",
    'ex:s{i} ex:p "}} {{ . \\" }}" , \'é}}\' .',
    'ex:s{i} ex:p """{{\n}} "a" """ ; ex:q 1.5 . # }} {{ .\n',
    "ex:s{i} ex:p [ ex:q ( ex:o ) ] .",
    "ex:s{i} ex:p ex:o {{| ex:q ex:r |}} .",
]
BAD = "] ex:bad ex:o{i} ."
Quads = set[tuple[str | None, str | None]]


def loaded(text: str) -> tuple[Quads, list[tuple[int, int]]]:
    """The subjects that are named, each with its graph; and the places of errors."""
    with graphdb.connect(threads=1) as db:
        report = db.load(io.BytesIO(text.encode()), format="trig", on_error="skip")
        with tempfile.TemporaryDirectory() as folder:
            db.export(Path(folder) / "all.nq")
            quads = list(pyoxigraph.parse(path=str(Path(folder) / "all.nq")))
        places = db.sql('SELECT line, "column" FROM load_errors ORDER BY ALL').fetchall() if report.errors else []
    named = [each for each in quads if isinstance(each.subject, pyoxigraph.NamedNode)]
    return {(_local(each.subject), _local(each.graph_name)) for each in named if _local(each.subject)}, places


def _local(term: Any) -> str | None:
    """The name of an IRI of ours."""
    iri = getattr(term, "value", None)
    return iri.removeprefix("http://e.org/") if iri and iri.startswith("http://e.org/") else None


def place(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


@pytest.mark.parametrize("seed", range(8))
def test_graphs_with_errors_among_their_statements(seed: int) -> None:
    draw, text, wanted, bad = random.Random(seed), PREFIX, set[tuple[str | None, str | None]](), list[int]()
    for block in range(12):
        header, name = draw.choice(list(HEADERS.items()))
        alone = draw.random() < 0.3
        graph = None if alone or name is None else name.format(g=f"g{block}")
        text += "" if alone else header.format(g=f"g{block}") + "{" + draw.choice([" ", "\n"])
        for i in range(block * 10, block * 10 + draw.randrange(1, 5)):
            if draw.random() < 0.3:
                bad.append(len(text))
                text += BAD.format(i=i)
            else:
                text += draw.choice(GOOD).format(i=i)
                wanted.add((f"s{i}", graph))
            text += draw.choice([" ", "\n"])
        text += "" if alone else "}" + draw.choice(["", " ", "\n"])
    found, places = loaded(text)
    assert found == wanted
    assert places == sorted(place(text, at) for at in bad)


def test_a_graph_whose_name_cannot_be_read_is_left_out() -> None:
    """Its statements belong to no graph that is known, and to the default graph least of all."""
    text = PREFIX + "ex:g ex:oops { ex:a ex:p ex:o . ex:b ex:p ex:o }\nex:h { ex:c ex:p ex:o }\nex:d ex:p ex:o .\n"
    found, places = loaded(text)
    assert found == {("c", "h"), ("d", None)}
    assert places == [(2, 14)]


def test_an_error_without_a_full_stop_ends_with_its_graph() -> None:
    text = PREFIX + "ex:g { ex:a ex:p ex:o . ex:b ex:p [ }\nex:c ex:p ex:o .\nex:h { ex:d ex:p ex:o . }\n"
    assert loaded(text)[0] >= {("a", "g"), ("c", None), ("d", "h")}


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_marks_do_not_depend_on_the_pieces_that_come(size: int) -> None:
    """A text comes in pieces of whole lines."""
    lines = (PREFIX + "ex:g {\n ex:a ex:p '}{' . # {\n}\n{ ex:a ex:p ex:o {| ex:q 1 |} }\n").splitlines(keepends=True)
    blocks, whole = GraphBlocks(), GraphBlocks()
    whole._iri = blocks._iri
    pieces = ["".join(lines[i : i + size]).encode() for i in range(0, len(lines), size)]
    marked = b"".join(map(blocks.marked, pieces))
    assert marked == whole.marked("".join(lines).encode())
    assert marked.count(blocks._iri.encode()) == 2 * 8

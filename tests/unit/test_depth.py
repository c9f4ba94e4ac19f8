"""Files in which things stand within each other too deeply are refused, with the place, and soon."""

from __future__ import annotations

import json
import random
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.errors import LoadError
from graphdb.storage.loaders import depth
from graphdb.storage.loaders.depth import DEEPEST, DEEPEST_JSON, JsonDepth
from graphdb.storage.loaders.files import DataFile
from graphdb.storage.loaders.formats import JSON_LD

DEEP = 100_000

GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:g="urn:x-graphdb:list">\n'

JSON = {
    "nodes": ('{"e:p":', "1", "}"),
    "arrays": ('{"e:p":[', "1", "]}"),
    "lists": ('{"e:p":{"@list":[', "1", "]}}"),
    "graphs": ('{"@graph":', "[]", "}"),
    "reverse": ('{"@reverse":{"e:p":', "[]", "}}"),
    "contexts": ('{"@context":{"p":{"@id":"e:p","@context":', "{}", "}}}"),
    "hidden by strings": ('{"e:}}]]\\"}}":', "1", "}"),
    "never closed": ('{"e:p":', "", ""),
}

XML = {
    "graphs": ("<graph>", "", "</graph>"),
    "vertices": ('<graph><node id="a">', "", "</node></graph>"),
    "of others": ('<x xmlns="e:">', "", "</x>"),
    "never closed": ("<graph>", "", ""),
}


@pytest.fixture
def db() -> Any:
    with graphdb.connect(device="cpu") as db:
        yield db


def nested(parts: tuple[str, str, str], times: int) -> str:
    before, within, after = parts
    return before * times + within + after * times


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("kind", JSON)
def test_json(db: graphdb.Database, tmp_path: Path, kind: str, skip: bool) -> None:
    path = tmp_path / "deep.jsonld"
    path.write_text('{"@id":\n"e:a", "é": ' + nested(JSON[kind], DEEP) + "}")
    with pytest.raises(LoadError, match=f"nested deeper than {DEEPEST_JSON}") as refused:
        db.load(path, on_error="skip" if skip else "stop")
    before = JSON[kind][0]
    marks = [at for at, mark in enumerate(before.replace('e:}}]]\\"}}', "." * 10)) if mark in "[{"]  # of names, none
    times, last = divmod(DEEPEST_JSON - 1, len(marks))
    column = len('"e:a", "é": ') + times * len(before) + marks[last] + 1
    assert (refused.value.source, refused.value.line, refused.value.column) == (str(path), 2, column)
    assert db.query("MATCH (n) RETURN count(*)").scalar() == 0
    db.query("CREATE (:After)")


def test_json_that_is_not_too_deep(db: graphdb.Database, tmp_path: Path) -> None:
    (tmp_path / "a.jsonld").write_text(nested(JSON["nodes"], DEEPEST_JSON))
    assert db.load(tmp_path / "a.jsonld").triples == DEEPEST_JSON


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("kind", XML)
def test_graphml(db: graphdb.Database, tmp_path: Path, kind: str, skip: bool) -> None:
    path = tmp_path / "deep.graphml"
    path.write_text(GRAPHML + nested(XML[kind], DEEP) + "</graphml>")
    with pytest.raises(LoadError, match=f"nested deeper than {DEEPEST:,}") as refused:
        db.load(path, on_error="skip" if skip else "stop")
    assert (refused.value.source, refused.value.line) == (str(path), 2)
    assert refused.value.column is not None
    assert db.query("MATCH (n) RETURN count(*)").scalar() == 0
    (tmp_path / "good.graphml").write_text(GRAPHML + nested(XML["graphs"], DEEPEST - 1) + "</graphml>")
    assert db.load(tmp_path / "good.graphml").triples == 0


# --- against a model


def height(value: object) -> int:
    """How deeply objects and arrays stand within each other."""
    if isinstance(value, dict):
        return 1 + max(map(height, value.values()), default=0)
    return 1 + max(map(height, value), default=0) if isinstance(value, list) else 0


TEXTS = st.text(st.sampled_from('{}[]"\\\n,:a é'), max_size=8)
VALUES = st.recursive(
    TEXTS | st.none() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(VALUES, st.booleans(), st.none() | st.integers(0, 2), st.randoms(use_true_random=False))
def test_json_is_followed(value: object, ascii: bool, indent: int | None, chance: random.Random) -> None:
    text = json.dumps([value], ensure_ascii=ascii, indent=indent).encode()
    file = DataFile(Path("a.jsonld"), len(text), None, JSON_LD)
    ends = sorted({0, len(text), *(chance.randrange(len(text)) for _ in range(chance.randrange(9)))})
    chunks = [text[start:end] for start, end in pairwise(ends)]
    for most, refused in ((height([value]), False), (height([value]) - 1, True)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(depth, "DEEPEST_JSON", most)
            follower = JsonDepth(file)
            with pytest.raises(LoadError) if refused else nullcontext() as found:
                for chunk in chunks:
                    follower.follow(chunk)
        if found is not None:
            line, column = found.value.line, found.value.column
            assert line
            assert column
            assert text.decode().split("\n")[line - 1][column - 1] in "[{"

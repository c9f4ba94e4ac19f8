"""Texts that grow: what SQL does where they cannot, and Python where they may, with limits of length and memory."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

import graphdb
from graphdb.common.errors import MemoryLimitError
from tests.fuzz import scaled


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1, device="cpu", memory_limit="500MB") as db:
        db.query("UNWIND ['a b & c', '', 'aaa', 'é<>\"', null] AS s CREATE (:A {s: s, old: 'a', new: 'bcd', at: 1})")
        yield db


def test_replace_is_pythons_however_it_is_done(db: graphdb.Database) -> None:
    random = Random(16)
    texts = ["", "a", "aa", " ", "&", "&amp;", "x" * 40, "é", "<>"]
    stored = [text for (text,) in db.query("MATCH (n:A) RETURN n.s")]
    for _ in range(scaled(40)):
        old, new = random.choice(texts), random.choice(texts)
        form = random.choice(["replace(n.s, $old, $new)", "replace(n.s + '', $old, $new)", "replace(n.s, n.o, n.w)"])
        text = "MATCH (m:A) WITH {s: m.s, o: $old, w: $new} AS n RETURN " if "n.o" in form else "MATCH (n:A) RETURN "
        found = [value for (value,) in db.query(f"{text}{form} AS x", old=old, new=new)]
        wanted = [None if each is None else each.replace(old, new) if old else each for each in stored]
        assert sorted(found, key=str) == sorted(wanted, key=str), (form, old, new)


@pytest.mark.parametrize(
    "text",
    [
        "RETURN size(replace($long, 'a', $long)) AS x",
        "MATCH (n:A {s: 'aaa'}) RETURN size(" + "replace(" * 20 + "n.s" + ", 'a', 'aaaaaaaaaa')" * 20 + ") AS x",
        "UNWIND range(1, 100000) AS i RETURN sum(size(replace(toString(i) + $short, 'a', $short))) AS x",
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_made(db: graphdb.Database, text: str) -> None:
    given = {"long": "a" * 20_000} if "$long" in text else {"short": "a" * 1000} if "$short" in text else {}
    with pytest.raises(MemoryLimitError, match=r"of more than 100,000,000 characters|characters together do not fit"):
        db.query(text, given)


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize(
    ("text", "by", "parts"), [("ab", "", None), ("a,", ",", None), ("a" * 9 + ",", ",", 200_001), ("é", ",", 1)]
)
def test_a_text_is_split_into_so_many_parts_as_a_stop_can_wait_for(
    db: graphdb.Database, text: str, by: str, parts: int | None, computed: bool
) -> None:
    """Two million letters: parts of one letter take DuckDB half a second in which nothing stops it."""
    given = {"long": text * (2_000_000 // len(text)), "by": by}
    form = "size(split(toLower($long), $by))" if not computed else "size([x IN [$long] | split(x, $by)][0])"
    if parts is None:
        with pytest.raises(
            MemoryLimitError, match=r"a text of 1,000,000 parts and more is too long to be split \(line 1"
        ):
            db.query(f"RETURN {form} AS x", given)
    else:
        assert db.query(f"RETURN {form} AS x", given).scalar() == parts

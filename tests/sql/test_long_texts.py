"""Texts that grow: what SQL does where they cannot, and Python where they may, with limits of length and memory."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
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


FUNCTIONS: dict[str, Callable[[str], object]] = {
    "toUpper({0})": str.upper,
    "toLower({0})": str.lower,
    "trim({0})": lambda text: text.strip(" \t\n\r\f"),
    "bTrim({0}, 'ab ')": lambda text: text.strip("ab "),
    "lTrim({0}, 'ab ')": lambda text: text.lstrip("ab "),
    "rTrim({0}, 'ab ')": lambda text: text.rstrip("ab "),
    "normalize({0})": lambda text: unicodedata.normalize("NFC", text),
    "replace({0}, 'a', 'c')": lambda text: text.replace("a", "c"),
    "reverse({0})": lambda text: text[::-1],
    "split({0}, 'b ')": lambda text: text.split("b "),
    "substring({0}, 7)": lambda text: text[7:],
    "substring({0}, 7, 90000)": lambda text: text[7:90007],
    "left({0}, 9000)": lambda text: text[:9000],
    "right({0}, 9000)": lambda text: text[-9000:],
    "{0} CONTAINS 'bbab'": lambda text: "bbab" in text,
    "{0} =~ '[ab ä]*b ä'": lambda text: re.fullmatch("[ab ä]*b ä", text) is not None,
    "{0} + 'x' + {0}": lambda text: f"{text}x{text}",
    "toLower(bTrim(toUpper({0}), 'A'))": lambda text: text.upper().strip("A").lower(),
    "toBoolean(left({0}, 3) + 'true')": lambda text: True if not text.strip() else None,
    "size(split(reverse({0} + 'q'), left(' x', 1)))": lambda text: len(f"{text}q"[::-1].split(" ")),
    "[x IN [{0}, 'A'] | toUpper(x)]": lambda text: [text.upper(), "A"],
}


def test_functions_of_long_texts_are_pythons_wherever_the_texts_are() -> None:
    random = Random(28)
    lengths = [0, 1, 20, 3000, 4000, 9000, 30_000, 100_000, 400_000]
    texts = ["".join(random.choices("ab ä", k=length)) for length in lengths for _ in range(2)]
    with graphdb.connect(threads=2, device="cpu") as db:
        db.query("UNWIND range(0, size($texts) - 1) AS i CREATE (:T {i: i, t: $texts[i]}), (:T {i: -1})", texts=texts)
        for form, function in FUNCTIONS.items():
            expected = [function(text) for text in texts]
            stored = f"MATCH (n:T) WHERE n.i >= 0 RETURN {form.format('n.t')} AS x ORDER BY n.i"
            given = f"UNWIND range(0, size($texts) - 1) AS i WITH $texts[i] AS t, i RETURN {form.format('t')} AS x ORDER BY i"
            assert [x for (x,) in db.query(stored)] == expected, form
            assert [x for (x,) in db.query(given, texts=texts)] == expected, form
            absent = db.query(f"MATCH (n:T {{i: -1}}) RETURN DISTINCT {form.format('n.t')} AS x").scalar()
            assert absent in (None, [None, "A"]), form
        found = db.query("MATCH (n:T) WHERE toUpper(n.t) CONTAINS 'BBAB' RETURN n.i ORDER BY n.i").fetchall()
        assert found == [(i,) for i, text in enumerate(texts) if "BBAB" in text.upper()]
        for count, text in enumerate(["[", "(["]):
            with pytest.raises(graphdb.ExecutionError, match="is no regular expression: missing"):
                db.query("MATCH (n:T {i: $i}) RETURN n.t =~ (left(n.t, 0) + $p)", i=len(texts) - 1 - count, p=text)
        with pytest.raises(graphdb.ExecutionError, match="left does not take a negative number"):
            db.query("MATCH (n:T) RETURN left(n.t, n.i - 5)")


def test_letters_become_the_same_in_long_texts_as_in_short_ones(db: graphdb.Database) -> None:
    text = "ß İ ΑΣ ŉ ﬁ e\u0301 \r\n 👨\u200d👩\u200d👧 "
    found = ("SS İ ΑΣ ŉ ﬁ E\u0301 \r\n 👨\u200d👩\u200d👧 ", "ß i ασ ŉ ﬁ e\u0301 \r\n 👨\u200d👩\u200d👧 ", text[::-1])
    for form in ("WITH $s + left($x, $n) AS s", "UNWIND [$s + left($x, $n)] AS s"):
        for more in (0, 60_000):
            asked = f"{form} RETURN toUpper(s), toLower(s), reverse(s)"
            (row,) = db.query(asked, s=text, x="-" * more, n=more).fetchall()
            assert tuple(each.replace("-", "") for each in row) == found, (form, more)
            (listed,) = db.query(
                f"{form} RETURN [x IN [s, 1] | [toUpper(s), toLower(s), reverse(s)]][0]", s=text, x="-" * more, n=more
            ).fetchone()
            assert tuple(each.replace("-", "") for each in listed) == found, (form, more)


def test_only_where_texts_may_be_long_sql_asks_python() -> None:
    text = "EXPLAIN UNWIND range(1, 9) AS i RETURN toUpper($t + i) AS x"
    with graphdb.connect(threads=1, device="cpu") as db:
        db.query("CREATE (:T {t: 'short'})")
        for given, long in (("a", False), ("a" * 10_000, True), ("b", False)):
            assert ("strlen" in str(db.query(text, t=given))) is long, given
        stored = "EXPLAIN MATCH (n:T) WITH n.t AS t, count(*) AS c RETURN toUpper(t) AS x"
        assert "strlen" not in str(db.query(stored))
        db.query("BEGIN")
        db.query("CREATE (:T {t: $t})", t="a" * 10_000)
        assert "strlen" in str(db.query(stored))
        assert db.query(stored[8:]).fetchall() in ([("SHORT",), ("A" * 10_000,)], [("A" * 10_000,), ("SHORT",)])
        db.query("ROLLBACK")
        assert db.query(stored[8:]).fetchall() == [("SHORT",)]
        db.query("CREATE (:T {t: $t})", t="c" * 10_000)
        assert sorted(db.query(stored[8:]).fetchall()) == [("C" * 10_000,), ("SHORT",)]

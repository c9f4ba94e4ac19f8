"""A string that is not closed costs its statement, and not what comes after it."""

from __future__ import annotations

import io
import random

import pytest

import graphdb
from graphdb.storage.loaders.rdf.open_strings import OpenStrings

PREFIX = "@prefix ex: <http://e.org/> .\n"
GOOD = [
    'ex:s{i} ex:p "a # no comment" .',
    "ex:s{i} ex:p 'it is \\'quoted\\'' ; ex:q \"x\"@en .",
    'ex:s{i} ex:p """long "one"\nof two lines, with an \' apostrophe""" .',
    "ex:s{i} ex:p '''another\n\"one\" ''' .",
    "# a comment's \"quotes\"\nex:s{i} ex:p <http://e.org/it's> .",
    "ex:s{i} ex:p ex:o\\'s .",
    "ex:s{i} ex:p \"\" , '' .",
    'ex:s{i} ex:p "back\\\\" .',
]
BAD = [
    'ex:bad{i} ex:p "unclosed .',
    "ex:bad{i} ex:p 'unclosed .",
    "ex:bad{i} ex:p it's wrong .",
    'ex:bad{i} ex:p "a\\" .',
]


def loaded(text: str) -> tuple[set[str], list[tuple[int, str]]]:
    """The subjects that are there, and the lines and messages of errors."""
    with graphdb.connect(threads=1) as db:
        report = db.load(io.BytesIO(text.encode()), format="turtle", on_error="skip")
        subjects = {iri.rsplit("/", 1)[1] for (iri,) in db.sql("SELECT DISTINCT subject FROM triples").fetchall()}
        errors = db.sql("SELECT line, message FROM load_errors ORDER BY line").fetchall() if report.errors else []
    return subjects, errors


def test_only_its_statement_is_lost_and_the_place_is_said() -> None:
    text = PREFIX + 'ex:a ex:p ex:b .\nex:c ex:p "unclosed .\nex:d ex:p ex:e .\nex:f ex:p "g" .\n'
    assert loaded(text) == ({"a", "d", "f"}, [(3, "the string is not closed on its line")])
    with graphdb.connect(threads=1) as db:
        db.load(io.BytesIO(text.encode()), format="turtle", on_error="skip")
        [place] = db.sql('SELECT line, "column", text FROM load_errors').fetchall()
    assert place == (3, 11, 'ex:c ex:p "unclosed .')


@pytest.mark.parametrize("seed", range(6))
def test_whatever_stands_around_it(seed: int) -> None:
    draw = random.Random(seed)
    lines, good, bad = [], set(), 0
    for i in range(30):
        if draw.random() < 0.25:
            lines.append(draw.choice(BAD).format(i=i))
            bad += 1
        else:
            lines.append(draw.choice(GOOD).format(i=i))
            good.add(f"s{i}")
    subjects, errors = loaded(PREFIX + "\n".join(lines) + "\n")
    assert {name for name in subjects if name.startswith("s")} == good
    assert len(errors) >= bad


@pytest.mark.parametrize("seed", range(20))
def test_sound_text_stays_as_it_is_however_it_comes(seed: int) -> None:
    draw = random.Random(seed)
    text = (PREFIX + "\n".join(draw.choice(GOOD).format(i=i) for i in range(40))).encode()
    strings, made, at = OpenStrings(), b"", 0
    while at < len(text):
        size = draw.randint(1, 60)
        made += strings.closed(text[at : at + size])
        at += size
    assert made + strings.closed(b"") == text
    assert strings.places == {}

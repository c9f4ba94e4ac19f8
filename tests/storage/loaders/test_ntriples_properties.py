"""The N-Triples parser against random terms, and against pyoxigraph on lines with random damage."""

from __future__ import annotations

import gzip
import random
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphdb.common.values.terms import RDF
from graphdb.data import GEOGRAPHY
from tests.fuzz import scaled
from tests.reading import Reader, terms
from tests.reading import triples as report

Term = tuple[str, Any, str]
"""What it is, its text (the parts of a triple term), its annotation."""

_NOT_IN_IRI = set('<>"{}|^`\\') | {chr(point) for point in range(0x21)}
_LABEL_FIRST = "abcXYZ0189_éßΩ中\U00010000"
_ECHAR = {"\t": "t", "\b": "b", "\n": "n", "\r": "r", "\f": "f", '"': '"', "'": "'", "\\": "\\"}

characters = st.characters(exclude_categories=["Cs"])
text = st.text(characters | st.sampled_from("\t\n\r\"'\\é😀\x00"), max_size=20)
iris = st.text(characters.filter(lambda c: c not in _NOT_IN_IRI), max_size=15).map(
    lambda rest: ("iri", f"ex:{rest}", "")
)
labels = st.builds(
    lambda first, rest, last: first + rest + last,
    st.sampled_from(_LABEL_FIRST),
    st.text(_LABEL_FIRST + ".-·", max_size=6),
    st.sampled_from(_LABEL_FIRST + "-·"),
).map(lambda label: ("blank", f"_:f3_{label}", ""))
tags = st.from_regex(r"[a-zA-Z]{1,8}(-[a-zA-Z0-9]{1,8}){0,2}", fullmatch=True)
literals = (
    text.map(lambda value: ("plain", value, ""))
    | st.builds(lambda value, tag: ("tagged", value, tag), text, tags)
    | st.builds(lambda value, datatype: ("typed", value, datatype[1]), text, iris)
)
values = st.recursive(
    iris | labels | literals,
    lambda inner: st.tuples(st.just("term"), st.tuples(iris | labels, iris, inner), st.just("")),
    max_leaves=3,
)
triples = st.tuples(iris | labels, iris, values)


def _iri(value: str, dice: random.Random) -> str:
    return "<" + "".join(_uchar(c, dice) if dice.random() < 0.2 else c for c in value) + ">"


def _uchar(character: str, dice: random.Random) -> str:
    point = ord(character)
    digits = f"\\u{point:04x}" if point < 0x10000 and dice.random() < 0.5 else f"\\U{point:08X}"
    return digits if dice.random() < 0.5 else digits[:2] + digits[2:].upper()


def _string(value: str, dice: random.Random) -> str:
    written = []
    for character in value:
        if character in _ECHAR and (character in '"\\\n\r' or dice.random() < 0.5):
            plain = "\\" + _ECHAR[character]
        else:
            plain = character
        written.append(_uchar(character, dice) if dice.random() < 0.2 else plain)
    return '"' + "".join(written) + '"'


def serialise(term: Term, dice: random.Random) -> str:
    """Write a term in one of the ways in which the grammar allows it."""
    what, value, annotation = term
    if what == "term":
        return "<<(" + "".join(dice.choice(["", " ", "\t "]) + serialise(part, dice) for part in value) + " )>>"
    if what == "iri":
        return _iri(value, dice)
    if what == "blank":
        return "_:" + value.removeprefix("_:f3_")
    written = _string(value, dice)
    if what == "tagged":
        return f"{written}@{annotation}"
    return f"{written}^^{_iri(annotation, dice)}" if what == "typed" else written


def kept(term: Term) -> Term:
    """The term as the reader tells it."""
    what, value, note = term
    if what == "term":
        return "iri", f"<<( {' '.join(map(_kept_text, map(kept, value)))} )>>", ""
    return what, value, note.lower() if what == "tagged" else note


def _kept_text(term: Term) -> str:
    """A term within a triple term."""
    what, value, note = term
    if what in ("iri", "blank"):
        return f"<{value}>" if what == "iri" and not value.startswith("<<(") else value
    written = "".join("\\" + _ECHAR[c] if c in '"\\\n\r' else c for c in value)
    return f'"{written}"' + (f"@{note}" if what == "tagged" else f"^^<{note}>" if what == "typed" else "")


def read(data: bytes) -> list[tuple[Term, ...]] | None:
    """The triples of ``data``, or None where it is refused."""
    parser = Reader()
    parser.open("data.nt", 3)
    if parser.feed(data):
        return None
    return [tuple((*term, "")[:3] for term in triple) for triple in report(parser.take())]


@settings(max_examples=scaled(300), deadline=None)
@given(st.lists(triples, max_size=5), st.randoms(use_true_random=False))
def test_round_trip(written: list[tuple[Term, Term, Term]], dice: random.Random) -> None:
    """Whatever terms are written with whatever escapes, the same terms are read."""
    lines = []
    for triple in written:
        gaps = [dice.choice(["", " ", "\t", " \t "]) for _ in range(4)]
        # A label takes all it can: what follows one must not continue it.
        gaps = [
            gap or (" " if term[0] == "blank" else "") for gap, term in zip(gaps, [*triple, triple[0]], strict=True)
        ]
        body = "".join(serialise(term, dice) + gap for term, gap in zip(triple, gaps, strict=False))
        lines.append(body + "." + dice.choice(["", " # é", "#"]) + dice.choice(["\n", "\r\n", "\r", "\n\n"]))
    assert read("".join(lines).encode()) == [tuple(map(kept, triple)) for triple in written]


_IRIS = "<http://a/é> <http://a/éb> <http://a/> <http://a/b> <http://a/bc> <http://a/\u00e9> <http://a/b".split()
_BLANKS = "_:a _:ab _:a.b _:a. _:aé".split()
_TERMS = (
    "<<(<http://a/é><a:p><http://a/b>)>> <<(_:a<a:p><<(_:a<a:p><http://a/b>)>>)>> <<(_:a<a:p><http://a/b>)>".split()
)
_LITERALS = '"a" "aé" "a"@en "a"^^<http://a/b> "a"^^<http://a/bc> "aé"^^<http://a/b "a'.split()
_CUT = [b"<http://a/\xc3>", b"<http://a/\xc3b>", b"<http://a/\xa9>", b"<http://a/b\xc3\xa9>", b"<http://a/b >"]
subjects = st.sampled_from([term.encode() for term in (*_IRIS, *_BLANKS)])
objects = st.sampled_from([*(term.encode() for term in (*_IRIS, *_IRIS, *_BLANKS, *_LITERALS, *_TERMS)), *_CUT])
gaps = st.sampled_from([b" ", b" ", b" ", b""])


@settings(max_examples=scaled(200), deadline=None)
@given(st.lists(st.tuples(subjects, gaps, st.sampled_from([b"<a:p>", b"<a:p>", b"<a:pq>"]), objects), max_size=20))
@example([(b"<a:s>", b" ", b"<a:p>", value) for value in ("<a:é>".encode(), "<a:é>".encode(), b"<a:\xc3b>")])
@example([(subject, b"", b"<a:p>", b"<a:o>") for subject in (b"_:a", b"_:a", b"_:ab", b"_:a")])
def test_what_is_guessed_is_what_is_read(lines: list[tuple[bytes, ...]]) -> None:
    """A line means the same behind others that it resembles as alone."""
    data = [subject + gap + label + gap + value + b" .\n" for subject, gap, label, value in lines]
    together = Reader(stop=False)
    together.open("data.nt", 3)
    bad = {line.line for line in together.feed(b"".join(data))}
    alone = [read(line) for line in data]
    assert terms(together.take()) == [triple for found in alone if found for triple in _plain(found)]
    assert bad == {number for number, found in enumerate(alone, 1) if found is None}


def _plain(triples: list[tuple[Term, ...]]) -> list[tuple[tuple[str, ...], ...]]:
    """Terms without the annotation that they do not have."""
    return [tuple(term if term[0] in ("typed", "tagged") else term[:2] for term in triple) for triple in triples]


VALID = [
    '<http://example.org/s> <http://example.org/p> "caf\\u00e9 \\n \\U0001F600"@en-GB . # comment',
    '_:b0.x <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    "<http://example.org/é> <http://example.org/p> _:é .",
    "<a:s>\t<a:p>\t<a:o>.",
]

NEWER = [
    '_:b <urn:p> <<( _:b <urn:p> <<( <a:s> <a:p> "x\\n"@en--ltr )>> )>> .',
    f"_:b <{RDF}reifies> <<( _:b <urn:p> <<(<a:s> <a:p> <a:o>)>> )>> .",
]
"""Triple terms of RDF 1.2."""


def _damage(line: str, dice: random.Random) -> str:
    at = dice.randrange(len(line) + 1)
    what = dice.random()
    if what < 0.3:
        return line[:at] + line[at + 1 + dice.randrange(3) :]
    piece = dice.choice(
        [*"<>\"\\@^_:. \t#-0Aué😀·{|'%", "<<(", ")>>", "\\u", "\\uD800", "\\u0020", "^^", "_:", "@en", '"x"', "\x00"]
    )
    return line[:at] + piece + line[at + (what < 0.6) :]


# The grammar of W3C RDF 1.1 N-Triples, §7, word for word, as a regular expression: the judge.  Beyond it, RDF 1.1 Concepts
# (§3.3) says that a text in a language has a tag, and BCP 47 (§2.1) how long the parts of a tag are.
_HEX = "[0-9A-Fa-f]"
_UCHAR = rf"\\u({_HEX}{{4}})|\\U({_HEX}{{8}})"
_IRIREF = rf"<[A-Za-z][A-Za-z0-9+.-]*:(?:[^\x00-\x20<>\"{{}}|^`\\]|{_UCHAR})*>"
_STRING = rf"\"(?:[^\x22\x5C\x0A\x0D]|\\[tbnrf\"'\\]|{_UCHAR})*\""
_FIRST = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff_"
)
_REST = _FIRST + "\\-0-9\u00b7\u0300-\u036f\u203f-\u2040"
_BLANK = f"_:[{_FIRST}0-9](?:[{_REST}.]*[{_REST}])?"
_LITERAL = (
    rf"{_STRING}(?:\s*\^\^\s*(?!<{RDF}(?:lang|dirLang)String>){_IRIREF}|\s*@[a-zA-Z]{{1,8}}(?:-[a-zA-Z0-9]{{1,8}})*)?"
)
_LINE = re.compile(
    rf"[ \t]*(?:(?:{_IRIREF}|{_BLANK})[ \t]*{_IRIREF}[ \t]*(?:{_IRIREF}|{_BLANK}|{_LITERAL})[ \t]*\.[ \t]*)?(?:#.*)?"
)


def judge(line: str) -> int | None:
    """How many triples the line holds, or None where it breaks the grammar or escapes what is no character."""
    if _LINE.fullmatch(line) is None:
        return None
    escaped = [int(digits, 16) for digits in re.findall(r"\\U([0-9A-Fa-f]{8})", line.partition(" #")[0])]
    if any(point > 0x10FFFF or 0xD800 <= point <= 0xDFFF for point in escaped):
        return None
    body = line.strip(" \t")
    return int(bool(body) and not body.startswith("#"))


_STRICTER = (
    # pyoxigraph applies RFC 3987 beyond IRIREF: percent signs, a second '#', a second '@' or what follows a colon in a host.
    "Invalid IRI percent encoding",
    "Invalid IRI code point '#'",
    "Invalid IRI code point '@'",
    "Invalid character",
    # It applies BCP 47 beyond LANGTAG.
    "If an extension subtag",
    "The given language subtag",
    "A subtag fails to parse",
)
"""Where pyoxigraph refuses more than the grammar does; there the grammar is right."""


@settings(max_examples=scaled(1000), deadline=None)
@given(st.sampled_from(VALID + NEWER), st.integers(1, 3), st.randoms(use_true_random=False))
def test_same_verdict_as_pyoxigraph(line: str, damages: int, dice: random.Random) -> None:
    pyoxigraph: Any = pytest.importorskip("pyoxigraph")
    for _ in range(damages):
        line = _damage(line, dice)
    reason = ""
    try:
        expected = len(list(pyoxigraph.parse(line.encode(), pyoxigraph.RdfFormat.N_TRIPLES)))
    except (SyntaxError, ValueError) as error:
        expected, reason = None, str(error)
    found = read(line.encode())
    count = None if found is None else len(found)
    if count is None or not any(stricter in reason for stricter in _STRICTER):
        assert count == expected, line


@settings(max_examples=scaled(1000), deadline=None)
@given(st.sampled_from(VALID), st.integers(1, 3), st.randoms(use_true_random=False))
def test_same_verdict_as_the_grammar(line: str, damages: int, dice: random.Random) -> None:
    for _ in range(damages):
        line = _damage(line, dice)
    found = read(line.encode())
    if not re.search(r"\\u(?:[dD][89a-fA-F]|0020)", line):  # no character, and none for an IRI: see test_ntriples
        assert (None if found is None else len(found)) == judge(line), line


def test_mutants_of_real_lines() -> None:
    """A short run of the fuzzer: whatever is done to lines of the data set that comes along, the verdicts are one."""
    pytest.importorskip("pyoxigraph")
    from tests.benchmarks import fuzz_ntriples

    lines = gzip.decompress(GEOGRAPHY.read_bytes()).splitlines()[::50] + [line.encode() for line in VALID + NEWER]
    report, differences = fuzz_ntriples.run(lines, 5_000, seed=random.randrange(1 << 30))
    assert not differences, differences
    assert min(report["both read"], report["both refuse"]) > 500

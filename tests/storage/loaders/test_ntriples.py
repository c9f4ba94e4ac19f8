"""The N-Triples parser: what it reads, what it refuses and where, whatever the blocks it is fed."""

from __future__ import annotations

import gzip
import pathlib
from functools import partial

import pytest

from graphdb.common import arrow
from graphdb.common.values.terms import RDF
from graphdb.storage.loaders.files import find
from graphdb.storage.loaders.streams import BadLine, blocks, read_lines
from tests.reading import Reader, Term, terms

S, P, O = "<http://a/s>", "<http://a/p>", "<http://a/o>"
SPO = (("iri", "http://a/s"), ("iri", "http://a/p"), ("iri", "http://a/o"))


def parse(data: str | bytes, *, stop: bool = True) -> tuple[list[tuple[Term, ...]], list[BadLine]]:
    parser = Reader(stop=stop)
    parser.open("data.nt", 7)
    bad = parser.feed(data.encode() if isinstance(data, str) else data)
    return terms(parser.take()), bad


def obj(data: str) -> Term:
    triples, bad = parse(f"{S} {P} {data} .\n")
    assert not bad, bad
    return triples[0][2]


@pytest.mark.parametrize(
    ("data", "count"),
    [
        ("", 0),
        ("\n\n", 0),
        ("# only a comment", 0),
        ("  \t# indented comment\r\n", 0),
        (f"{S} {P} {O} .", 1),
        (f"{S}{P}{O}.", 1),
        (f"\t {S}\t{P}\t{O}\t.\t# behind\n", 1),
        (f"{S} {P} {O} .#tight\n", 1),
        (f"{S} {P} {O} .\r{S} {P} {O} .\r", 2),
        (f"{S} {P} {O} .\r\n{S} {P} {O} .\r\n", 2),
        (f"{S} {P} {O} .\n\r\n\n{S} {P} {O} .", 2),
    ],
)
def test_lines(data: str, count: int) -> None:
    assert parse(data) == ([SPO] * count, [])


@pytest.mark.parametrize(
    ("data", "term"),
    [
        ("<a:>", ("iri", "a:")),
        ("<h+t-t.p0://x/é#😀>", ("iri", "h+t-t.p0://x/é#😀")),
        (r"<\u0068ttp://a/\u00e9\U0001F600>", ("iri", "http://a/é😀")),
        ("<urn:[]()*,;=%zz>", ("iri", "urn:[]()*,;=%zz")),
        ("_:b", ("blank", "_:f7_b")),
        ("_:0", ("blank", "_:f7_0")),
        ("_:a.b-c·d..e", ("blank", "_:f7_a.b-c·d..e")),
        ("_:é😀", ("blank", "_:f7_é😀")),
        ('""', ("plain", "")),
        ('"a\tb\x00\x7f"', ("plain", "a\tb\x00\x7f")),
        (r'"\t\b\n\r\f\"\'\\"', ("plain", "\t\b\n\r\f\"'\\")),
        (r'"caf\u00e9 caf\U000000E9 café"', ("plain", "café café café")),
        (r'"\uFFFF\U0010FFFF\u0000"', ("plain", "\uffff\U0010ffff\x00")),
        ('"x"@en', ("tagged", "x", "en")),
        ('"x"@de-AT-1996', ("tagged", "x", "de-at-1996")),
        ('"x"^^<a:b>', ("typed", "x", "a:b")),
        (r'"x"^^<a:\u0062>', ("typed", "x", "a:b")),
        ('"x" ^^ <a:b>', ("typed", "x", "a:b")),
        ('"x"^^<http://www.w3.org/2001/XMLSchema#string>', ("plain", "x")),
        ('"<a> \\" ."', ("plain", '<a> " .')),
    ],
)
def test_terms(data: str, term: Term) -> None:
    assert obj(data) == term


def test_blank_node_label_leaves_its_last_dots() -> None:
    assert parse(f"{S} {P} _:a.\n") == ([(*SPO[:2], ("blank", "_:f7_a"))], [])
    triples, bad = parse(f"{S} {P} _:a..\n")
    assert not triples
    assert bad[0].column == len(f"{S} {P} _:a..")


def test_one_term_however_it_is_written() -> None:
    """Escapes, letter case of language tags and xsd:string do not make another term; kind and annotation do."""
    parser = Reader()
    for line in (
        r'<a:é> <a:p> "café"@en-gb . ',
        r'<a:\u00E9> <a:p> "caf\u00e9"@EN-GB . ',
        r'<a:\U000000e9> <a:p> "caf\U000000E9"@en-GB .',
    ):
        assert not parser.feed(line.encode())
    triples = terms(parser.take())
    assert len(triples) == 3
    assert len(set(triples)) == 1
    different = [
        '"a"',
        '"a"@en',
        '"a"@de',
        '"a"^^<a:en>',
        '"a"^^<en:>',
        "<a:>",
        '"a:"',
        "_:a",
        '"_:f7_a"',
        '"en"',
        '"a:en"',
    ]
    parser.open("x", 7)
    assert not parser.feed("".join(f"<a:s> <a:p> {term} .\n" for term in different).encode())
    [rows] = parser.take().rows()
    assert len(set(rows[:, 2].tolist())) == len(different)


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        (f'"é" {P} {O} .', 1, "expected a subject"),
        (f"@prefix : {P} .", 1, "expected a subject"),
        (f"s {P} {O} .", 1, "expected a subject"),
        (f"{S} _:b {O} .", 14, "expected a predicate"),
        (f"{S}", 13, "expected a predicate"),
        (f"{S} {P} .", 27, "expected an object"),
        (f"{S} {P} 'x' .", 27, "expected an object"),
        (f"{S} {P} 1 .", 27, "expected an object"),
        (f"{S} {P} {O}", 39, "expected '.'"),
        (f"{S} {P} {O} , {O} .", 40, "expected '.'"),
        (f"{S} {P} {O} {O} .", 40, "expected '.'"),
        (f"{S} {P} {O} . {O}", 42, "expected the end of the line"),
        (f"<http://é/ x> {P} {O} .", 11, "cannot stand in an IRI"),
        (f"<http://é/\tx> {P} {O} .", 11, "cannot stand in an IRI"),
        (f"<http://a|b> {P} {O} .", 10, "cannot stand in an IRI"),
        ("<http://a", 10, "no closing '>'"),
        (f"<rel/ative> {P} {O} .", 1, "absolute IRI"),
        (f"<> {P} {O} .", 1, "absolute IRI"),
        (f"<1a:b> {P} {O} .", 1, "absolute IRI"),
        (f"<é:b> {P} {O} .", 1, "absolute IRI"),
        (rf"<http://\n> {P} {O} .", 9, "in an IRI only"),
        (rf"<http://\u003E> {P} {O} .", 9, "cannot stand in an IRI"),
        (rf"<http://\u0020> {P} {O} .", 9, "cannot stand in an IRI"),
        (rf"<http://\u00g0> {P} {O} .", 9, "hexadecimal"),
        (rf"<http://\uD800> {P} {O} .", 9, "surrogate"),
        (rf'{S} {P} "😀é\q" .', 30, "unknown escape"),
        (rf'{S} {P} "\u12" .', 28, "hexadecimal"),
        (rf'{S} {P} "\U00110000" .', 28, "beyond U+10FFFF"),
        (rf'{S} {P} "\uDFFF" .', 28, "surrogate"),
        (rf'{S} {P} "\uD83D\uDE00" .', 28, "surrogate"),
        (f'{S} {P} "abc .', 33, "no closing '\"'"),
        (f'{S} {P} "abc\\', 31, "unknown escape"),
        (f'{S} {P} "x"@1 .', 31, "language tag"),
        (f'{S} {P} "x"@ en .', 31, "language tag"),
        (f'{S} {P} "x"@en- .', 34, "language tag"),
        (f'{S} {P} "x"@abcdefghi .', 39, "eight letters"),
        (f'{S} {P} "x"@en-x-123456789 .', 44, "eight letters"),
        (f'{S} {P} "x"^^<{RDF}langString> .', 32, "with a language"),
        (rf'{S} {P} "x"^^<{RDF}lang\u0053tring> .', 32, "with a language"),
        (f'{S} {P} "x"^^<{RDF}dirLangString> .', 32, "with a language"),
        (f'{S} {P} "x"^<a:b> .', 30, "expected a datatype"),
        (f'{S} {P} "x"^^_:b .', 32, "expected a datatype"),
        (f'{S} {P} "x"^^<b> .', 32, "absolute IRI"),
        (f"_: {P} {O} .", 3, "blank node label"),
        (f"_b {P} {O} .", 1, "blank node label"),
        (f"_::b {P} {O} .", 3, "blank node label"),
        (f"_:-b {P} {O} .", 3, "blank node label"),
        (f"_:·b {P} {O} .", 3, "blank node label"),
        (f"_:a:b {P} {O} .", 4, "expected a predicate"),
    ],
)
def test_refused(line: str, column: int, message: str) -> None:
    triples, bad = parse(f"# first\n{S} {P} {O} .\n{line}\n{S} {P} {O} .\n")
    assert triples == [SPO]
    assert [(b.source, b.line, b.column, b.text) for b in bad] == [("data.nt", 3, column, line)]
    assert message in bad[0].message


@pytest.mark.parametrize(
    "broken",
    [
        b"\xff",
        b"\x80",
        b"\xc3",
        b"\xc0\x80",
        b"\xe0\x80\x80",
        b"\xed\xa0\x80",
        b"\xf0\x80\x80\x80",
        b"\xf4\x90\x80\x80",
        b"\xe2\x82",
    ],
)
@pytest.mark.parametrize(
    "frame",
    [
        b"<http://a/%s> <a:p> <a:o> .\n",
        b'<a:s> <a:p> "%s" .\n',
        b"_:a%s <a:p> <a:o> .\n",
        b"# %s\n",
        b"<a:s> <a:p> <a:o> . # %s",
    ],
)
def test_not_utf8(broken: bytes, frame: bytes) -> None:
    triples, bad = parse(frame % broken)
    assert not triples
    assert [(b.line, b.column, b.message) for b in bad] == [(1, frame.index(b"%") + 1, "these bytes are not UTF-8")]


def test_byte_order_mark_is_named() -> None:
    _, bad = parse("\ufeff" + f"{S} {P} {O} .")
    assert bad[0].hint is not None
    assert "byte order mark" in bad[0].hint


def test_bad_lines_leave_no_terms() -> None:
    parser = Reader(stop=False)
    bad = parser.feed(b'<a:only> <a:here> "and"@here ..\n<a:s> <a:p> <a:o> .\r<a:s> <a:p>\r\n\n<x> .')
    assert [b.line for b in bad] == [1, 3, 5]
    batch = parser.take()
    assert [arrow.pylist(texts.array()) for texts in batch.resources] == [["a:s", "a:p", "a:o"]]
    assert not batch.literals
    assert "here" not in arrow.pylist(batch.notes.array())
    assert len(terms(batch)) == 1


def test_more_terms_triples_and_errors_than_first_reserved() -> None:
    lines = 70_000
    data = "".join(f'<a:{i}> <a:p> "{i}"@en .\nbad {i}\n' for i in range(lines))
    triples, bad = parse(data, stop=False)
    assert len(bad) == lines
    assert bad[-1].line == 2 * lines
    expected = [(("iri", f"a:{i}"), ("iri", "a:p"), ("tagged", str(i), "en")) for i in range(lines)]
    assert triples == expected


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1 << 20])
@pytest.mark.parametrize("suffix", [".nt", ".nt.gz", ".nt.zst"])
def test_blocks_do_not_matter(tmp_path: pathlib.Path, end: str, size: int, suffix: str) -> None:
    """Whatever the block size, the same terms, and a bad line has the same number."""
    from graphdb.storage import zstd

    lines = [f'{S} {P} "{"é" * (13 * i % 29)}"@en .' for i in range(20)]
    lines += ["", "# comment é", f"{S} {P} é .", f"{S} {P} {O} ."]
    data = end.join(lines).encode()
    half = len(data) // 2
    file = tmp_path / f"data{suffix}"
    if suffix == ".nt.gz":  # two members
        data_on_disk = gzip.compress(data[:half]) + gzip.compress(data[half:])
    elif suffix == ".nt.zst":  # two frames
        data_on_disk = zstd.compress(data[:half]) + zstd.compress(data[half:])
    else:
        data_on_disk = data
    file.write_bytes(data_on_disk)
    parser = Reader(stop=False)
    parser.open("data.nt", 7)
    bad: list[BadLine] = []
    texts = []
    for block in blocks(partial(read_lines, find(file)[0], size=size)):
        texts.append(block.text)
        bad += parser.feed(block.text)
    assert b"".join(texts) == data
    whole, whole_bad = parse(data, stop=False)
    assert terms(parser.take()) == whole
    assert bad == whole_bad
    assert [(b.line, b.column) for b in bad] == [(23, 27)]

"""Random bytes and mutations of real lines through the N-Triples reader: no crash, no hang, pyoxigraph's verdict.

Run as ``python -m tests.benchmarks.fuzz_ntriples --count 1000000 FILE.nt.gz …``.  Each mutant is one line; our reader
gets them by the thousand, pyoxigraph one by one.  Half of them come as lines do in files, one changed and its neighbours
not, since the reader guesses a line from the one before.  Of those that both read, the terms are compared too.  Where
the library refuses what the grammar allows, its reason is among :data:`STRICTER` (rules of RFC 3987, BCP 47 and RDF
Concepts beyond the grammar); any other difference is printed, and counts.
"""

from __future__ import annotations

import argparse
import gzip
import random
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyoxigraph

from graphdb.common.values.terms import RDF_REIFIES
from tests.reading import Reader, Term, triples

STRICTER = (
    "Invalid IRI percent encoding",
    "Invalid IRI code point",
    "Invalid character",
    "Invalid port",
    "Invalid host",
    "Invalid IRI character",
    "If an extension subtag",
    "The given language subtag",
    "A subtag fails to parse",
)
"""Where pyoxigraph refuses more than the grammar does."""

_PIECES = [bytes([byte]) for byte in b'<>"\\@^_:. \t#-0AuU()%[]\x00\x7f\x80\xc3\xff'] + [
    b"\\u00e9", b"\\uD800", b"\\U0010FFFF", b"\\U00110000", b"^^", b"_:", b"@en", b"@en--ltr", b'"x"', "é😀".encode(), b"\xed\xa0\x80",
    b"<<(", b")>>", b"\xef\xbb\xbf", b"<a:b>",
]  # fmt: skip


_XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"


def mutants(lines: list[bytes], dice: random.Random) -> Iterator[bytes]:
    """Lines with changes, and bytes at random: each from anywhere, or among its neighbours, half of which are as they were."""
    while True:
        start = dice.randrange(len(lines))
        for at in range(start, min(start + 20, len(lines))):
            yield mutant(lines, dice.choice(lines), dice)
            yield lines[at] if dice.random() < 0.5 else mutant(lines, lines[at], dice)


def mutant(lines: list[bytes], line: bytes, dice: random.Random) -> bytes:
    """The line with one to four changes, or bytes at random."""
    if dice.random() < 0.05:
        return dice.randbytes(dice.randrange(40)).replace(b"\n", b" ").replace(b"\r", b" ")
    changed = bytearray(line)
    for _ in range(dice.choice((1, 1, 2, 4))):
        at = dice.randrange(len(changed) + 1)
        match dice.randrange(4):
            case 0:
                del changed[at : at + dice.randrange(1, 5)]
            case 1:
                changed[at:at] = dice.choice(_PIECES)
            case 2:
                changed[at : at + 1] = dice.choice(_PIECES)
            case 3:
                other = dice.choice(lines)
                start = dice.randrange(len(other))
                changed[at:at] = other[start : start + dice.randrange(20)]
    return bytes(changed)


def verdict(line: bytes) -> tuple[list[tuple[Term, ...]] | None, str]:
    """The triples that pyoxigraph reads, or None and why."""
    try:
        return [_triple(quad.triple) for quad in pyoxigraph.parse(line, pyoxigraph.RdfFormat.N_TRIPLES)], ""
    except (SyntaxError, ValueError) as error:
        return None, str(error)


def _triple(triple: Any) -> tuple[Term, ...]:
    """A triple as :func:`tests.reading.triples` has it: what it reifies comes behind a reifier."""
    if triple.predicate.value == RDF_REIFIES and isinstance(triple.object, pyoxigraph.Triple):
        return tuple(map(_term, (triple.subject, *triple.object)))
    return tuple(map(_term, triple))


def _kept(term: Any) -> str:
    """A term as it is kept within a triple term."""
    if isinstance(term, pyoxigraph.Triple):
        return f"<<( {' '.join(map(_kept, term))} )>>"
    what, text, *note = _term(term)
    if what in ("iri", "blank"):
        return f"<{text}>" if what == "iri" else text
    for character, escape in ("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"):
        text = text.replace(character, escape)
    return f'"{text}"' + (f"^^<{note[0]}>" if what == "typed" else f"@{note[0]}" if note else "")


def _term(term: Any) -> Term:
    if isinstance(term, pyoxigraph.Triple):
        return "iri", _kept(term)
    if isinstance(term, pyoxigraph.NamedNode):
        return "iri", term.value
    if isinstance(term, pyoxigraph.BlankNode):
        return "blank", f"_:f0_{term.value}"
    if term.language:
        way = f"--{term.direction}" if term.direction else ""
        return "tagged", term.value, term.language.lower() + way
    return ("plain", term.value) if term.datatype.value == _XSD_STRING else ("typed", term.value, term.datatype.value)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def run(
    lines: list[bytes], count: int, seed: int = 0, block: int = 5000
) -> tuple[Counter[str], list[tuple[bytes, str]]]:
    """Compare so many mutants; return how the verdicts fell, and the differences that nothing explains."""
    dice = random.Random(seed)
    report: Counter[str] = Counter()
    differences: list[tuple[bytes, str]] = []
    source = mutants(lines, dice)
    for start in range(0, count, block):
        tried = list(islice(source, min(block, count - start)))
        bad, _ = _read(tried)
        read: list[bytes] = []
        expected: list[tuple[Term, ...]] = []
        for number, line in enumerate(tried, 1):
            found, reason = verdict(line)
            if (number in bad) == (found is None):
                report["both refuse" if number in bad else "both read"] += 1
                if found is not None:
                    read.append(line)
                    expected += found
            elif found is None and any(stricter in reason for stricter in STRICTER):
                report["only pyoxigraph refuses: " + next(s for s in STRICTER if s in reason)] += 1
            elif number in bad and b"#" in line and not _is_utf8(line):
                report["only graphdb refuses: a comment that is not UTF-8, which all of a file must be"] += 1
            else:
                report["differences"] += 1
                differences.append((line, reason))
        different = [] if _read(read) == (set(), sorted(expected)) else read
        for line in different:
            found, _ = verdict(line)
            if _read([line]) != (set(), sorted(found or [])):
                report["differences of terms"] += 1
                differences.append((line, f"other terms than {found}"))
        if different and not report["differences of terms"]:
            report["differences of terms in a block, but in no line of it alone"] += 1
            differences.append((b"", f"the block of mutants from {start} on, with seed {seed}"))
        report["triples with the same terms"] += len(expected) if not different else 0
    return report, differences


def _read(lines: list[bytes]) -> tuple[set[int | None], list[tuple[Term, ...]]]:
    """What our reader makes of lines: the numbers of the bad ones, and the triples of the others, sorted."""
    reader = Reader(stop=False)
    reader.open("mutants", 0)
    bad = {line.line for line in reader.feed(b"\n".join(lines) + b"\n")}
    return bad, sorted(triples(reader.take()))


def main() -> None:
    """Read the files, compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    lines: list[bytes] = []
    for name in given.files:
        data = Path(name).read_bytes()
        data = gzip.decompress(data) if name.endswith(".gz") else data
        every = [line for line in data.splitlines() if line.strip()]
        begins = random.Random(1).sample(range(0, len(every), 100), min(50, (len(every) + 99) // 100))
        lines += [line for begin in begins for line in every[begin : begin + 100]]
    start = time.perf_counter()
    report, differences = run(lines, given.count, given.seed)
    for what, number in report.most_common():
        print(f"{number:>12,}  {what}")
    for line, reason in differences[:20]:
        print(line, "|", reason)
    print(f"{given.count:,} mutants in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()

"""Random bytes and mutations of real lines through the N-Triples reader: no crash, no hang, pyoxigraph's verdict.

Run as ``python -m tests.benchmarks.fuzz_ntriples --count 1000000 FILE.nt.gz …``.  Each mutant is one line; our reader
gets them by the thousand, pyoxigraph one by one.  Where the library refuses what the grammar allows, its reason is among
:data:`STRICTER` (rules of RFC 3987 and BCP 47 beyond the grammar); any other difference is printed, and counts.
"""

from __future__ import annotations

import argparse
import gzip
import random
import time
from collections import Counter
from pathlib import Path

import pyoxigraph

from tests.reading import Reader

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


def mutant(lines: list[bytes], dice: random.Random) -> bytes:
    """A line with one to four changes, or bytes at random."""
    if dice.random() < 0.05:
        return dice.randbytes(dice.randrange(40)).replace(b"\n", b" ").replace(b"\r", b" ")
    line = bytearray(dice.choice(lines))
    for _ in range(dice.choice((1, 1, 2, 4))):
        at = dice.randrange(len(line) + 1)
        match dice.randrange(4):
            case 0:
                del line[at : at + dice.randrange(1, 5)]
            case 1:
                line[at:at] = dice.choice(_PIECES)
            case 2:
                line[at : at + 1] = dice.choice(_PIECES)
            case 3:
                other = dice.choice(lines)
                start = dice.randrange(len(other))
                line[at:at] = other[start : start + dice.randrange(20)]
    return bytes(line)


def verdict(line: bytes) -> tuple[int | None, str]:
    """How many triples pyoxigraph reads, or None and why."""
    try:
        return sum(1 for _ in pyoxigraph.parse(line, pyoxigraph.RdfFormat.N_TRIPLES)), ""
    except (SyntaxError, ValueError) as error:
        return None, str(error)


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
    told: Counter[str] = Counter()
    differences: list[tuple[bytes, str]] = []
    parser = Reader(stop=False)
    for start in range(0, count, block):
        mutants = [mutant(lines, dice) for _ in range(min(block, count - start))]
        parser.open("mutants", 0)
        bad = {line.line for line in parser.feed(b"\n".join(mutants) + b"\n")}
        parser.take()
        for number, line in enumerate(mutants, 1):
            expected, reason = verdict(line)
            if (number in bad) == (expected is None):
                told["both refuse" if number in bad else "both read"] += 1
            elif expected is None and any(stricter in reason for stricter in STRICTER):
                told["only pyoxigraph refuses: " + next(s for s in STRICTER if s in reason)] += 1
            elif number in bad and b"<<(" in line:
                told["only graphdb refuses: triple terms beyond rdf:reifies"] += 1
            elif number in bad and b"#" in line and not _is_utf8(line):
                told["only graphdb refuses: a comment that is not UTF-8, which all of a file must be"] += 1
            else:
                told["differences"] += 1
                differences.append((line, reason))
    return told, differences


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
        lines += random.Random(1).sample(data.splitlines(), min(5000, data.count(b"\n")))
    start = time.perf_counter()
    told, differences = run([line for line in lines if line.strip()], given.count, given.seed)
    for what, number in told.most_common():
        print(f"{number:>12,}  {what}")
    for line, reason in differences[:20]:
        print(line, "|", reason)
    print(f"{given.count:,} mutants in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()

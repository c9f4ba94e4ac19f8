"""Rows as text: aligned tables for people; line, CSV, JSON and Markdown for what comes after.

A renderer takes the columns' names and the rows and yields lines without their line ends, so long output streams.
"""

from __future__ import annotations

import csv
import datetime
import html
import io
import itertools
import json
import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import TypeAlias
from unicodedata import category

from graphdb.common.values.decimals import shortest
from graphdb.common.values.elements import Node, Relationship
from graphdb.common.values.temporal import Temporal

Row: TypeAlias = Sequence[object]

WIDEST = 300
"""Characters of a value that a table of HTML shows."""

_JOINERS = "\u200c\u200d"
"""What words of some scripts, and pictures of several, are written with."""

NARROWEST = 10
"""Terminal columns below which no column of a table is cut."""


def text(value: object) -> str:
    """Return a value as people read it: no quotes around strings, ``null`` for None.

    >>> text([1, None, "a"])
    '[1, null, a]'
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, Decimal):
        return shortest(value) if value.is_finite() else str(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(text, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {text(item)}" for key, item in value.items()) + "}"
    return str(value)


def described(value: object) -> str:
    """Return a value as a cell of a table for people: a vertex or edge of nobody's naming by what it is.

    >>> described(Node("_:v7", ("Person",), {"name": "Ada"})), described(Node("http://x.org/ada", ("Person",)))
    ('(:Person {name: Ada})', 'http://x.org/ada')
    >>> described(Relationship("KNOWS", "_:v7", "_:v8", {"since": 1833}))
    '[:KNOWS {since: 1833}]'
    """
    if isinstance(value, Node) and value.iri.startswith("_:") and (value.labels or value.properties):
        labels = "".join(f":{label}" for label in value.labels)
        return f"({' '.join(filter(None, (labels, text(value.properties) if value.properties else '')))})"
    if isinstance(value, Relationship) and value.start.startswith("_:"):
        return f"[:{value.type}{' ' + text(value.properties) if value.properties else ''}]"
    return text(value)


def table(columns: Sequence[str], rows: Iterable[Row], width: int | None = None) -> Iterator[str]:
    """Yield an aligned table, numbers to the right; cells are cut where the terminal ends.

    Parameters
    ----------
    width
        Terminal columns to stay within; None asks the terminal.  Where that would cut columns below :data:`NARROWEST`,
        those in the middle are left out, and their number takes their place.
    """
    lines, rules = _aligned(columns, rows, (width or shutil.get_terminal_size().columns) - 3 * len(columns) + 1)
    for number, cells in enumerate(lines):
        yield f" {' │ '.join(cells)}".rstrip()
        if number == 0:
            yield "┼".join(rules)


def box(columns: Sequence[str], rows: Iterable[Row], width: int | None = None) -> Iterator[str]:
    """Yield the table in a box; see :func:`table`."""
    lines, rules = _aligned(columns, rows, (width or shutil.get_terminal_size().columns) - 3 * len(columns) - 1)
    yield f"┌{'┬'.join(rules)}┐"
    for number, cells in enumerate(lines):
        yield f"│ {' │ '.join(cells)} │"
        if number == 0:
            yield f"├{'┼'.join(rules)}┤"
    yield f"└{'┴'.join(rules)}┘"


def _aligned(columns: Sequence[str], rows: Iterable[Row], width: int) -> tuple[list[list[str]], list[str]]:
    """Return the cells of header and rows, each as wide as its column, and a rule below each column."""
    listed = [list(row) for row in rows]
    cells = [[_one_line(described(value)) for value in row] for row in listed]
    names = [_one_line(name) for name in columns]
    right = [_is_numeric(row[i] for row in listed) for i in range(len(columns))]
    natural = [max(map(_width, (name, *(row[i] for row in cells)))) for i, name in enumerate(names)]
    begin, end = _left_out([min(each, NARROWEST) for each in natural], width)
    if begin < end:
        more = f"… {end - begin} more"
        width += 3 * (end - begin - 1)
        names[begin:end], right[begin:end], natural[begin:end] = [more], [False], [len(more)]
        for row in cells:
            row[begin:end] = ["…"]
    widths = _fit(natural, width)
    lines = [[_cell(cell, widths[i], right[i]) for i, cell in enumerate(row)] for row in [names, *cells]]
    return lines, ["─" * (size + 2) for size in widths]


def _left_out(least: Sequence[int], width: int) -> tuple[int, int]:
    """Return which columns, from one up to before another one, are left out so that the others fit into a width.

    >>> _left_out([10, 10, 10], 30), _left_out([10] * 9, 60)
    ((0, 0), (3, 7))
    """
    if sum(least) <= width:
        return 0, 0
    begin, end = 0, len(least)
    room = width - NARROWEST + 3 * (len(least) - 1)  # what stands between columns that are left out is free, too
    while begin < end:
        at = begin if begin <= len(least) - end else end - 1
        room -= least[at] + 3
        if room < 0 and begin > 0:
            break
        begin, end = (begin + 1, end) if at == begin else (begin, at)
    return (begin, end) if end - begin > 1 else (0, 0)


def line(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Yield one ``name = value`` per line, and an empty line between rows."""
    margin = max(map(_width, columns), default=0)
    for number, row in enumerate(rows):
        if number:
            yield ""
        for name, value in zip(columns, row, strict=True):
            shown = "\n".join(_one_line(each) for each in described(value).split("\n"))
            yield f"{_cell(name, margin, right=True)} = {shown}"


def comma_separated(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Yield CSV as RFC 4180 has it: a header, null as nothing, vertices as their IRI."""
    return _delimited(columns, rows, ",")


def tab_separated(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Yield what :func:`comma_separated` does, with tabs."""
    return _delimited(columns, rows, "\t")


def _delimited(columns: Sequence[str], rows: Iterable[Row], delimiter: str) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator="")
    for row in itertools.chain([columns], rows):
        writer.writerow(["" if value is None else getattr(value, "iri", None) or text(value) for value in row])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def as_json(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Yield a JSON array, one object per line."""
    opening = "["
    for row in rows:
        yield opening + json_text(dict(zip(columns, row, strict=True)), _jsonable)
        opening = ","
    yield "[]" if opening == "[" else "]"


def json_lines(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Yield a JSON object per line."""
    for row in rows:
        yield json_text(dict(zip(columns, row, strict=True)), _jsonable)


def json_text(value: object, other: Callable[[object], object]) -> str:
    """Return a value as JSON, which ``other`` makes of what JSON does not know; numbers that it has not are texts.

    >>> json_text([1.5, float("nan"), {"a": float("-inf")}], str)
    '[1.5, "NaN", {"a": "-Infinity"}]'
    """
    try:
        return json.dumps(value, ensure_ascii=False, default=other, allow_nan=False)
    except ValueError:  # Python writes NaN, which is no JSON
        return json.dumps(_without_nan(value, other), ensure_ascii=False)


def _without_nan(value: object, other: Callable[[object], object]) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return {key: _without_nan(item, other) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item, other) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else _without_nan(other(value), other)


def latex(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Yield a ``tabular`` of LaTeX, numbers to the right."""
    listed = [list(row) for row in rows]
    sides = "".join("r" if _is_numeric(row[i] for row in listed) else "l" for i in range(len(columns)))
    yield f"\\begin{{tabular}}{{{sides}}}"
    yield " & ".join(map(_tex, columns)) + r" \\ \hline"
    for row in listed:
        yield " & ".join(_tex(text(value)) for value in row) + r" \\"
    yield r"\end{tabular}"


def _tex(cell: str) -> str:
    escaped: dict[str, str | int | None] = {sign: f"\\{sign}" for sign in "&%$#_{}"}
    escaped |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return _one_line(cell).translate(str.maketrans(escaped))


def markdown(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Yield a Markdown table."""
    yield "| " + " | ".join(map(_escape, columns)) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(_escape(described(value)) for value in row) + " |"


def as_html(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Yield a table of HTML as notebooks show data frames: numbers to the right, long values cut, controls visible."""
    listed = [list(row) for row in rows]
    sides = [' style="text-align: right"' if _is_numeric(row[i] for row in listed) else ' style="text-align: left"'
             for i in range(len(columns))]  # fmt: skip
    yield '<table class="dataframe">'
    head = "".join(f"<th{side}>{html.escape(_one_line(name))}</th>" for side, name in zip(sides, columns, strict=True))
    yield f"<thead><tr>{head}</tr></thead><tbody>"
    for row in listed:
        cells = (_short(described(value)) if value is not None else None for value in row)
        yield "<tr>" + "".join(
            f"<td{side}>{'<em>null</em>' if cell is None else html.escape(_one_line(cell))}</td>"
            for side, cell in zip(sides, cells, strict=True)
        ) + "</tr>"  # fmt: skip
    yield "</tbody></table>"


def _short(cell: str) -> str:
    return cell if len(cell) <= WIDEST else cell[: WIDEST - 1] + "…"


MODES: dict[str, Callable[[Sequence[str], Iterable[Row]], Iterator[str]]] = {
    "table": table,
    "box": box,
    "line": line,
    "csv": comma_separated,
    "tsv": tab_separated,
    "json": as_json,
    "jsonl": json_lines,
    "markdown": markdown,
    "latex": latex,
    "html": as_html,
}
"""The output modes by name."""


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it.

    >>> duration(0.0123), duration(7.5), duration(95), duration(8000), duration(1e6)
    ('12.3 ms', '7.50 s', '1 min 35 s', '2 h 13 min', '11 days')
    """
    if seconds < 1:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, hours = int(seconds) // 60, int(seconds) // 3600
    if hours == 0:
        return f"{minutes} min {int(seconds) % 60} s"
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24:,} days"


def plural(count: int, noun: str) -> str:
    """Return ``1 row``, ``1,234 rows``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _jsonable(value: object) -> object:
    """Return what JSON can say of a value that it does not know."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Temporal):  # as dates and times of Python's
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, (tuple, set, frozenset)):
        return list(value)
    return str(value)


def _one_line(cell: str) -> str:
    """Make control characters visible, so that a cell stays one line; blanks and joiners of scripts are characters."""
    if cell.isprintable():
        return cell
    return "".join(c if c.isprintable() or c in _JOINERS or category(c) == "Zs" else _visible(c) for c in cell)


def _visible(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _escape(cell: str) -> str:
    return _one_line(cell).replace("|", "\\|")


def _is_numeric(values: Iterable[object]) -> bool:
    """True if there are numbers among the values and nothing else but null."""
    present = [value for value in values if value is not None]
    return bool(present) and all(
        isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) for value in present
    )


def _width(cell: str) -> int:
    """Return the terminal columns that a string takes."""
    if cell.isascii():
        return len(cell)
    from wcwidth import wcswidth

    return max(wcswidth(cell), 0)


def _cell(cell: str, size: int, right: bool) -> str:
    """Pad a cell to ``size`` terminal columns, or cut it there."""
    if _width(cell) > size:
        cell = cell[:size]
        while _width(cell) >= size:
            cell = cell[:-1]
        cell += "…"
    padding = " " * (size - _width(cell))
    return padding + cell if right else cell + padding


def _fit(natural: list[int], available: int) -> list[int]:
    """Return column widths that fit into ``available``: all columns wider than some width are cut to it."""
    widest = max(natural, default=0)
    caps = range(min(widest, max(available, NARROWEST)), NARROWEST, -1)
    cap = next((cap for cap in caps if sum(min(size, cap) for size in natural) <= available), NARROWEST)
    return [min(size, cap) for size in natural]

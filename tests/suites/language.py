"""The project's own scenarios, in ``language.txt``: reading the table, and writing what comes back as the table does.

A line that begins with ``given:`` makes the graph of the scenarios below it, up to the next; ``given: -`` is none.
A scenario is a query of one line, and below it, indented, what is expected: rows between bars (``|``), or ``in order``
and rows, or ``-`` for none; ``! Class words`` for an error, its class and words of its message; ``+`` side effects, one by one (``nodes 1, -labels 2``).
``$ {...}`` gives its parameters as a Python dictionary.  Values are written as openCypher does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

from graphdb import Node, Relationship
from graphdb.common.values.elements import Path
from graphdb.common.values.temporal import Temporal
from graphdb.common.values.temporal_python import from_python

TABLE = File(__file__).with_name("language.txt")


_ESCAPED = {ord(sign): f"\\{name}" for sign, name in zip("\\'\n\t\r\b\f", "\\'ntrbf", strict=True)}


@dataclass
class Scenario:
    """One query and what it must do."""

    line: int
    section: str
    given: tuple[str, ...]
    query: str
    parameters: dict[str, Any] = field(default_factory=dict)
    rows: list[str] = field(default_factory=list)
    ordered: bool = False
    error: str | None = None
    effects: dict[str, int] | None = None


def scenarios() -> Iterator[Scenario]:
    """Yield the scenarios of the table."""
    section, given, found = "", (), None
    for number, line in enumerate(TABLE.read_text(encoding="utf-8").splitlines(), 1):
        report = line.strip()
        if not report or report.startswith("//"):
            continue
        if line.startswith(" "):
            assert found is not None, f"line {number} belongs to no query"
            _expect(found, report)
            continue
        if found is not None:
            yield found
            found = None
        if report.startswith("##"):
            section, given = report.strip("# "), ()
        elif report.startswith("given:"):
            report = report.removeprefix("given:").strip()
            given = () if report == "-" else tuple(report.split(" ;; "))
        else:
            found = Scenario(number, section, given, report)
    if found is not None:
        yield found


def _expect(scenario: Scenario, report: str) -> None:
    match report[0]:
        case "$":
            scenario.parameters = ast.literal_eval(report[1:].strip())
        case "|":
            scenario.rows.append(report)
        case "!":
            scenario.error = report[1:].strip()
        case "+":
            pairs = (effect.split() for effect in report[1:].split(","))
            scenario.effects = {kind if kind[0] in "+-" else f"+{kind}": int(count) for kind, count in pairs}
        case "-":
            scenario.rows = []
        case _:
            assert report == "in order", report
            scenario.ordered = True


def row(values: tuple[Any, ...]) -> str:
    """Return a row as the table writes it."""
    return f"| {' | '.join(map(shown, values))} |"


def shown(value: Any) -> str:
    """Return a value as openCypher writes it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(str(value), repr(value + 0.0))
        case int():
            return str(value)
        case str():
            return f"'{value.translate(_ESCAPED)}'"
        case list():
            return f"[{', '.join(map(shown, value))}]"
        case dict():
            return "{" + ", ".join(f"{key}: {shown(item)}" for key, item in sorted(value.items())) + "}"
        case Node():
            labels = "".join(f":{label}" for label in sorted(value.labels))
            return f"({labels}{' ' if labels and value.properties else ''}{_map(value.properties)})"
        case Relationship():
            return f"[:{value.type}{' ' if value.properties else ''}{_map(value.properties)}]"
        case Path():
            text = shown(value.nodes[0])
            for left, edge, right in zip(value.nodes, value.relationships, value.nodes[1:], strict=False):
                arrow = f"-{shown(edge)}->" if edge.start == left.iri else f"<-{shown(edge)}-"
                text += arrow + shown(right)
            return f"<{text}>"
    temporal = value if isinstance(value, Temporal) else from_python(value)
    assert temporal is not None, f"the table has no value like {value!r}"
    return str(temporal)


def _map(properties: Any) -> str:
    return shown(dict(properties)) if properties else ""

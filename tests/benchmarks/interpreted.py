"""What of openCypher's scenarios Python computes instead of SQL, columns or kernels: counted by folder and by reason.

    python -m tests.benchmarks.interpreted [--folder expressions/temporal] [--name]

Every scenario is run and its outcome checked as in the tests; nothing is timed.  A scenario counts once in the first
column that holds of it:

``rows``
    an expression of columns, in a query with MATCH, UNWIND or CALL: Python computes it once for each distinct input, so
    that more data take it longer;
``one row``
    an expression of columns in a query without these, which has one row whatever the data are;
``constants``
    expressions without columns, each computed once;
``errors``
    any of these where the scenario expects an error;
``paths``
    paths that are searched for one by one.

``writes`` is how many scenarios have clauses that write, whose few rows go one by one (:mod:`graphdb.writing.by_row`).
The second table names the reasons of ``rows``, and of ``one row``: what is computed, or what the property is that SQL
does not hold.  ``--name`` lists the expressions.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from graphdb.evaluate.compute import Computation
from graphdb.grammar import syntax as ast
from graphdb.sql.computing import Input
from graphdb.storage.arrays.python_values import pylist
from tests.benchmarks.harness import Table, main
from tests.suites.tck import Runner, Scenario, scenarios, writes

COLUMNS = ("rows", "one row", "constants", "errors", "paths")
_MANY = ("MATCH", "UNWIND", "CALL")
"""Clauses that make any number of rows."""


@dataclass(slots=True)
class Piece:
    """An expression that Python computed."""

    source: str
    kind: str
    inputs: list[Input]
    datatypes: set[str] = field(default_factory=set)
    """Of the properties among its inputs whose text is read."""
    ran: bool = False

    @property
    def reason(self) -> str:
        """What is computed: an operator or function; of a property alone, what it is."""
        if self.kind in ("a name", "a property") and self.datatypes:
            return f"a property: {', '.join(sorted(self.datatypes))}"
        return f"{self.kind} of a property: {', '.join(sorted(self.datatypes))}" if self.datatypes else self.kind


@dataclass(slots=True)
class Watched:
    """What was computed while one statement ran."""

    pieces: dict[tuple[int, int], Piece] = field(default_factory=dict)
    paths: int = 0


def kind_of(node: ast.Expression) -> str:
    """Return what an expression is: the name of its function, its operator, or its kind."""
    match node:
        case ast.FunctionCall():
            return node.name.lower()
        case ast.Binary() | ast.Unary() | ast.Boolean():
            return node.operator
        case ast.Variable():
            return "a name"
        case ast.Property():
            return "a property"
    return type(node).__name__


@contextmanager
def watching() -> Iterator[Watched]:
    """Note what Python computes meanwhile."""
    found = Watched()
    originals = Computation.add, Computation._of_row, Computation._answer, Computation.applied

    def add(self: Computation, node: ast.Expression, inputs: Any, source: Any, *rest: Any, **more: Any) -> Any:
        made = originals[0](self, node, inputs, source, *rest, **more)
        text = self._context.text[source.span.start : source.span.end]
        found.pieces[id(self), len(self._pieces) - 1] = Piece(" ".join(text.split()), kind_of(node), list(inputs))
        return made

    def ran(self: Computation, number: int, rows: Iterator[tuple[Any, ...]]) -> None:
        piece = found.pieces[id(self), number]
        piece.ran = True
        for row in rows:
            for input, value in zip(piece.inputs, row, strict=True):
                literals = {"literal": [value], "literals": value, "properties": value}.get(input.read) or []
                piece.datatypes |= {re.split("[#/:]", each["datatype"] or "string")[-1] for each in literals if each}

    def of_row(self: Computation, number: int, given: tuple[Any, ...]) -> Any:
        ran(self, number, iter([given]))
        return originals[1](self, number, given)

    def answer(self: Computation, number: int, columns: list[Any], rows: int) -> Any:
        ran(self, number, zip(*(pylist(column) for column in columns), strict=True))
        return originals[2](self, number, columns, rows)

    def applied(self: Computation, *given: Any) -> Any:
        found.paths += 1
        return originals[3](self, *given)

    with patch.multiple(Computation, add=add, _of_row=of_row, _answer=answer, applied=applied):
        yield found


def column_of(scenario: Scenario, found: Watched) -> str | None:
    """Return the column in which a scenario counts; None where Python computes nothing of it."""
    pieces = [piece for piece in found.pieces.values() if piece.ran]
    if (pieces or found.paths) and scenario["expect"]["kind"] == "error":
        return "errors"
    if any(piece.inputs for piece in pieces):
        return "rows" if any(word in scenario["query"].upper() for word in _MANY) else "one row"
    return "constants" if pieces else "paths" if found.paths else None


class Watching(Runner):
    """Runs scenarios, and watches their queries, not what sets them up."""

    def __init__(self) -> None:
        super().__init__()
        self.found = Watched()

    def _outcome(self, *given: Any) -> str | None:
        with watching() as self.found:
            return super()._outcome(*given)


def run(argv: list[str]) -> list[Table]:
    """Count, and return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default="", help="only folders that begin so")
    parser.add_argument("--name", action="store_true", help="list the expressions")
    arguments = parser.parse_args(argv)
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    named: dict[tuple[str, str], set[str]] = defaultdict(set)
    runner = Watching()
    for scenario in scenarios():
        if not scenario["folder"].startswith(arguments.folder):
            continue
        wrong = runner.run(scenario)
        assert wrong is None, (scenario["id"], wrong)
        row = counted[scenario["folder"]]
        row["scenarios"] += 1
        row["writes"] += writes(scenario)
        column = column_of(scenario, runner.found)
        if column is None:
            continue
        row[column] += 1
        pieces = [each for each in runner.found.pieces.values() if each.ran and each.inputs]
        for reason in {piece.reason for piece in pieces}:
            reasons[reason][column] += 1
        for piece in pieces:
            named[piece.reason, column].add(piece.source)
    runner.close()
    columns = ("scenarios", *COLUMNS, "writes")
    by_folder = Table("What Python computes, scenarios by folder", ("folder", *columns))
    for folder, row in [*sorted(counted.items()), ("all", sum(counted.values(), Counter()))]:
        if any(row[column] for column in COLUMNS):
            by_folder.add(folder, *(str(row[column] or "") for column in columns))
    by_reason = Table("Reasons, scenarios (one may have several)", ("reason", "rows", "one row", "errors"))
    for reason, row in sorted(reasons.items(), key=lambda each: (-each[1]["rows"], -each[1]["one row"], each[0])):
        by_reason.add(reason, *(str(row[column] or "") for column in ("rows", "one row", "errors")))
    tables = [by_folder, by_reason]
    if arguments.name:
        tables.append(Table("Expressions", ("expression", "reason", "column")))
        for (reason, column), sources in sorted(named.items(), key=lambda each: each[0][::-1]):
            for source in sorted(sources):
                tables[-1].add(source[:100], reason, column)
    return tables


if __name__ == "__main__":
    main(run)

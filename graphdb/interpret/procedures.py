"""Calls of procedures by the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphdb.grammar import syntax as ast
from graphdb.interpret.evaluate import Compiler
from graphdb.interpret.match import Rows
from graphdb.procedures.answers import Answer

if TYPE_CHECKING:
    from graphdb.interpret.context import Context


def run_call(context: Context, clause: ast.ProcedureClause, rows: Rows, export: Callable[[Any], Any]) -> Rows:
    """Return each row with each of the rows that a procedure yields for it; ``export`` makes values a user's."""
    call = context.procedures.bound(clause, context.text)
    compiler = Compiler(context)
    arguments = [compiler.compile(node) for node in call.arguments]
    for row in context.watched(rows):
        context.view.expect(row.values())
    context.subqueries.run_ahead(list(call.arguments), rows)
    given = [[argument(row) for argument in arguments] for row in context.watched(rows)]
    for values in given:
        context.view.expect(values)
    names, seen, control = clause.columns, context.snapshot, context.new_control()
    known: dict[int, Rows] = {}
    """What is brought in by each answer, by the place of that in memory: all of them stay until the end."""
    found: Rows = []
    for row, values in zip(rows, given, strict=True):
        exported = [export(value) for value in values]
        answer = context.procedures.answer(call, exported, seen, lambda: context.check(control))
        if not call.procedure.signature.columns:
            found.append(row)
            continue
        if id(answer) not in known:
            known[id(answer)] = _brought(context, clause, answer, [number for number, _ in call.yields], names)
        found += [{**row, **new} for new in known[id(answer)]]
    return found


def _brought(
    context: Context, clause: ast.ProcedureClause, answer: Answer, numbers: list[int], names: tuple[str, ...]
) -> Rows:
    """Return the columns of an answer as rows of the interpreter's values."""
    place = ast.Variable(clause.name, clause.named)
    columns = [[context.given(value, place) for value in answer.values(number)] for number in numbers]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]

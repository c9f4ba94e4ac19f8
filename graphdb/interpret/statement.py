"""The door of the interpreter: one statement over an open database, in one transaction where it writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from graphdb.grammar import syntax as ast
from graphdb.interpret.context import Context
from graphdb.interpret.export import Exporter
from graphdb.interpret.memory import MemoryWatch
from graphdb.interpret.result import ValuesResult
from graphdb.interpret.run import Interpreter
from graphdb.plan.executor import Control, Executor
from graphdb.relational.session.state import State


def interpreted(
    state: State,
    executor: Executor,
    query: ast.Query | ast.Composite,
    text: str,
    arguments: Mapping[str, object],
    new_control: Callable[[], Control],
    most: int | None = None,
) -> ValuesResult:
    """Run a query; what it writes is kept as a whole or not at all.

    Raises
    ------
    WritesMany
        It would write more than ``most`` rows; nothing is written.
    """
    started = time.perf_counter()
    memory = MemoryWatch(state.budget)
    context = Context(state.snapshot, state.forget, executor, text, arguments, new_control, memory)
    if not (isinstance(query, ast.Composite) and query.writes):
        return _result(state, Interpreter(context, query), context, started)
    context.most = most
    interpreter = Interpreter(context, query)
    with state.connection.guard(), state.writing():
        result = _result(state, interpreter, context, started)
        state.changed(())
    return result


def _result(state: State, interpreter: Interpreter, context: Context, started: float) -> ValuesResult:
    rows = interpreter.run()
    changes = interpreter.finish()
    columns = interpreter.columns()
    values = Exporter(context).rows(rows, columns)
    message = None if changes is None else str(changes)
    elapsed = time.perf_counter() - started
    return ValuesResult(state.version(), columns, values, len(rows), elapsed=elapsed, message=message)


def explained(
    state: State,
    executor: Executor,
    query: ast.Query | ast.Composite,
    text: str,
    arguments: Mapping[str, object],
    new_control: Callable[[], Control],
    ran: ValuesResult | None,
    why: str,
) -> Iterator[str]:
    """Yield what the interpreter does with a query, clause by clause, and how long it took; raise what is wrong."""
    yield "interpreted, row by row: patterns are matched by plans, the rest is evaluated in Python"
    yield f"  because {why}"
    parts = query.parts if isinstance(query, ast.Composite) else (query.clauses,)
    for i, part in enumerate(parts):
        if i:
            yield "UNION ALL" if isinstance(query, ast.Composite) and query.keeps_all else "UNION"
        for clause in part:
            yield "  " + " ".join(text[clause.span.start : clause.span.end].split())
    if ran is not None:
        yield ""
        yield f"{ran.elapsed * 1000:,.1f} ms in all; {len(ran):,} rows"

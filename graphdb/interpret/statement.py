"""The door of the interpreter: one reading query over an open database."""

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
) -> ValuesResult:
    """Run a query."""
    started = time.perf_counter()
    memory = MemoryWatch(state.budget)
    context = Context(state.snapshot, state.forget, executor, text, arguments, new_control, memory)
    return _result(state, Interpreter(context, query), context, started)


def _result(state: State, interpreter: Interpreter, context: Context, started: float) -> ValuesResult:
    rows = interpreter.run()
    columns = interpreter.columns()
    values = Exporter(context).rows(rows, columns)
    elapsed = time.perf_counter() - started
    return ValuesResult(state.version(), columns, values, len(rows), elapsed=elapsed, message=None)


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

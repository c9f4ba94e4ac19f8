"""EXPLAIN and PROFILE: the plan of a query in words, before and after it ran."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphdb.paths.base import PreparedPaths
from graphdb.plan.explain import explain_text

if TYPE_CHECKING:
    import pyarrow as pa

    from graphdb.execute.executor import Control
    from graphdb.pattern.names import Names
    from graphdb.query import Prepared


@dataclass(frozen=True, slots=True)
class Explanation:
    """The lines of an explanation."""

    lines: tuple[str, ...]

    @classmethod
    def planned(cls, prepared: Prepared, names: Names, executor: str) -> Explanation:
        """Explain a query that has not run."""
        return cls((*_match(prepared, names, executor), *_after(prepared)))

    @classmethod
    def profiled(
        cls,
        prepared: Prepared,
        names: Names,
        executor: str,
        control: Control | None,
        seconds: tuple[float, float],
        rows: int,
    ) -> Explanation:
        """Explain a query that ran: ``seconds`` are those of planning and of everything."""
        planning, total = seconds
        match = control.seconds if control is not None else 0.0
        times = (
            f"{total * 1000:,.1f} ms in all: {planning * 1000:,.1f} planning and candidates, "
            f"{match * 1000:,.1f} match, {(total - planning - match) * 1000:,.1f} result; {rows:,} rows"
        )
        return cls((*_match(prepared, names, executor, control), *_after(prepared), "", times))

    def to_table(self) -> pa.Table:
        """Return the lines as the one column ``plan``."""
        import pyarrow as pa

        return pa.table({"plan": pa.array(self.lines, pa.string())})

    def __str__(self) -> str:
        return "\n".join(self.lines)


def _match(prepared: Prepared, names: Names, executor: str, control: Control | None = None) -> Iterator[str]:
    plan = prepared.plan

    def label(id: int) -> str:
        found = names.edge_labels.get(id)
        return names.written(found.iri) if found is not None else "<absent>"

    if isinstance(prepared, PreparedPaths):
        yield from prepared.describe(label)
    if plan is None:
        return
    memory = f"; {plan.worker_bytes:,} bytes of buffers per thread" if executor == "cpu" else ""
    yield f"match on {executor} ({', '.join(c.mode.value for c in prepared.bound.clauses)}{memory})"
    yield from ("  " + line for line in explain_text(plan, label, control).splitlines())


def _after(prepared: Prepared) -> Iterator[str]:
    if prepared.shaped.grouped is not None:
        yield "then equal pairs are put together, where those of either vertex come one after the other"
    yield "then SQL over the bindings"
    yield "  " + prepared.shaped.sql

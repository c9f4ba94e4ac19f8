"""What the page asks of the database: to run and check statements, to complete them, to load files."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Callable
from io import BufferedIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphdb._version import __version__
from graphdb.common.errors import ExecutionError, GraphDBError, ParameterError, StorageError
from graphdb.common.values.elements import Node, Relationship
from graphdb.dispatch.completion import Names, suggestions
from graphdb.pictures import AROUND
from graphdb.pictures.picture import caption, local
from graphdb.results.python_columns import as_json

if TYPE_CHECKING:
    from graphdb.database import Database
    from graphdb.results.result import Result

ROWS = 1_000
"""Rows that the page shows of an answer."""

DRAWN = 500
"""Vertices, and edges, that it draws."""

HISTORY = 200
"""Statements that are remembered."""

_COPIED = 1 << 20


class Session:
    """A database as the page sees it.

    Parameters
    ----------
    folder
        Where files that are dropped are put while they are loaded.
    history
        The file of earlier statements; None for none.
    """

    def __init__(self, database: Database, folder: Path, history: Path | None = None) -> None:
        self._database, self._folder, self._file = database, folder, history
        self._names = Names()
        self._working = threading.Lock()
        self._progress: dict[str, Any] = {}
        self._history: list[str] = []
        if history is not None:
            self._history = _remembered(history)

    def answer(self, action: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request; errors of ours become answers.

        Raises
        ------
        KeyError
            There is no such action.
        """
        actions: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "about": self._about, "run": self._run, "plan": self._plan, "check": self._check,
            "complete": self._complete, "expand": self._expand, "schema": self._schema, "stop": self._stop,
            "progress": self._report,
        }  # fmt: skip
        found = actions[action]
        try:
            return found(given)
        except GraphDBError as error:
            return {"error": _error(error)}

    def _about(self, given: dict[str, Any]) -> dict[str, Any]:
        database = self._database
        self._names = Names.read(database)
        return {
            "path": database.path,
            "version": __version__,
            "labels": database.labels.fetchall(),
            "types": database.relationship_types.fetchall(),
            "keys": database.property_keys.fetchall(),
            "tables": database.tables(),
            "history": self._history,
        }

    def _run(self, given: dict[str, Any]) -> dict[str, Any]:
        text = _text(given)
        self._remember(text)
        started = time.perf_counter()
        with self._working:
            result = self._database.query(text)
            if result.verbatim:
                return {"plan": result.plan(), "text": result.text(1_000_000)}
            rows = [[_cell(value) for value in row] for row in _first(result)]
            picture = self._picture(result)
        return {
            "columns": list(result.columns),
            "rows": rows,
            "count": len(result),
            "message": result.message,
            "warnings": result.warnings,
            "seconds": time.perf_counter() - started,
            "graph": picture,
        }

    def _picture(self, result: Result) -> dict[str, Any] | None:
        try:
            return result.graph(DRAWN).data()
        except ExecutionError:  # it has no elements
            return None

    def _plan(self, given: dict[str, Any]) -> dict[str, Any]:
        text = _text(given).strip()
        first = text.split(maxsplit=1)[0].upper() if text else ""
        if first in ("EXPLAIN", "PROFILE"):
            text = text[len(first) :]
        return self._run({"text": f"{'PROFILE' if given.get('profile') else 'EXPLAIN'} {text}"})

    def _check(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return what is wrong with a text, which does not run."""
        from graphdb.grammar import syntax as ast
        from graphdb.grammar.parser import parse_script

        text = _text(given)
        if not text.strip():
            return {"errors": []}
        try:
            statements = parse_script(text)
            if len(statements) == 1 and isinstance(statements[0], ast.Query) and self._working.acquire(blocking=False):
                try:
                    self._database.explain(text, dict.fromkeys(self._database.prepare(text).parameters))
                finally:
                    self._working.release()
        except ParameterError:
            pass  # values come when it runs
        except GraphDBError as error:
            return {"errors": [_error(error)]}
        return {"errors": []}

    def _complete(self, given: dict[str, Any]) -> dict[str, Any]:
        found = suggestions(_text(given), self._names)
        return {"found": [{"text": each.text, "length": each.length, "kind": each.kind} for each in found]}

    def _expand(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the edges of a vertex, and their ends."""
        with self._working:
            result = self._database.query(AROUND, iri=str(given.get("iri")))
            return {"graph": self._picture(result) or {"nodes": [], "links": [], "omitted": 0}}

    def _schema(self, given: dict[str, Any]) -> dict[str, Any]:
        with self._working:
            return {"graph": self._database.schema().graph().data()}

    def _stop(self, given: dict[str, Any]) -> dict[str, Any]:
        self._database.interrupt()
        return {}

    def _report(self, given: dict[str, Any]) -> dict[str, Any]:
        return self._progress

    def load(self, name: str, source: BufferedIOBase, size: int, label: str | None, type: str | None) -> dict[str, Any]:
        """Load a file that was dropped on the page, whose ``size`` bytes come from ``source``, or none of it."""
        try:
            with tempfile.TemporaryDirectory(dir=self._folder) as folder:  # others may send files of that name
                path = Path(folder) / (Path(name).name or "data")
                with path.open("wb") as file:
                    left = size
                    while left and (piece := source.read(min(left, _COPIED))):
                        file.write(piece)
                        left -= len(piece)
                        self._progress = {"phase": "copying", "share": 1 - left / size}
                if left:
                    raise ExecutionError(f"'{path.name}' breaks off: {left:,} of {size:,} bytes did not come")
                with self._working:
                    report = self._database.load(path, label=label, type=type, progress=self._hear)
        except GraphDBError as error:
            return {"error": _error(error)}
        except (OSError, ValueError) as error:  # a name that no file can have, or no space on the disk
            return {"error": _error(StorageError(f"'{name}' cannot be stored before it is loaded: {error}"))}
        finally:
            self._progress = {}
        return {
            "read": report.read,
            "new": report.new_triples,
            "seconds": report.seconds,
            "skipped": report.errors,
        }

    def _hear(self, done: float, total: float, triples: int, phase: str) -> None:
        self._progress = {"phase": phase, "share": done / total if total else None, "triples": triples}

    def _remember(self, text: str) -> None:
        """Put a statement at the beginning of the history."""
        self._history = [text, *(each for each in self._history if each != text)][:HISTORY]
        if self._file is not None:
            self._file.write_text(json.dumps(self._history), encoding="utf-8")


def _remembered(file: Path) -> list[str]:
    """Return the statements of a history; none where that cannot be read."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _text(given: dict[str, Any]) -> str:
    text = given.get("text")
    if not isinstance(text, str):
        raise ParameterError("a statement is a text")
    return text


def _first(result: Result) -> list[tuple[Any, ...]]:
    rows = result.fetchmany(ROWS)
    return rows if result.columns else []


def _cell(value: Any) -> Any:
    """Return a value as the page shows it: numbers, truth values and texts as such, all else as text."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        return value if abs(value) < 1 << 53 else str(value)  # JSON's numbers are JavaScript's; NaN is none
    if isinstance(value, Node):
        return f"({' '.join([caption(value), *(f':{local(label)}' for label in value.labels)])})"
    if isinstance(value, Relationship):
        return f"[:{local(value.type)}{' ' + as_json(dict(value.properties)) if value.properties else ''}]"
    return as_json(value) if isinstance(value, (list, dict)) else str(value)


def _error(error: GraphDBError) -> dict[str, Any]:
    return {
        "message": error.message,
        "line": error.line,
        "column": error.column,
        "hint": error.hint,
        "text": str(error),
    }

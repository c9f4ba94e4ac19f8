"""The shared data sets: where they are, and their triple-pattern queries in our language."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

SHARED = Path(os.environ.get("GRAPHDB_SHARED", Path(__file__).resolve().parents[1] / ".." / "shared"))


def shared(*parts: str) -> Path:
    """Return a path in the shared folder; skip the test where it is not there."""
    import pytest  # benchmarks do without

    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path} is not here; set GRAPHDB_SHARED to the folder with the shared data sets")
    return path


def queries(name: str) -> list[dict[str, Any]]:
    """Return the queries of a data set; none where it is not there, so that collecting tests works anywhere."""
    path = SHARED / "data" / name / "queries.json"
    return json.loads(path.read_text())["queries"] if path.exists() else []


def pattern_query(query: dict[str, Any], returns: str = "count(*)") -> str:
    """Return a triple-pattern query as a MATCH under homomorphism."""
    if "query" in query:
        return str(query["query"])
    edges = ", ".join(f"{_end(s)}-{_edge(p)}->{_end(o)}" for s, p, o in query["patterns"])
    return f"MATCH REPEATABLE ELEMENTS {edges} RETURN {returns}"


def _end(term: str) -> str:
    return f"({term[1:]})" if term.startswith("?") else f"({term})"


def _edge(term: str) -> str:
    return f"[{term[1:]}]" if term.startswith("?") else f"[:{term}]"

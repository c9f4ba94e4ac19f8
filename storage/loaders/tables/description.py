"""Descriptions of tables: what one is read from and how, for Python, statements, and mapping files.

A mapping file lists the tables of a graph, in YAML or JSON::

    delimiter: "|"                    # what holds for all tables, unless one says otherwise
    quote: ""
    tables:
      - file: person.csv              # relative to the mapping file; wildcards are expanded
        label: Person
        columns: {id: "id:ID(Person){long}", joined: "joined:datetime{epoch_ms}"}
      - file: knows.csv
        type: KNOWS
        columns: [":START_ID(Person)", ":END_ID(Person)", "since:int"]
      - sql: SELECT id AS ":ID(City)", name FROM city
        label: City
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from graphdb.common.errors import LoadError, nearest
from graphdb.storage.loaders.tables.headers import Dialect, Mapping

_DIALECT = tuple(field.name for field in fields(Dialect))


@dataclass(frozen=True, slots=True)
class Table:
    """One or more tables that are loaded in one way.

    Parameters
    ----------
    data
        What ``Database.load`` takes: a path, an open file, a frame, a result.
    sql
        Instead of ``data``, a query of DuckDB's: its rows are the table.
    columns
        Headers for its columns: by name (``{"person": ":ID"}``), or one for each, by position (None: its own).
    label, type
        The label of all vertices (``"Post:Message"`` are two, and so is a list), or of all edges.
    format
        ``"csv"``, ``"parquet"`` and so on, where neither the name nor the content tells.
    delimiter, quote, null, header, list_delimiter
        How a text is written: see :class:`~graphdb.storage.loaders.tables.headers.Dialect`.

    Raises
    ------
    LoadError
        It has neither data nor a query, or both, or options that are none.
    """

    data: Any = None
    sql: str | None = None
    columns: MappingABC[str, str] | Sequence[str | None] | None = None
    label: str | Sequence[str] | None = None
    type: str | None = None
    format: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    null: str | None = None
    header: bool | None = None
    list_delimiter: str | None = None

    def __post_init__(self) -> None:
        """Refuse what is no table."""
        if (self.data is None) == (self.sql is None):
            raise LoadError(
                "a table is read from data, or from a query", hint="Table('a.csv'), or Table(sql='SELECT …')"
            )
        self.mapping()

    def mapping(self) -> Mapping:
        """Return what its columns are, and how its text is written."""
        given = {name: getattr(self, name) for name in _DIALECT if getattr(self, name) is not None}
        columns = {} if self.columns is None else self.columns
        return Mapping(columns, self.label, self.type, dialect=Dialect(**given))


_SHARED = ("format", *_DIALECT)
_OF_TABLE = ("file", "sql", "columns", "label", "type", *_SHARED)


def read_mapping(path: str | os.PathLike[str]) -> list[Table]:
    """Return the tables that a mapping file lists.

    Raises
    ------
    LoadError
        It cannot be read, or something in it is not understood; with the place.
    """
    name = os.fspath(path)
    try:
        text = Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LoadError(f"cannot read '{name}': {getattr(error, 'strerror', None) or error}") from None
    found = _parsed(text, name)
    if not isinstance(found, dict) or not isinstance(found.get("tables"), list):
        raise LoadError("a mapping has a list of tables", source=name, hint='{"tables": [{"file": "person.csv", …}]}')
    _check(found, ("tables", *_SHARED), "the mapping", name)
    shared = {key: found[key] for key in _SHARED if key in found}
    return [
        _table(entry, shared, f"table {number} of {len(found['tables'])}", Path(name))
        for number, entry in enumerate(found["tables"], 1)
    ]


def _parsed(text: str, name: str) -> Any:
    """What a file says, in JSON or, where PyYAML is installed, in YAML."""
    if name.lower().endswith(".json") or text.lstrip()[:1] == "{":
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise LoadError(f"this is no JSON: {error.msg}", source=name, text=text, position=error.pos) from None
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        raise LoadError(
            f"YAML needs PyYAML, which is not installed: '{name}'", hint="pip install pyyaml, or write it as JSON"
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        said = getattr(error, "problem", None) or str(error)
        raise LoadError(
            f"this is no YAML: {said}", source=name, text=text, position=mark.index if mark else None
        ) from None


def _table(entry: Any, shared: dict[str, Any], which: str, path: Path) -> Table:
    """Return the table of an entry."""
    if not isinstance(entry, dict):
        raise LoadError(f"{which} is {entry!r}", source=str(path), hint='a table has keys: {"file": "person.csv", …}')
    _check(entry, _OF_TABLE, which, str(path))
    given = {**shared, **entry}
    file = given.pop("file", None)
    if (file is None) == ("sql" not in given):
        raise LoadError(f"{which} has neither a file nor sql, or both", source=str(path), hint="file: person.csv")
    if file is not None and not isinstance(file, str):
        raise LoadError(f"{which} has the file {file!r}", source=str(path), hint="it is a path")
    try:
        return Table(None if file is None else str(path.parent / os.path.expanduser(file)), **given)
    except LoadError as error:
        raise LoadError(f"{which}: {error.message}", source=str(path), hint=error.hint) from None


def _check(found: dict[Any, Any], known: Sequence[str], which: str, name: str) -> None:
    """Refuse keys that mean nothing."""
    for key in found:
        if key not in known:
            near = nearest(str(key), known)
            hint = f"did you mean '{near[0]}'?" if near else f"it can have {', '.join(known)}"
            raise LoadError(f"{which} has the unknown key '{key}'", source=name, hint=hint)

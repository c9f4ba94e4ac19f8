"""Tests' databases in memory have catalogs of their own, and share DuckDB's instances one after the other.

Opening an instance registers DuckDB's 3,300 functions, which takes longer than most tests do, thousands of times.  What
graphdb opens in memory, and what tests compare with, is a catalog by the usual name instead, fresh, in an instance that
was opened with the same settings and that nobody else uses meanwhile.  Tests that change an instance's settings, or look
at its memory or threads, are marked ``own_duckdb``; that no others change any is checked after each module.
"""

from __future__ import annotations

import os
import threading
import weakref
from dataclasses import dataclass, field
from typing import Any

import duckdb

_MOST = 8
"""Instances that stay open."""

_READER = {"memory_limit", "temp_directory"}
"""What is set where tables are read that are loaded: anew each time, for each has a folder of its own."""

_SHARED = ({"python_enable_replacements", "memory_limit"}, _READER, set[str]())
"""What is set, but for ``threads``, in instances that are shared: of graphs in memory of which nothing else is asked, of
readers of tables, and of what tests compare with.
"""

_ANEW = "ATTACH ':memory:' AS next; USE next; DETACH memory; ATTACH ':memory:' AS memory; USE memory; DETACH next"
"""SQL that puts a database in memory in the place of the one that there is."""

_connect = duckdb.connect


@dataclass(eq=False)
class _Instance:
    """An open instance, and the connection to it that is in use, if any is."""

    config: dict[str, Any]
    root: duckdb.DuckDBPyConnection = field(init=False)
    is_reader: bool = field(init=False)
    settings: list[Any] = field(init=False)
    anew: list[duckdb.Statement] = field(init=False)
    user: weakref.ref[duckdb.DuckDBPyConnection] | None = None
    was_used: bool = False
    """Whether there was a connection since settings were looked at."""

    def __post_init__(self) -> None:
        self.root = _connect(":memory:", config=self.config)
        self.is_reader = {*self.config} - {"threads"} == _READER
        self.settings = [] if self.is_reader else self._settings()
        self.anew = list(self.root.extract_statements(_ANEW))

    def is_free(self) -> bool:
        """Whether the connection that was made last is closed or gone."""
        user = self.user() if self.user is not None else None
        if user is None:
            return True
        try:
            user.query_progress()
        except duckdb.ConnectionException:
            return True
        return False

    def fits(self, config: dict[str, Any]) -> bool:
        """Whether it has these settings, or can be given those that it lacks."""
        lacks = {name for name, value in config.items() if self.config.get(name) != value}
        return self.config.keys() == config.keys() and (not lacks or (self.is_reader and lacks <= _READER))

    def connection(self, config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
        """Return a connection to a database in memory that nothing was done with."""
        for name in (name for name, value in config.items() if self.config[name] != value):
            value = config[name].replace("'", "''")
            self.root.execute(f"SET GLOBAL {name} = '{value}'")
        self.config = dict(config)
        if self.user is not None:
            for statement in self.anew:
                self.root.execute(statement)
        connection = self.root.cursor()
        self.user = weakref.ref(connection)
        self.was_used = True
        return connection

    def is_alone(self) -> bool:
        """Whether no database is attached besides."""
        found = self.root.execute("SELECT database_name FROM system.main.duckdb_databases()").fetchall()
        return {name for (name,) in found} == {"memory", "system", "temp"}

    def changed(self) -> list[Any]:
        """Return settings that are not what they were; none are looked at where nobody can have changed any."""
        if not self.was_used or self.is_reader:  # whose connections no test has
            return []
        self.was_used = not self.is_free()
        return [now for then, now in zip(self.settings, self._settings(), strict=True) if then != now]

    def _settings(self) -> list[Any]:
        derived = "'write_buffer_row_group_memory_limit'"  # of the memory limit, which export restores but for a rest
        sql = (
            f"SELECT name, value FROM duckdb_settings() WHERE scope = 'GLOBAL' AND name <> {derived} ORDER BY name ASC"
        )
        return self.root.execute(sql).fetchall()


class Instances:
    """The instances that tests share."""

    def __init__(self) -> None:
        self.are_shared = True
        """Whether the test that runs shares them."""
        self._open: list[_Instance] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

    def connect(self, database: Any = ":memory:", read_only: bool = False, config: Any = None) -> Any:
        """See ``duckdb.connect``."""
        config = dict(config or {})
        shared = database == ":memory:" and not read_only and {*config} - {"threads"} in _SHARED
        if not (shared and self.are_shared and self._process == os.getpid()):
            return _connect(database, read_only=read_only, config=config)
        with self._lock:
            free = next((each for each in self._open if each.fits(config) and each.is_free()), None)
            if free is not None:
                self._open.remove(free)
            if free is None or not free.is_alone():
                free = _Instance(config)
            self._open.append(free)
            del self._open[:-_MOST]
            try:
                return free.connection(config)
            except duckdb.Error:  # the folder for what it spills was used
                self._open[-1] = free = _Instance(config)
                return free.connection(config)

    def check(self) -> None:
        """Assert that tests left the settings of instances as they were."""
        with self._lock:
            changed = {instance: found for instance in self._open if (found := instance.changed())}
            self._open = [instance for instance in self._open if instance not in changed]
        assert not changed, f"settings of DuckDB's were left so: {changed.values()}; mark the test own_duckdb"

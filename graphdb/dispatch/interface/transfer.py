"""What goes into a database and comes out of it as a whole: files, tables, batches of triples, networks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from graphdb.common.arguments import path_of, text_of
from graphdb.common.duckdb.memory_limit import MoreMemory
from graphdb.common.errors import LoadError
from graphdb.common.foreign_errors import check_installed
from graphdb.common.progress import Progress, watching
from graphdb.common.stopping import seconds_of, stopping
from graphdb.dispatch.interface.contents import Contents
from graphdb.relational.session.turns import await_turn

if TYPE_CHECKING:
    import duckdb

    from graphdb.live.batches import Applied
    from graphdb.storage.loaders.load import LoadReport


class Transfer(Contents):
    """How a :class:`~graphdb.database.Database` loads, changes and exports its graph."""

    def load(
        self,
        data: Any = None,
        format: str | None = None,
        on_error: str = "stop",
        progress: Progress | bool | None = None,
        *,
        base: str | None = None,
        columns: Mapping[str, str] | Sequence[str | None] | None = None,
        label: str | Sequence[str] | None = None,
        type: str | None = None,
        delimiter: str | None = None,
        quote: str | None = None,
        null: str | None = None,
        header: bool | None = None,
        list_delimiter: str | None = None,
        mapping: str | os.PathLike[str] | None = None,
        timeout: float | None = None,
    ) -> LoadReport:
        """Load files and tables, in one transaction: all of it is written, or nothing.

        Parameters
        ----------
        data
            A path or several (wildcards are expanded, ``-`` is standard input); a file that is open as bytes, or an
            ``io.BytesIO``; a pandas, Polars or Arrow table, or whatever else is an Arrow stream; a NetworkX graph; a
            :class:`graphdb.Table`, which has options of its own; or a list of these.
        format
            ``"turtle"``, ``"csv"`` and so on, where neither the name nor the content of a file tells.
        on_error
            ``"stop"`` at the first malformed line, or ``"skip"`` such lines into the table ``load_errors``.
        progress
            How far it is, for this load: see :func:`graphdb.connect`; by default as for all statements of the database.
        base
            What relative IRIs are relative to where a file states nothing; by default the file's own place.
        columns
            Headers for columns of tables that are named otherwise: ``{"person": ":ID", "since": "since:int"}``, or one
            for each column, by position.
        label, type
            The label of all vertices of tables, beside those that a column gives (``"Post:Message"`` are two, and so is
            a list); the label of all edges of tables that have no such column.
        delimiter, quote, null, header, list_delimiter
            How delimited texts are written: what separates columns, what texts are in (``""`` for nothing), the text of
            a missing value, whether the first row has the names, and what separates values of a list and labels.
        mapping
            A file, in JSON or YAML, that lists tables with such options: all of it is one load.
        timeout
            Seconds after which the load is stopped, and nothing of it is written.

        Raises
        ------
        LoadError
            With file, line, column and the text; nothing of the load was written.
        QueryTimeout
            It took longer than its ``timeout``.
        """
        from graphdb.relational.session.bulk import load
        from graphdb.storage.loaders.sources import Options
        from graphdb.storage.loaders.tables.description import Table, read_mapping

        texts = {
            "delimiter": delimiter,
            "quote": quote,
            "null": null,
            "header": header,
            "list_delimiter": list_delimiter,
        }
        how = Table(data=(), columns=columns, label=label, type=type, **texts).mapping()  # type: ignore[arg-type]
        if mapping is not None:
            if data is not None or columns is not None or label is not None or type is not None:
                raise LoadError("a mapping says itself what is loaded, and how", hint="load(mapping='graph.json')")
            self._state.require_files()
            data = read_mapping(mapping)
        if format is not None:
            text_of(format, "a format")
        options = Options(format, on_error, base, how, self._state.spill, self._state.batch)
        with self._state.diagnosed(), self._state.hold():
            await_turn(self._state, seconds_of(timeout))
            return load(self._state, data, options, progress, seconds_of(timeout))

    def export(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        progress: Progress | bool | None = None,
        *,
        graphs: str | Sequence[str] | None = None,
        timeout: float | None = None,
    ) -> int:
        """Write the graph to a file; what was there is replaced once it is whole.  For results: SQL's ``COPY``.

        Parameters
        ----------
        path
            N-Triples (``.nt``), N-Quads (``.nq``), Turtle (``.ttl``), TriG (``.trig``), GraphML (``.graphml``), with
            ``.gz`` or ``.zst`` compressed; or a folder of Parquet tables (``.parquet``).  All load again as the
            same graph: ``load("graph.parquet/*")``.  ``-`` is standard output; pipes and devices are written to as
            they are, and a link stays one.
        format
            The format, where the name does not tell.
        progress
            How far it is: see :func:`graphdb.connect`; by default as for all statements of the database.
        graphs
            Which of the named graphs, by their IRIs (``"default"`` is the one without a name), or ``"union"``: all as
            one.  By default all, apart, in N-Quads, TriG and Parquet; the other formats hold one graph, so it has to be
            said where there are named ones.
        timeout
            Seconds after which the export is stopped; what was there before stays as it is.

        Returns
        -------
        How many statements (or rows, or vertices and edges) were written.

        Raises
        ------
        GraphDBError
            For a format that is none, a graph that is not there, and where in which graph triples are would be lost.
        StorageError
            Where it cannot be written there, or would be written over the database or a folder with other files.
        QueryTimeout
            It took longer than its ``timeout``.
        """
        from graphdb.storage.writers.export import export

        state = self._state
        with self._reading(timeout) as raw:
            path_of(path, "where to export to")
            if format is not None:
                text_of(format, "a format")
            state.require_files()
            state.read_catalog()
            prefixes = self.prefixes()
            idle = state.budget.bindings + max(state.budget.graph - state.snapshot().graph.cached_bytes, 0)
            shown_by = watching(state.progress if progress is None else progress)
            with shown_by as shown, MoreMemory(state.connection, idle):  # which no match needs meanwhile
                return export(raw, path, format, prefixes, graphs, shown, state.spill, idle)

    def to_networkx(self, *, graphs: str | Sequence[str] | None = None, timeout: float | None = None) -> Any:
        """Return the graph as a ``networkx.MultiDiGraph``: see :func:`graphdb.storage.writers.networks.to_networkx`.

        It is one graph: where there are named ones, ``graphs`` has to say which, as for :meth:`export`.  It is stopped
        after ``timeout`` seconds.
        """
        check_installed("to_networkx", "networkx", "NetworkX")
        from graphdb.storage.writers.networks import to_networkx

        state = self._state
        with self._reading(timeout) as raw:
            state.read_catalog()
            return to_networkx(raw, self.prefixes(), lambda ids: state.version().terms(ids)(), graphs)

    @contextmanager
    def _reading(self, timeout: float | None) -> Iterator[duckdb.DuckDBPyConnection]:
        """Read our own tables, through what is yielded, for so many seconds at most."""
        state = self._state
        with (
            state.diagnosed(),
            state.hold(),
            stopping(seconds_of(timeout), state.cancelled),
            state.at_home(),
            state.connection.guard() as raw,
        ):
            yield raw

    def add(self, triples: Any, timeout: float | None = None) -> int:
        """Add triples; see :meth:`apply`, of which these are the additions.

        Returns
        -------
        How many distinct triples they are.
        """
        return self.apply(triples, timeout=timeout).additions

    def apply(
        self, additions: Any = None, deletions: Any = None, *, patch: Any = None, timeout: float | None = None
    ) -> Applied:
        """Apply a batch of triples or edges, in one transaction: deletions go first, then additions come.

        Parameters
        ----------
        additions, deletions
            An Arrow table, a data frame, or rows, of subject, predicate and object; or N-Triples, as a path, an open
            file, or bytes.  Terms are written as in N-Triples (``<iri>``, ``"text"``, ``_:name`` of a blank node that
            is there), as terms of rdflib and pyoxigraph, or bare: IRIs; a predicate's local name, or a name of ours, as
            CREATE has them; other texts, numbers, booleans, dates and times as objects.
        patch
            Lines of an RDF patch (``A <s> <p> <o> .``, ``D …``, ``TX``, ``TC``), as a path, an open file, or text: what
            counts of a triple is its last line.
        timeout
            Seconds after which it is stopped, and nothing of it is written.

        Returns
        -------
        How many distinct triples were to come and to go.

        Raises
        ------
        LoadError
            Something is no triple; nothing was changed.
        """
        from graphdb.live.batches import apply

        state = self._state
        with state.diagnosed(), state.hold():
            await_turn(state, seconds_of(timeout))
            with stopping(seconds_of(timeout), state.cancelled), state.at_home():
                state.refresh()
                state.versions.before_statement()
                return apply(state, additions, deletions, patch)

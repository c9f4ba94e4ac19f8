"""``db.mine``: MINE's statements as methods, and the graph that they mine for mining of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from graphdb.common.arguments import brief
from graphdb.common.errors import ParameterError

if TYPE_CHECKING:
    from graphdb.mining.graph import MiningGraph
    from graphdb.mining.limits import Limits
    from graphdb.results.result import Result

Labels: TypeAlias = "str | Sequence[str] | None"


class Miner:
    """Mining of a database, from Python.

    Each method takes, beside its own:

    edges, vertices
        Names of edge labels and of vertex labels that the mined graph has: one, or several; by default all.  A name is
        bare, prefixed (``"foaf:knows"``), or an IRI in angle brackets.
    source, parameters
        Instead of these, a query that returns an edge, or two vertices, in each row: ``"MATCH (a)-[e]->(b) … RETURN
        e"``; and values for ``$name`` in that query.
    timeout
        Seconds after which mining is stopped with :class:`~graphdb.common.errors.QueryTimeout`.

    and raises :class:`~graphdb.common.errors.GraphDBError` as the statements do.
    """

    def __init__(
        self,
        query: Callable[[str, Mapping[str, object], float | None], Result],
        graph: Callable[[str, Mapping[str, object], bool], MiningGraph],
        limits: Callable[[], Limits],
    ) -> None:
        self._query, self._graph, self._limits = query, graph, limits

    def cliques(
        self,
        size: int | tuple[int, int] = (3, 8),
        *,
        maximal: bool = False,
        edges: Labels = None,
        vertices: Labels = None,
        source: str | None = None,
        parameters: Mapping[str, object] | None = None,
        timeout: float | None = None,
    ) -> Result:
        """Count cliques of one size, or of ``(least, most)``: columns ``size``, ``cliques`` and ``example``."""
        if not isinstance(size, int) and not (isinstance(size, (tuple, list)) and len(size) == 2):
            raise ParameterError(f"a size is a number, or the least and the most, found {brief(size)}")
        least, most = (size, size) if isinstance(size, int) else size
        text = f"MINE CLIQUES OF SIZE $_least..$_most{' MAXIMAL' if maximal else ''}{_scope(edges, vertices, source)}"
        return self._query(text, {**(parameters or {}), "_least": least, "_most": most}, timeout)

    def motifs(
        self,
        size: int,
        *,
        directed: bool = False,
        edges: Labels = None,
        vertices: Labels = None,
        source: str | None = None,
        parameters: Mapping[str, object] | None = None,
        timeout: float | None = None,
    ) -> Result:
        """Count the induced patterns of 3 to 5 vertices: columns ``motif``, ``count``, ``example`` and ``drawing``."""
        text = f"MINE MOTIFS OF SIZE $_size{' DIRECTED' if directed else ''}{_scope(edges, vertices, source)}"
        return self._query(text, {**(parameters or {}), "_size": size}, timeout)

    def frequent(
        self,
        support: int,
        max_edges: int,
        *,
        directed: bool = True,
        matches: bool = False,
        edges: Labels = None,
        vertices: Labels = None,
        source: str | None = None,
        parameters: Mapping[str, object] | None = None,
        timeout: float | None = None,
    ) -> Result:
        """Find the patterns of up to ``max_edges`` edges with a minimum image support of at least ``support``.

        Columns are ``pattern``, ``edges``, ``support``, with ``matches`` the number of these too, and ``example``.
        """
        text = (
            f"MINE FREQUENT PATTERNS{'' if directed else ' UNDIRECTED'} WITH SUPPORT >= $_support UP TO $_edges EDGES"
            f"{' COUNTING MATCHES' if matches else ''}{_scope(edges, vertices, source)}"
        )
        return self._query(text, {**(parameters or {}), "_support": support, "_edges": max_edges}, timeout)

    def graph(
        self,
        *,
        directed: bool = False,
        edges: Labels = None,
        vertices: Labels = None,
        source: str | None = None,
        parameters: Mapping[str, object] | None = None,
    ) -> MiningGraph:
        """Return the graph that statements would mine, for the primitives of :mod:`graphdb.mining`.

        Its ``ids``, ``edge_labels`` and ``vertex_labels`` are ids of the database's: ``id(v)`` of vertices.
        """
        return self._graph(f"MINE CLIQUES OF SIZE 3{_scope(edges, vertices, source)}", parameters or {}, directed)

    def limits(self) -> Limits:
        """Return the limits that statements mine within, for the primitives of :mod:`graphdb.mining`.

        With them the primitives take the database's threads and memory, and its device where that is expected to be
        sooner.
        """
        return self._limits()


def _scope(edges: Labels, vertices: Labels, source: str | None) -> str:
    if source is None:
        return _named("OVER", edges) + _named("AMONG", vertices)
    if edges is not None or vertices is not None:
        raise ParameterError("a query says itself which edges are mined", hint="leave out edges and vertices")
    return f" FROM ({source}\n)"


def _named(word: str, labels: Labels) -> str:
    names = [labels] if isinstance(labels, str) else list(labels or ())
    return f" {word} :{'|'.join(map(_quoted, names))}" if names else ""


def _quoted(name: str) -> str:
    """A name as a statement has it, whatever its characters."""
    if name.startswith("<") and name.endswith(">") and not any(sign in name for sign in ' "{}|\\^`\n'):
        return name
    parts = name.split(":", 1)
    return ":".join("`" + part.replace("`", "``") + "`" for part in parts)

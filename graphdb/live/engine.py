"""What continuous queries need of who prepares and runs pattern queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from graphdb.grammar import syntax as ast
from graphdb.relational.query import Prepared

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from graphdb.common import arrow
    from graphdb.gpu.code.launch import Device
    from graphdb.relational.paths.run import PathRun
    from graphdb.relational.program import Program
    from graphdb.relational.snapshot import Snapshot

    Ids = NDArray[np.int64]

Query = ast.Query | ast.Composite


class Engine(Protocol):
    """Prepares and runs pattern queries."""

    def prepared(
        self, query: Query, text: str, snapshot: Snapshot | None = None, *, whole: bool = True
    ) -> AbstractContextManager[tuple[PathRun, Prepared | Program]]:
        """Prepare a query over the present state or another one, as a whole or as it is asked :meth:`among` some.

        Names that nothing in the present state has match nothing; those of another one are as it has them.
        """

    def projected(
        self, query: ast.Query, text: str, snapshot: Snapshot | None = None, known: Prepared | Program | None = None
    ) -> AbstractContextManager[tuple[PathRun, Prepared | None]]:
        """Prepare what follows the matches of a query over one state; None where its rows are not matches.

        ``known`` is what was prepared so of it for such states, if it was.
        """

    def among(
        self,
        query: Query,
        text: str,
        vertices: Mapping[str, Ids],
        general: Prepared | Program | None,
        snapshot: Snapshot | None,
    ) -> AbstractContextManager[tuple[PathRun, Prepared | Program, Prepared | Program]]:
        """Plan a query for some of its vertices, by the names that they have, over the present state or another one.

        ``general`` is what was prepared of it for such states, if it was; that is yielded last.  It searches for paths
        of any length from these vertices, where a whole query may take the closure of a label.
        """

    def into(self, table: str, run: PathRun, prepared: Prepared | Program) -> None:
        """Run a query and make a temporary table of its rows, as SQL sees them."""

    def rows(self, run: PathRun, prepared: Prepared | Program) -> arrow.Table:
        """Run a query over the state for which it was prepared, and return its rows as SQL sees them."""

    def device(self) -> Callable[[], Device | None] | None:
        """Return what opens the database's CUDA device; None where it has none."""

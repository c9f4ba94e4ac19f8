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
        self, query: Query, text: str, snapshot: Snapshot | None = None
    ) -> AbstractContextManager[tuple[PathRun, Prepared | Program]]:
        """Prepare a query over the present state of the database, or another one."""

    def projected(
        self, query: ast.Query, text: str, snapshot: Snapshot | None = None
    ) -> AbstractContextManager[tuple[PathRun, Prepared | None]]:
        """Prepare what follows the matches of a query over one state; None where its rows are not matches."""

    def among(
        self,
        query: Query,
        text: str,
        vertices: Mapping[str, Ids],
        general: Prepared | Program | None,
        snapshot: Snapshot | None = None,
    ) -> AbstractContextManager[tuple[PathRun, Prepared | Program]]:
        """Plan a query over one state for some of its vertices, as it was prepared before; anew where it was not."""

    def general(self, run: PathRun, prepared: Prepared | Program) -> Prepared | Program | None:
        """Return what was prepared without what depends on the data, for other states; None where all of it does."""

    def into(self, table: str, run: PathRun, prepared: Prepared | Program) -> None:
        """Run a query and make a temporary table of its rows, as SQL sees them."""

    def rows(self, run: PathRun, prepared: Prepared | Program) -> arrow.Table:
        """Run a query over the state for which it was prepared, and return its rows as SQL sees them."""

    def device(self) -> Callable[[], Device | None] | None:
        """Return what opens the database's CUDA device; None where it has none."""

"""Transactions of one connection to DuckDB: who owns the one that is open, and whether it can still be committed.

Every BEGIN, COMMIT and ROLLBACK goes through :class:`Transactions`, the user's as well as the engine's.  DuckDB does
not say whether a transaction is open, so what is about to change is noted before DuckDB is asked to change it, and the
note is taken away after memory agrees with the file again.  An interrupt may therefore come between any two steps: a
note that is left over is found before the next statement, and :meth:`Transactions.recover` rolls back what was under
way.

A transaction of the user's fails as a whole, as PostgreSQL's do: once a statement within it failed after it had begun
to write, or DuckDB aborted it, every statement but ROLLBACK is refused, COMMIT included.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from graphdb.common.duckdb.parsed import parsed
from graphdb.common.errors import ExecutionError, GraphDBError

if TYPE_CHECKING:
    from types import TracebackType

    import duckdb

_NOT_OPEN = "no transaction is active"
"""What DuckDB says of a ROLLBACK outside of a transaction."""

TOUCH = "SELECT txid_current()"
"""The number of the transaction that is open.  The first such statement takes the snapshot of the file: DuckDB looks
the function up there, which it would not if it were named in full."""

_BEGIN, _COMMIT = "BEGIN TRANSACTION", "COMMIT"

ABORTED = "Current transaction is aborted"
"""What DuckDB says of every statement within a transaction that an error has aborted."""

_ENDED_BY = "COMMIT or ROLLBACK"


def failed_transaction() -> ExecutionError:
    """Return the error of every statement within a failed transaction."""
    return ExecutionError(
        "the transaction has failed: a statement within it did, and nothing of it can be committed",
        hint="ROLLBACK ends it; then run it again",
    )


class Transactions:
    """Owner of the transactions of one connection.

    Parameters
    ----------
    connection
        DuckDB's connection; nobody else may begin or end a transaction on it.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self.by_user = False
        """Whether a transaction is open that the user began."""
        self.failed = False
        """Whether the user's transaction can only be rolled back."""
        self.on_rollback: Callable[[], None] = _nothing
        """Drops what memory holds of names and data: called before a transaction counts as rolled back or failed."""
        self.before_commit: Callable[[], None] = _nothing
        """Writes what belongs to the transaction and follows from the rest of it: called just before it is committed;
        an error there rolls it back."""
        self.after_commit: Callable[[], None] = _nothing
        """Called once a transaction is committed."""
        self.on_end: Callable[[], None] = _nothing
        """Called when a transaction of the user's has ended, before it counts as ended."""
        self.workers: list[Callable[[], None]] = []
        """Stop, and wait for, threads that work in the transaction: called before it is rolled back, perhaps twice."""
        self.leftovers: list[Callable[[], object]] = []
        """Undo what is under way besides the transaction, the last first; each can be called twice."""
        self.on_recover: Callable[[], None] = _nothing
        """Called before something is rolled back, which must not be interrupted as what went before was."""
        self.writing = False
        """Whether the engine's own transaction, or a part of the user's, is under way.  Before a statement that is not
        part of another, this and the next one mean that it was interrupted."""
        self._touched = False
        """Whether the part of the user's transaction that is under way has begun to write."""
        self.changing = False
        """Whether a BEGIN, COMMIT or ROLLBACK of the user's is under way."""

    @property
    def inside(self) -> bool:
        """Whether a transaction of more than one statement is open."""
        return self.by_user or self.writing

    def _run(self, sql: str) -> None:
        """Run one of the two statements that come with every change, parsed once."""
        self._connection.execute(parsed(self._connection, sql))

    def undo_leftovers(self) -> None:
        """Undo what an interrupted statement left half done, before another one begins."""
        import duckdb

        if self.writing or self.changing:
            self.recover()
        while self.leftovers:
            undo = self.leftovers[-1]
            with suppress(duckdb.Error, GraphDBError):
                undo()
            if self.leftovers and self.leftovers[-1] == undo:  # some take themselves away
                self.leftovers.pop()

    def atomic(self) -> Atomic:
        """Return a context manager: what is done inside is written as a whole or not at all.

        Inside the user's transaction it is a part of that; inside another of the engine's, a part of the outer one.
        """
        return Atomic(self)

    def touch(self) -> None:
        """Note that what is under way begins to write: from now on its failure is the transaction's."""
        self._touched = True

    def check(self) -> None:
        """Raise `ExecutionError` if the user's transaction has failed."""
        if self.failed:
            raise failed_transaction()

    def fail(self) -> None:
        """Fail the user's transaction: memory must agree with what a ROLLBACK will leave."""
        self.failed = True
        self.on_rollback()

    def look(self) -> None:
        """Fail the user's transaction if DuckDB has aborted it; called after a statement failed."""
        if self.by_user and not self.failed and self.is_aborted():
            self.fail()

    def recover(self) -> None:
        """End what an interrupt has left half done: the engine's transaction is rolled back, a user's fails.

        It may itself be interrupted, and called again.
        """
        import duckdb

        self.on_recover()
        while self.workers:
            self.workers[-1]()
            self.workers.pop()
        if self.changing:
            inside = self._is_inside()
            if inside and not self.by_user:  # BEGIN was interrupted
                self._connection.rollback()
                inside = False
            if not inside:
                self.on_end()
                self.failed = False
            self.by_user = inside
        elif self.writing and not self.by_user:
            try:
                self._connection.rollback()
            except duckdb.TransactionException as error:
                if _NOT_OPEN not in str(error):  # it had not begun, or had ended
                    raise
        if not self.by_user:
            self.on_rollback()
        elif self._touched or self.changing:
            self.fail()
        else:
            self.look()
        self.writing = self.changing = False

    # --- the user's

    def begin(self, run: Callable[[], object]) -> None:
        """Begin the user's transaction: ``run`` executes the statement."""
        self.check()
        if self.by_user:
            raise ExecutionError("a transaction is open already", hint=f"{_ENDED_BY} ends it")
        self.changing = True
        try:
            run()
            # DuckDB's snapshot of the file is taken with the first read: it is the one of this moment.
            self._connection.execute(TOUCH).fetchall()
        except BaseException:
            self.recover()
            raise
        self.by_user, self.failed = True, False
        self.changing = False

    def commit(self, run: Callable[[], object]) -> None:
        """Commit the user's transaction; a failed one stays open, and is an error.

        Raises
        ------
        ExecutionError
            The transaction has failed, or none is open.
        """
        if not self.by_user:
            raise ExecutionError("no transaction is open", hint="BEGIN begins one")
        self.look()
        self.check()
        self.before_commit()
        self._end(run)

    def rollback(self, run: Callable[[], object]) -> None:
        """Roll the user's transaction back."""
        if not self.by_user:
            raise ExecutionError("no transaction is open", hint="BEGIN begins one")
        self._end(run, rolled_back=True)

    def _end(self, run: Callable[[], object], *, rolled_back: bool = False) -> None:
        self.changing = True
        try:
            run()
            if rolled_back:
                self.on_rollback()
            self.on_end()
        except BaseException:
            self.recover()
            raise
        self.by_user = self.failed = False
        self.changing = False
        if not rolled_back:
            self.after_commit()

    # --- what DuckDB does not say

    def is_aborted(self) -> bool:
        """Whether an error has aborted the transaction that is open: DuckDB refuses whatever comes in it."""
        import duckdb

        try:
            self._connection.execute("SELECT 1").fetchall()
        except duckdb.TransactionException:
            return True
        except duckdb.Error:
            return False
        return False

    def _is_inside(self) -> bool:
        """Whether DuckDB is in a transaction: outside of one, each statement has another number."""
        import duckdb

        try:
            [first], [second] = (self._connection.execute(TOUCH).fetchall() for _ in range(2))
        except duckdb.TransactionException:  # it is open, and aborted
            return True
        return bool(first == second)


class Atomic:
    """One piece of writing; see :meth:`Transactions.atomic`.

    A class of its own, not a generator: nothing is suspended in it that an interrupt could leave behind.
    """

    __slots__ = ("_outermost", "_transactions")

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._outermost = False

    def __enter__(self) -> None:
        found = self._transactions
        found.check()
        if found.writing:
            return
        found._touched = False
        self._outermost = found.writing = True
        if not found.by_user:
            try:
                found._run(_BEGIN)
            except BaseException:
                found.recover()
                raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self._outermost:
            return
        found = self._transactions
        if kind is not None:
            found.recover()
            return
        if not found.by_user:
            try:
                found.before_commit()
                found._run(_COMMIT)
            except BaseException:
                found.recover()
                raise
        found.writing = False
        if not found.by_user:
            found.after_commit()


def _nothing() -> None:
    """There is nothing to bring up to date."""

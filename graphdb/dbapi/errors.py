"""PEP 249's exceptions, and which of graphdb's errors is which of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from graphdb.common import errors


class Warning(Exception):
    """Something important that is no error; nothing raises it."""


class Error(Exception):
    """What all errors of this module are; ``__cause__`` is graphdb's own, with place and hint."""


class InterfaceError(Error):
    """The module is used wrongly: a cursor that is closed, for instance."""


class DatabaseError(Error):
    """The database says no."""


class DataError(DatabaseError):
    """A value is out of range or of a type that does not fit."""


class OperationalError(DatabaseError):
    """Files, memory, time, access: what the statement is not to blame for."""


class IntegrityError(DatabaseError):
    """A constraint would be broken."""


class InternalError(DatabaseError):
    """The database is in a state that it cannot go on from: a failed transaction."""


class ProgrammingError(DatabaseError):
    """The statement is wrong: its syntax, a name, the number of parameters."""


class NotSupportedError(DatabaseError):
    """The statement asks for what there is not."""


_KINDS: tuple[tuple[type[errors.GraphDBError], type[DatabaseError]], ...] = (
    (errors.NotSupportedError, NotSupportedError),
    (errors.TypeMismatchError, DataError),
    (errors.ParseError, ProgrammingError),
    (errors.BindError, ProgrammingError),
    (errors.ParameterError, ProgrammingError),
    (errors.QueryTimeout, OperationalError),
    (errors.QueryInterrupted, OperationalError),
    (errors.AccessError, OperationalError),
    (errors.MemoryLimitError, OperationalError),
    (errors.DeviceError, OperationalError),
    (errors.StorageError, OperationalError),
    (errors.LoadError, OperationalError),
)

_OF_SQL = (
    ("Constraint Error", IntegrityError),
    ("Conversion Error", DataError),
    ("Out of Range Error", DataError),
    ("Catalog Error", ProgrammingError),
    ("Binder Error", ProgrammingError),
    ("Parser Error", ProgrammingError),
    ("TransactionContext Error", InternalError),
)
"""How DuckDB begins what it says."""


@contextmanager
def translated() -> Iterator[None]:
    """Raise graphdb's errors as PEP 249's, with the same text."""
    try:
        yield
    except errors.GraphDBError as error:
        raise _kind(error)(str(error)) from error


def _kind(error: errors.GraphDBError) -> type[DatabaseError]:
    for ours, kind in _KINDS:
        if isinstance(error, ours):
            return kind
    text = str(error)
    return next((kind for begin, kind in _OF_SQL if text.startswith(begin)), DatabaseError)

"""Errors of libraries and of the system as ours: each leaves the package as a :class:`GraphDBError`.

What is converted is what a user's input or machine can bring about; a defect of ours (`KeyError`, `AssertionError` …)
stays what it is, and so does what a function of the caller's raises.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import ParamSpec, TypeVar

from graphdb.common.arrow import ArrowError
from graphdb.common.duckdb.errors import failure, is_signal
from graphdb.common.errors import (
    ExecutionError,
    GraphDBError,
    MemoryLimitError,
    ParameterError,
    ParseError,
    StorageError,
)
from graphdb.common.progress import CALLERS_OWN

P = ParamSpec("P")
T = TypeVar("T")


def own_error(error: Exception, text: str | None = None) -> GraphDBError | None:
    """Return an error as one of ours, which names the place in a statement's text where it can; None for a defect.

    Raises `KeyboardInterrupt` for what is one.
    """
    if isinstance(error, GraphDBError):
        return error
    if hasattr(error, CALLERS_OWN):
        return None
    if is_signal(error) or _hides_signal(error):
        raise KeyboardInterrupt from None
    if isinstance(error, UnicodeError):
        return _unicode(error, text)
    if isinstance(error, RecursionError):
        return ExecutionError("the statement or a value is nested too deeply", hint="nest it less, or in several steps")
    if isinstance(error, MemoryError):
        return MemoryLimitError("there is not enough memory", hint="ask for less with LIMIT, or close other programs")
    if isinstance(error, OverflowError) or (isinstance(error, ValueError) and "integer string" in str(error)):
        return ParameterError("a number is out of range", hint="integers have 64 bits: -2^63 to 2^63 - 1")
    if isinstance(error, ValueError) and ("null byte" in str(error) or "null character" in str(error)):  # from 3.13 on
        return StorageError("a path has a NUL character")
    if isinstance(error, OSError):
        place = f"'{error.filename}': " if error.filename is not None else ""
        return StorageError(f"{place}{error.strerror or error}")
    duckdb, pyarrow = sys.modules.get("duckdb"), sys.modules.get("pyarrow")
    if duckdb is not None and isinstance(error, duckdb.Error):
        return failure(error, ours=True)
    if isinstance(error, ArrowError) or (pyarrow is not None and isinstance(error, pyarrow.ArrowException)):
        return ExecutionError(str(error).splitlines()[0])
    if type(error) is RuntimeError:
        return ExecutionError(str(error))
    return None


def _hides_signal(error: BaseException | None) -> bool:
    """Whether an error stands for Ctrl-C: NumPy makes others of what is raised while it looks for a common type."""
    while error is not None:
        error = error.__cause__ or error.__context__
        if isinstance(error, KeyboardInterrupt):
            return True
    return False


def _unicode(error: UnicodeError, text: str | None) -> GraphDBError:
    what = "a text has a lone surrogate, which is no character"
    if isinstance(error, UnicodeEncodeError):
        at = text.find(error.object[error.start]) if text is not None else -1
        if at >= 0:
            return ParseError(what, text=text, position=at)
        return ParameterError(what, hint="encode the text with errors='surrogatepass', or replace it")
    return ParameterError(str(error))


def check_installed(method: str, package: str, called: str) -> None:
    """Raise :class:`ExecutionError` if a library is not there that a method needs."""
    if find_spec(package) is None:
        raise ExecutionError(f"{method}() needs {called}, which is not installed", hint=f"pip install {package}")


def own_errors(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate what users call: errors of others leave it as ours."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except GraphDBError:
            raise
        except Exception as error:
            own = own_error(error)
            if own is None:
                raise
            raise own from error

    return called

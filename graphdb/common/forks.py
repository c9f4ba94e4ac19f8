"""Forks are safe beside imports and compilation: a fork waits until no other thread holds one of their locks.

The child of a fork has one thread, and what the others had locked stays locked in it for ever: the locks of modules
that were being imported (Python itself frees only its global one), and those within LLVM.  Our modules import and
compile what they need when they first need it, so a fork beside a query would meet such locks.
"""

from __future__ import annotations

import _imp
import importlib
import os
import threading
import time
from collections.abc import Callable
from typing import Any

_LONGEST = 20.0
"""Seconds that a fork waits at most: the thread that forks may itself hold what another one waits for."""

_sources: list[Callable[[], Any]] = []
"""Functions that return a lock that no thread may hold during a fork, or None where there is none yet."""


class _ThreadLocks(threading.local):
    """What releases the locks that a thread holds during a fork of its own."""

    def __init__(self) -> None:
        self.releases: list[Callable[[], None]] = []


_thread_locks = _ThreadLocks()


def lock_at_fork(source: Callable[[], Any]) -> None:
    """Have forks wait for a lock: ``source`` returns it, or None where there is none yet."""
    _sources.append(source)


def _importing() -> bool:
    """Tell whether another thread is importing a module, or is about to; the caller holds the import lock."""
    own = threading.get_ident()
    modules = [reference() for reference in list(importlib._bootstrap._module_locks.values())]  # type: ignore[attr-defined]
    return any(module is not None and module.owner != own for module in modules)


def _before() -> None:
    end = time.monotonic() + _LONGEST
    while True:
        for source in _sources:
            lock = source()
            if lock is not None and lock.acquire(timeout=max(end - time.monotonic(), 0)):
                _thread_locks.releases.append(lock.release)
        _imp.acquire_lock()  # without it nobody begins to import
        _thread_locks.releases.append(_imp.release_lock)
        if not _importing() or time.monotonic() > end:
            return
        _after()  # what is being imported may wait for one of them
        time.sleep(0.001)


def _after() -> None:
    while _thread_locks.releases:
        _thread_locks.releases.pop()()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)

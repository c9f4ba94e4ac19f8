"""A Ctrl-C while a library is imported waits until it is: half imported, it cannot be imported in this process again.

Our modules import what they need when they first need it, and some libraries can be initialized only once in a process
(NumPy, those of Cython and Rust).  Importing takes some tenths of a second, so the interrupt still comes in time; once
a module is imported, nothing here runs.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType

LIBRARIES = frozenset(
    ["cupy", "duckdb", "graphdb", "lark", "llvmlite", "nanoarrow", "numba", "numpy", "pandas", "pyarrow", "pyoxigraph",
     "re2", "sqlalchemy"]
)  # fmt: skip
"""Packages whose modules are imported as a whole."""


class _Deferred:
    """SIGINT of the main thread, while it imports: noted, and handled at the end by who would have handled it."""

    def __init__(self) -> None:
        self._depth = 0
        self._noted: list[int] = []
        self._handler: object = None

    def begin(self) -> None:
        """Defer it, if it is an interrupt of Python's and not deferred yet."""
        if self._depth == 0:
            handler = signal.getsignal(signal.SIGINT)
            if not callable(handler):  # ignored, or not Python's
                return
            self._handler = handler
            signal.signal(signal.SIGINT, self._note)
        self._depth += 1

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted.append(number)

    def end(self) -> None:
        """Handle what was deferred, at the end of the outermost import."""
        if self._depth == 0:
            return
        self._depth -= 1
        if self._depth:
            return
        handler, self._handler = self._handler, None
        noted, self._noted = self._noted, []
        if signal.getsignal(signal.SIGINT) == self._note:
            signal.signal(signal.SIGINT, handler)  # type: ignore[arg-type]
        if noted:
            signal.raise_signal(signal.SIGINT)


_deferred = _Deferred()


class _Spec(ModuleSpec):
    """A module's spec that sees when importing it begins and ends.

    ``importlib`` sets ``_initializing`` around all that could leave a module half imported: at the end the module is in
    ``sys.modules``, or gone from there.
    """

    @property
    def _initializing(self) -> bool:
        return False

    @_initializing.setter
    def _initializing(self, begins: bool) -> None:
        if begins:
            if threading.current_thread() is threading.main_thread():
                _deferred.begin()
            self.__class__ = _Importing


class _Importing(_Spec):
    """The spec of a module that is being imported; at the end it is an ordinary one, which costs imports nothing."""

    @property
    def _initializing(self) -> bool:
        return True

    @_initializing.setter
    def _initializing(self, begins: bool) -> None:
        if begins:
            return
        self.__class__ = ModuleSpec  # type: ignore[assignment]
        self._initializing = False
        parent, _, child = self.name.rpartition(".")
        if parent in sys.modules and self.name in sys.modules:  # as importlib does after this
            setattr(sys.modules[parent], child, sys.modules[self.name])
        if threading.current_thread() is threading.main_thread():
            _deferred.end()


class _Finder:
    """Finds the modules of :data:`LIBRARIES` as the other finders do."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name.partition(".")[0] not in LIBRARIES:
            return None
        for finder in sys.meta_path:
            if finder is not _Finder:
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    if type(spec) is ModuleSpec:
                        spec.__class__ = _Spec
                    return spec
        return None


def install() -> None:
    """Have the libraries imported so, from now on."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)

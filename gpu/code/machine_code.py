"""Where the code of a module comes from: the wheel's archive, the user's cache, or the compiler in a thread.

A compilation ends with the process, and goes on when nobody waits for it any more: who asks again has its result.  What
was compiled is cached on disk as the CPU's kernels are (:mod:`graphdb.storage.compile.cache`), for one user alone and
looked at before use; on disk and in memory, the least recently used modules go first.
"""

from __future__ import annotations

import atexit
import logging
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from graphdb.common import compiling
from graphdb.gpu.code import archive, compiler
from graphdb.gpu.code.archive import Archive
from graphdb.gpu.code.compiler import Cancel, Compiler
from graphdb.storage.compile.cache import Cache

DISK = Cache("device", 512)
"""Modules on disk: some 20 MB."""
MOST = 64
"""Results of the compiler in memory."""
PAUSE = 2e-3
"""Seconds between two questions whether to go on waiting."""
ENDING = 1.0
"""Seconds that the end of the process waits for a compiler at most; between two of its questions are 0.3."""

Origin = Literal["archive", "cache", "compiler"]
_PACKAGES = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")
_log = logging.getLogger("graphdb")


@dataclass(frozen=True, slots=True)
class Source:
    """What a module is compiled from."""

    name: str
    text: str
    options: tuple[str, ...]
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", archive.digest(self.text, self.options))


@dataclass(frozen=True, slots=True)
class _Compilation:
    """A compilation under way, or its result."""

    done: Future[bytes]
    cancel: Cancel


class MachineCode:
    """Code for devices of one kind.

    Parameters
    ----------
    archive
        What the wheel carries for them, if anything.
    disk
        What was compiled before; None where nothing is to be cached.
    made_by
        Names compiler and driver: the code of others is not used.
    load_compiler, capability
        The compiler, which is looked for when it is needed, and for which devices it compiles.
    """

    def __init__(
        self,
        archive: Archive | None,
        disk: Cache | None,
        made_by: str,
        load_compiler: Callable[[], Compiler],
        capability: int,
    ) -> None:
        self.archive, self.disk = archive, disk
        self._made_by, self._load_compiler, self._capability = made_by, load_compiler, capability
        self._compilations: OrderedDict[str, _Compilation] = OrderedDict()
        self._lock = threading.Lock()
        self.origins: dict[Origin, int] = {"archive": 0, "cache": 0, "compiler": 0}
        """How many modules came from where."""
        _all.add(self)

    def ready(self, source: Source) -> bytes | None:
        """The code of a module without compiling; None where that is needed."""
        code = None if self.archive is None else self.archive.read(source.digest)
        if code is not None:
            self.origins["archive"] += 1
            return code
        with self._lock:
            found = self._compilations.get(source.digest)
        if found is not None and found.done.done() and not found.done.exception():
            return found.done.result()
        code = None if self.disk is None else self.disk.read(self._file(source))
        if code is not None:
            self.origins["cache"] += 1
        return code

    def compiled(self, source: Source, check: Callable[[], None] | None = None, *, anew: bool = False) -> bytes:
        """The code of a module, compiled by a thread; what ``check`` raises ends the wait, but not the thread.

        ``anew`` says that what there was does not run on the device.

        Raises
        ------
        DeviceError
            Where there is no compiler, or the module does not compile.
        """
        if anew:
            with self._lock:
                self._compilations.pop(source.digest, None)
        under_way = self._begun(source).done
        with compiling.announced(f"device code of {source.name}"):
            while not wait([under_way], PAUSE).done:
                if check is not None:
                    check()
        return under_way.result()

    def _begun(self, source: Source) -> _Compilation:
        """The compilation of a module: one for all who wait for it."""
        with self._lock:
            found = self._compilations.get(source.digest)
            if found is None or (found.done.done() and found.done.exception()):
                found = self._compilations[source.digest] = _Compilation(Future(), Cancel())
                threading.Thread(
                    target=self._compile, args=(source, found), name="graphdb-device-compiler", daemon=True
                ).start()
            self._compilations.move_to_end(source.digest)
            ended = [digest for digest, other in self._compilations.items() if other.done.done()]
            for digest in ended[: max(len(self._compilations) - MOST, 0)]:
                del self._compilations[digest]
            return found

    def _compile(self, source: Source, compilation: _Compilation) -> None:
        try:
            nvrtc = self._load_compiler()
            code = nvrtc.compile(source.text, source.options, nvrtc.target(self._capability), compilation.cancel)
        except BaseException as error:  # whoever waits raises it
            compilation.done.set_exception(error)
            return
        self.origins["compiler"] += 1
        if self.disk is not None:
            self.disk.write(self._file(source), code)
        compilation.done.set_result(code)

    def _file(self, source: Source) -> str:
        made = sha256(f"{source.digest} {self._made_by} {self._capability}".encode()).hexdigest()[:32]
        return f"{source.name}-{made}.cubin"

    def cancel(self) -> None:
        """End all compilations under way, and wait for that for a moment."""
        with self._lock:
            under_way = [found for found in self._compilations.values() if not found.done.done()]
        for found in under_way:
            found.cancel.set()
        wait([found.done for found in under_way], ENDING)


_all: weakref.WeakSet[MachineCode] = weakref.WeakSet()


@atexit.register
def _cancel_all() -> None:
    """End what is compiled when the process ends: no thread may run in the compiler's library then."""
    for found in list(_all):
        found.cancel()


@cache
def for_devices(capability: int) -> MachineCode:
    """Code for devices of a compute capability, as a number: 90 for 9.0; shared by all that are open."""
    import cupy

    driver = int(cupy.cuda.runtime.driverGetVersion())
    made_by = " ".join(["cupy", cupy.__version__, str(driver), *_installed()])
    return MachineCode(carried(capability, driver // 1000), DISK, made_by, compiler.of_cupy, capability)


def carried(capability: int, driver: int) -> Archive | None:
    """The wheel's archive for a device and a driver's major version; None where none fits, or it is damaged."""
    path = archive.fitting(capability)
    try:
        found = None if path is None else Archive(path)
    except (OSError, ValueError) as error:
        _log.warning("device code is compiled: %s", error)
        return None
    return found if found is not None and found.version[0] <= driver else None


def described(capability: int, driver: int) -> str:
    """Where a device's code comes from: a phrase for ``graphdb doctor``; ``driver`` is its driver's major version."""
    found, place = carried(capability, driver), DISK.folder()
    if found is not None:
        target, nvrtc = found.target, "{}.{}".format(*found.version)
        said = f"{len(found)} modules for {target} (NVRTC {nvrtc}) are installed with the package, others compiled"
    else:
        said = "compiled when it is needed"
    if objection := DISK.objection():
        return f"{said} by every process anew: {place} is not used, {objection}"
    return f"{said}, {DISK.count()} of them in {place}"


def _installed() -> list[str]:
    """The versions of the compiler's packages."""
    found = []
    for package in _PACKAGES:
        try:
            found.append(version(package))
        except PackageNotFoundError:
            continue
    return found

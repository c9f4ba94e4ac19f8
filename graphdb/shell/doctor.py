"""``graphdb doctor``: what is installed, what is compiled, what the machine has, and whether a query runs.

Each finding is a line; the verdict is whether something that graphdb cannot do without is broken.
"""

from __future__ import annotations

import importlib.metadata
import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from graphdb._version import DISTRIBUTION, __version__
from graphdb.common.config import cores, memory_bytes, physical_memory
from graphdb.common.errors import GraphDBError
from graphdb.common.render import plural
from graphdb.gpu.code import machine_code
from graphdb.gpu.probe import probe
from graphdb.storage.persisted import store

_NAME = re.compile(r"[\w.-]+")
_EXTRA = re.compile(r"""extra == ["'](arrow|dask|jit|notebook|rdf|yaml)["']""")
"""Extras that users may want; what a device needs, the GPU's own line says."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; ``broken`` if graphdb does not work for it."""

    what: str
    found: str
    broken: bool = False


def examine(device_memory: str | None = None) -> Iterator[Finding]:
    """Look at one thing after the other, cheapest first; devices are tried with so much memory."""
    yield Finding("graphdb", __version__)
    yield Finding("Python", f"{platform.python_version()} ({sys.executable})")
    system = f"{platform.system()} {platform.machine()}"
    yield Finding("machine", f"{system}, {plural(cores(), 'core')}, {physical_memory() / 2**30:.1f} GiB memory")
    yield from _dependencies()
    yield from _extras()
    yield _kernels()
    yield _persisted()
    yield from _devices(None if device_memory is None else memory_bytes(device_memory, "device_memory"))
    yield _query()


def report(device_memory: str | None = None) -> int:
    """Print all findings; returns 0, or 1 if something is broken."""
    broken = 0
    for finding in examine(device_memory):
        print(f"{'✗' if finding.broken else '✓'} {finding.what:20}{finding.found}", flush=True)
        broken += finding.broken
    if broken:
        print(f"{broken} broken")
    return 1 if broken else 0


def warm() -> int:
    """Compile what has no machine code yet, on all cores; returns 0."""
    from graphdb.storage.compile.warm import make_missing

    made = make_missing(lambda done, total, name: print(f"{done} of {total}: {name}", flush=True))
    print(f"{plural(made, 'kernel')} compiled" if made else "all kernels have machine code")
    return 0


def _kernels() -> Finding:
    """Say where the machine code of kernels comes from."""
    from graphdb.storage.compile import jit, library
    from graphdb.storage.compile.warm import missing

    if library.loaded() is not None:
        return Finding("CPU kernels", f"for {library.level()}, from the library that is installed with the package")
    if not jit.available():
        return Finding("CPU kernels", f"none for this processor: pip install '{DISTRIBUTION}[jit]'", broken=True)
    absent, total = missing()
    place = jit.disk.folder()
    if objection := jit.disk.objection():
        return Finding("CPU kernels", f"compiled by every process anew: {place} is not used, {objection}")
    cached = f"{total - len(absent)} of {total} in {place}"
    return Finding("CPU kernels", f"compiled when they are needed (graphdb doctor --warm: now), {cached}")


def _persisted() -> Finding:
    """Say whether what queries derive of files persists, where, and how much that is."""
    what, folder = "derived structures", store.FOLDER
    try:
        most = store.most_bytes()
    except GraphDBError as error:
        return Finding(what, str(error), broken=True)
    files = f"{plural(folder.count(), 'file')} of {store.bytes_taken():,} bytes in {folder.folder()}"
    if not most:
        return Finding(what, f"not persisted, for GRAPHDB_PERSISTED is 0: {files}")
    if objection := folder.objection():
        return Finding(what, f"not persisted: {folder.folder()} is not used, {objection}")
    return Finding(what, f"persisted when a large file is closed: {files}, at most {most:,} (GRAPHDB_PERSISTED)")


def _dependencies() -> Iterator[Finding]:
    """Compare what the distribution asks for with what is there."""
    try:
        requirements = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        yield Finding("installation", "runs from a checkout that is not installed: dependencies are not known")
        return
    for requirement in sorted(requirements, key=str.lower):
        name = _NAME.match(requirement)
        if name is None or "extra ==" in requirement:
            continue
        try:
            yield Finding(name.group(), importlib.metadata.version(name.group()))
        except importlib.metadata.PackageNotFoundError:
            yield Finding(name.group(), f"is missing: pip install '{requirement}'", broken=True)


def _extras() -> Iterator[Finding]:
    """Say which extras are complete, and what installs the others."""
    try:
        requirements = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return
    named: dict[str, list[str]] = {}
    for each in requirements:
        if (extra := _EXTRA.search(each)) is not None:
            named.setdefault(extra[1], []).extend(_NAME.findall(each)[:1])
    for name, packages in sorted(named.items()):
        missing = [package for package in packages if not _installed(package)]
        advice = f"without {', '.join(missing)}: pip install '{DISTRIBUTION}[{name}]' where it is wanted"
        yield Finding(f"extra {name}", advice if missing else "complete")


def _installed(name: str) -> bool:
    try:
        return bool(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return False


def _devices(memory_limit: int | None) -> Iterator[Finding]:
    """Say what the GPU probe found."""
    found = probe()
    for device in found.devices:
        major, minor = device.capability
        memory = f"{device.memory / 2**30:.1f} GiB"
        yield Finding(f"cuda:{device.number}", f"{device.name}, {memory}, compute capability {major}.{minor}")
        yield Finding("device code", machine_code.described(10 * major + minor, found.cuda[0] if found.cuda else 0))
    yield Finding("GPU", found.advice)
    if found.usable:
        from graphdb.execute.trial import try_device

        for device in found.devices:
            yield Finding(f"cuda:{device.number}", try_device(device.number, memory_limit))


def _query() -> Finding:
    """Run the smallest query there is."""
    try:
        from graphdb.opening import connect

        with connect() as database:
            answer = database.query("RETURN 1 + 1").fetchall()
    except Exception as error:  # Whatever is wrong belongs into the report.
        return Finding("a query", f"fails: {type(error).__name__}: {error}", broken=True)
    if answer != [(2,)]:
        return Finding("a query", f"1 + 1 gives {answer}", broken=True)
    return Finding("a query", "runs")

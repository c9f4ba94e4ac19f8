"""What a kernel's machine code was made from: where a file has changed, so has the code.

A kernel is compiled with those that it calls and the constants that it reads, from whatever modules these are imported.
"""

from __future__ import annotations

import hashlib
import re
import sys
from functools import cache
from pathlib import Path

_IMPORT = re.compile(r"^from (graphdb\.[\w.]+) import", re.MULTILINE)
_COMPILER = ("signature", "layout", "emit", "intrinsics")
"""The modules of this package that decide about the code."""


def _package() -> Path:
    return Path(str(sys.modules["graphdb"].__file__)).parent


def path_of(module: str) -> Path:
    """Return the file of a module of ours, by its name; it need not be imported."""
    return _package().joinpath(*module.split(".")[1:]).with_suffix(".py")


def kernel_modules() -> list[str]:
    """Return the names of all modules that hold kernels, sorted."""
    package = _package()
    folders = [package, *(package / link for link in ("storage", "gpu", "grammar") if (package / link).is_symlink())]
    found = {file.relative_to(package) for folder in folders for file in folder.rglob("*_kernels.py")}
    return sorted(".".join(("graphdb", *file.with_suffix("").parts)) for file in found)


@cache
def sources(module: str) -> frozenset[str]:
    """Return the names of the modules that the kernels of one are made from, its own among them."""
    found, left = set[str](), [module]
    while left:
        name = left.pop()
        if name not in found and path_of(name).exists():
            found.add(name)
            if name.endswith("_kernels"):
                left += _IMPORT.findall(path_of(name).read_text(encoding="utf-8"))
    return frozenset(found | {f"{__package__}.{part}" for part in _COMPILER})


@cache
def _digest(module: str) -> bytes:
    return hashlib.sha256(path_of(module).read_bytes()).digest()


def size(module: str) -> int:
    """Return about how much there is to compile for a module's kernels, in bytes of text."""
    return sum(path_of(name).stat().st_size for name in sources(module) if name.endswith("_kernels"))


def stamp(modules: frozenset[str]) -> str:
    """Return a digest of the modules as they are now, or were when they were first looked at."""
    total = hashlib.sha256()
    for module in sorted(modules):
        total.update(module.encode() + b"\0" + _digest(module))
    return total.hexdigest()

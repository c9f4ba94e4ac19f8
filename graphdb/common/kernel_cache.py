"""Where compiled CPU kernels are cached, and whether there are any yet: asked without importing Numba.

Numba keeps machine code in ``__pycache__`` beside each module, or under ``NUMBA_CACHE_DIR``, or where neither can be
written in the user's cache directory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class KernelCache:
    """``kernels`` counts the compiled functions found; ``writable`` says whether more can be cached."""

    folder: Path
    kernels: int
    writable: bool


def kernel_cache() -> KernelCache:
    """Look at the cache; a missing folder counts as writable where it could be made."""
    homes = _homes()
    kernels = sum(1 for home in homes for _ in home.rglob("*.nbi"))
    return KernelCache(homes[0], kernels, all(map(_writable, homes)))


def compiled(functions: Iterable[str]) -> bool:
    """Whether machine code of all ``functions`` (``"search_kernels.search"``) is cached, for this version of Python."""
    version = f".py{sys.version_info.major}{sys.version_info.minor}.nbi"
    kept = {index.name.rpartition("-")[0] for home in _homes() for index in home.rglob(f"*{version}")}
    return all(name in kept for name in functions)


def _homes() -> list[Path]:
    """The folders in which Numba keeps machine code."""
    package = Path(__file__).resolve().parents[1]
    # In a checkout storage is a link, which rglob does not follow by itself.
    modules = [*package.rglob("*_kernels.py"), *(package / "storage").rglob("*_kernels.py")]
    homes = sorted({module.resolve().parent / "__pycache__" for module in modules}) or [package / "__pycache__"]
    elsewhere = os.environ.get("NUMBA_CACHE_DIR")
    if elsewhere:
        homes = [Path(elsewhere)]
    elif not all(map(_writable, homes)):
        # Numba's own fallback, in its folder for the user.
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        homes = [Path(cache) / "numba"]
    return homes


def _writable(folder: Path) -> bool:
    """True if files can be made in the folder, or the folder in the nearest one that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK)

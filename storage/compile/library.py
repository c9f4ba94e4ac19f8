"""The shared libraries that a wheel carries: one for each level of processors, the best that this one runs is loaded.

Their symbols are those of :class:`~.entries.Entry`, and ``graphdb_manifest``: the modules that they were made from, and
a digest of these.  In a checkout whose kernels have changed since, a library is left alone.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import sys
from functools import cache
from pathlib import Path

from graphdb.storage.compile import layout, sources
from graphdb.storage.compile.entries import Entry

HOME = Path(__file__).resolve().parent
"""Where libraries lie: ``kernels-LEVEL.so``."""

_V2 = {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}
_V3 = _V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}
_V4 = _V3 | {"avx512_vpopcntdq", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}
LEVELS = {"x86_64": {"x86-64-v4": _V4, "x86-64-v3": _V3, "x86-64-v2": _V2}, "aarch64": {"aarch64": set[str]()}}
"""Per machine its levels, best first, with what the system says of a processor that has it (``/proc/cpuinfo``).

The fourth of x86-64 counts bits in vectors, too: Intel's processors since Ice Lake and AMD's since Zen 4 do.
"""

_SETTING = "GRAPHDB_KERNELS"
"""Chooses a level, or ``jit``: for tests and comparisons."""


def level() -> str | None:
    """Return the best level that the processor has and a library is there for; None where no library fits."""
    chosen = os.environ.get(_SETTING)
    if chosen == "jit" or sys.implementation.name != "cpython" or sys.platform != "linux":
        return None
    for name in levels():
        if chosen in (None, "", name) and (HOME / f"kernels-{name}.so").exists():
            return name
    return None


def levels() -> list[str]:
    """Return the levels that the processor has, best first."""
    flags = _flags()
    return [name for name, needs in LEVELS.get(platform.machine(), {}).items() if needs <= flags]


def bind(entry: Entry) -> bool:
    """Have an entry call its code in the library; False where there is none."""
    library = loaded()
    if library is None:
        return False
    try:
        function = library[entry.symbol]
        array_type = ctypes.c_int64.in_dll(library, f"{entry.symbol}_array")
    except (AttributeError, ValueError):
        return False
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    entry.bind(address, ctypes.addressof(array_type), *entry.signature.variants)
    return True


@cache
def loaded() -> ctypes.CDLL | None:
    """Return the library, if one fits and was made from the present kernels."""
    name = level()
    if name is None or not layout.holds():
        return None
    try:
        library = ctypes.CDLL(str(HOME / f"kernels-{name}.so"))
        text = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(library, "graphdb_manifest")))
        manifest = json.loads(text)
        fresh = manifest["stamp"] == sources.stamp(frozenset(manifest["modules"])) and manifest["head"] == layout.HEAD
    except (OSError, ValueError, KeyError):
        return None
    return library if fresh else None


def _flags() -> set[str]:
    """Return what the system says that the first processor has."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            for line in file:
                name, _, values = line.partition(":")
                if name.strip() == "flags":
                    return set(values.split())
    except OSError:
        pass
    return set()

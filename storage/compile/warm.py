"""Compiling all kernels that have no machine code yet, on all cores: ``graphdb doctor --warm``."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import NamedTuple

from graphdb.storage.compile import jit, library, sources
from graphdb.storage.compile.entries import entries


class Missing(NamedTuple):
    """A variant of an entry, by the name of its module and its symbol."""

    module: str
    symbol: str
    variant: str


def missing() -> tuple[list[Missing], int]:
    """Return the entries, variant by variant, that would have to be compiled, and how many there are in all."""
    for module in sources.kernel_modules():
        importlib.import_module(module)
    every = [(entry, variant) for entry in entries.values() for variant in entry.signature.variants]
    if library.loaded() is not None:
        return [], len(every)
    absent = [
        Missing(entry.function.__module__, entry.symbol, variant)
        for entry, variant in every
        if not jit.cached(entry, variant)
    ]
    return absent, len(every)


def make_missing(progress: Callable[[int, int, str], None] | None = None) -> int:
    """Compile what is missing, and return how much that was; ``progress`` hears how many of how many, and which."""
    absent, _ = missing()
    if not absent:
        return 0
    by_module: dict[str, list[Missing]] = {}
    for found in absent:
        by_module.setdefault(found.module, []).append(found)
    groups = sorted(by_module.values(), key=lambda group: sources.size(group[0].module), reverse=True)
    workers = min(len(os.sched_getaffinity(0)), len(groups))
    done = 0
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(_make, group) for group in groups]):
            for symbol in future.result():
                done += 1
                if progress is not None:
                    progress(done, len(absent), symbol)
    return done


def _make(group: list[Missing]) -> list[str]:
    """Compile variants of one module's entries: they share what they call."""
    importlib.import_module(group[0].module)
    for found in group:
        jit.make(entries[found.symbol], found.variant)
    return [found.symbol for found in group]

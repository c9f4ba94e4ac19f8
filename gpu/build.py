"""Compiles the modules that no query changes, for all architectures: a step of building a wheel.

``python -m graphdb.gpu.build FOLDER`` writes an archive for each of :func:`graphdb.gpu.code.archive.targets`.  It needs
NVRTC 13 (``nvidia-cuda-nvrtc`` on PyPI), and no device; without it, it says so and writes nothing, and modules are
compiled when they are first used.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from graphdb.gpu import executor
from graphdb.gpu.code import archive, compiler, launch

assert executor  # each strategy says what modules it has
OLDEST = 13
"""The first version of NVRTC that knows all architectures."""


def undeclared() -> set[str]:
    """Modules that no imported Python module says how to compile (:data:`graphdb.gpu.code.launch.VARIANTS`)."""
    return launch.modules() - set(launch.VARIANTS)


def modules() -> dict[tuple[str, str], tuple[str, tuple[str, ...]]]:
    """The name and the digest of every module that is compiled ahead, with its text and options."""
    found = {}
    for name, variants in sorted(launch.VARIANTS.items()):
        if not launch.written_per_plan(name):
            for macros in variants:
                text, options = launch.source(name), launch.defines(macros)
                found[name, archive.digest(text, options)] = text, options
    return found


def build(folder: Path, nvrtc: compiler.Compiler, targets: tuple[str, ...], workers: int) -> list[Path]:
    """Write the archives, and return their paths.

    Raises
    ------
    DeviceError
        Where a module does not compile.
    """
    wanted = modules()
    jobs = [(target, key) for key in wanted for target in targets]
    with ThreadPoolExecutor(workers) as pool:
        made = pool.map(lambda job: nvrtc.compile(*wanted[job[1]], job[0]), jobs)
        code = dict(zip(jobs, made, strict=True))
    paths = [folder / f"{target}.zip" for target in targets]
    for target, path in zip(targets, paths, strict=True):
        archive.write(path, nvrtc.version, {key: code[target, key] for key in wanted})
    return paths


def main() -> None:
    """Build from a command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--declared-in", nargs="*", default=[], help="modules of layers above that declare kernels")
    parser.add_argument("--machine", default=platform.machine(), choices=sorted(archive.MACHINE_CODE))
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    chosen, began = parser.parse_args(), time.perf_counter()
    for name in chosen.declared_in:
        importlib.import_module(name)
    if missing := undeclared():
        parser.error(f"no imported module declares {', '.join(sorted(missing))}: use --declared-in")
    library = compiler.find()
    nvrtc = None if library is None else compiler.Compiler(library)
    if nvrtc is None or nvrtc.version[0] < OLDEST:
        why = "is not here" if nvrtc is None else "is {}.{}".format(*nvrtc.version)
        sys.stdout.write(f"no device code: NVRTC {why}, {OLDEST} is wanted (pip install nvidia-cuda-nvrtc)\n")
        return
    targets = archive.targets(chosen.machine)
    paths = build(chosen.folder, nvrtc, targets, chosen.workers)
    size, seconds = sum(path.stat().st_size for path in paths) / 1e6, time.perf_counter() - began
    sys.stdout.write(f"device code for {', '.join(targets)}, {size:.1f} MB, in {seconds:.0f} s\n")


if __name__ == "__main__":
    main()

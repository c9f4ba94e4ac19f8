"""Distinct counts in one process, as many as time allows: what stays in memory, on the host and on the device.

    python -m tests.benchmarks.many_counts --number 200000
    python -m tests.benchmarks.many_counts --device cuda:0 --seconds 75 --modules 24
    python -m tests.benchmarks.many_counts --device cuda:0 --vertices 3 4

Texts are walks of 3 to 6 vertices (``--vertices``; of few, hardly one asks for device code that is not there) over a
labelled R-MAT graph, hardly one of them twice.  All that is cached is bounded;
the growth that is printed is that of the second half, by when it should be full (``--modules`` lowers a bound of device
code that takes long to reach).
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

import graphdb
from tests.benchmarks.random_queries import Lists, rmat

SCALE, LABELS = 8, 30


def resident() -> int:
    """Bytes of this process in the host's memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def on_device(executor: Any) -> str:
    """What this process has on the device, as the driver and as we count it."""
    device = getattr(executor, "_device", executor)
    if not hasattr(device, "device"):
        return "no device"
    memory = device.device.memory
    command = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    mine = [line.split(",")[1].strip() for line in lines if line.startswith(f"{os.getpid()},")]
    ours = f"pool {memory.pool.total_bytes() >> 20} MiB, in use {memory.used_bytes >> 20}, cached {memory.cached_bytes >> 20}"
    return f"driver {' '.join(mine) or '?'} MiB, {ours}, page-locked {memory.pinned_bytes >> 10} KiB, {len(device.device._modules)} modules"


def main() -> None:
    """Read the command line and count."""
    import pyarrow as pa

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--number", type=int, default=200_000)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--modules", type=int, default=0)
    parser.add_argument("--vertices", type=int, nargs=2, default=(3, 6), metavar=("LEAST", "MOST"))
    given = parser.parse_args()
    if given.modules:
        from graphdb.gpu.code import launch

        launch.MODULES = given.modules
    (u, v), vertices, rng = rmat(SCALE, 5), 1 << SCALE, np.random.default_rng(3)
    labels = rng.integers(0, LABELS, vertices).tolist()
    database = graphdb.connect(device=given.device)
    database.load(pa.table({":ID": np.arange(vertices), ":LABEL": [f"L{label}" for label in labels]}))
    database.load(pa.table({":START_ID": u, ":END_ID": v}), type="e")
    lists, seen = Lists.of(labels, vertices, u, v), list[tuple[int, int]]()
    with database._statements().queries.new_run("", {}, None) as run:
        executor = run.executor
    began, number, following = time.monotonic(), 0, 0.0
    while number < given.number and time.monotonic() - began < given.seconds:
        database.query(lists.walk(rng, *given.vertices), timeout=10).scalar()
        number += 1
        passed = time.monotonic() - began
        if passed > following:
            following = passed + min(max(passed / 10, 2.0), 60.0)
            gc.collect()
            seen.append((number, resident()))
            print(f"{number:>8,} counts, {passed:7.1f} s: {resident() >> 10:,} KiB; {on_device(executor)}", flush=True)
    (first, before), (last, after) = seen[len(seen) // 2], seen[-1]
    print(f"counts {first:,} to {last:,}: {(after - before) / max(last - first, 1):,.0f} bytes of the host's for each")


if __name__ == "__main__":
    main()

"""One step of a join, written in all the ways that the papers have: where rows go, and how lists are intersected.

    python -m tests.benchmarks.extension [graph …]

Each edge (u, v) of an oriented graph is extended by the vertices that both lead to: the rows of its triangles.  *Output*
is by two steps (count, then write), by Prealloc-Combine (SGSI §5: room for every element, combined afterwards), by a
bit per element and a prefix sum (what the join does), and into blocks of 8 KB that warps take from a pool (GAMMA, pattern
mining, §6.1, optimization 1).  *Intersection* is by binary search, and by a Bloom filter of u's list in shared memory: with
the search at once, or after what has passed was collected (three stages: GAMMA §6.1, optimization 3).  Kernel ms, least of
some runs; bytes are those allocated beside the graph.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.launch import Device
from graphdb.gpu.code.machine_code import Source
from graphdb.storage.graph.derived.orientation import Oriented

RUNS = 5
BLOCK_CELLS = 2048
"""Numbers in a block of 8 KB."""
KERNELS = """
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;
#define FULL 0xffffffffu
#define LANE (threadIdx.x % 32)
#define BEFORE(mask) __popc((mask) & ((1u << LANE) - 1))

__device__ bool holds(const int *list, i64 begin, i64 end, int value) {
  const i64 last = end;
  while (begin < end) {
    const i64 middle = (begin + end) >> 1;
    if (__ldg(list + middle) < value) begin = middle + 1; else end = middle;
  }
  return begin < last && __ldg(list + begin) == value;
}

// A warp's rows, one after the other: `act(row, k, x, mask)` for each 32 elements of v's list, with those also in u's.
template <typename Act, typename End>
__device__ void each_row(const i64 *offsets, const int *from, const int *ids, i64 rows, Act act, End end) {
  const i64 warp = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / 32, warps = gridDim.x * (i64)blockDim.x / 32;
  for (i64 row = warp; row < rows; row += warps) {
    const i64 u = from[row], v = ids[row], begin = offsets[v], count = offsets[v + 1] - begin;
    for (i64 k = 0; k < count; k += 32) {
      const bool on = k + LANE < count;
      const int x = on ? __ldg(ids + begin + k + LANE) : 0;
      act(row, k, x, __ballot_sync(FULL, on && holds(ids, offsets[u], offsets[u + 1], x)));
    }
    end(row);
  }
}

#define STEP extern "C" __global__ void
#define GIVEN const i64 *offsets, const int *from, const int *ids, i64 rows
STEP count_rows(GIVEN, i64 *counts) {
  i64 found = 0;
  each_row(offsets, from, ids, rows, [&](i64, i64, int, u32 mask) { found += __popc(mask); },
           [&](i64 row) { if (LANE == 0) counts[row] = found; found = 0; });
}
STEP write_rows(GIVEN, const i64 *positions, int *out, i64 stride) {
  i64 found = 0;
  each_row(offsets, from, ids, rows, [&](i64 row, i64, int x, u32 mask) {
    const i64 at = positions[row] + found + BEFORE(mask);
    if (mask >> LANE & 1) { out[at] = (int)row; out[stride + at] = x; }
    found += __popc(mask); }, [&](i64) { found = 0; });
}
STEP extend_prealloc(GIVEN, const i64 *upper, int *room, i64 *counts) {
  i64 found = 0;
  each_row(offsets, from, ids, rows, [&](i64 row, i64, int x, u32 mask) {
    if (mask >> LANE & 1) room[upper[row] + found + BEFORE(mask)] = x;
    found += __popc(mask); }, [&](i64 row) { if (LANE == 0) counts[row] = found; found = 0; });
}
STEP combine_prealloc(i64 rows, const i64 *upper, const i64 *positions, const int *room, int *out, i64 stride) {
  const i64 warp = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / 32, warps = gridDim.x * (i64)blockDim.x / 32;
  for (i64 row = warp; row < rows; row += warps)
    for (i64 k = LANE; k < positions[row + 1] - positions[row]; k += 32) {
      out[positions[row] + k] = (int)row;
      out[stride + positions[row] + k] = room[upper[row] + k];
    }
}
STEP mark_rows(GIVEN, const i64 *words, u32 *bits, i64 *counts) {
  i64 found = 0;
  each_row(offsets, from, ids, rows, [&](i64 row, i64 k, int, u32 mask) {
    if (LANE == 0) bits[words[row] + k / 32] = mask;
    found += __popc(mask); }, [&](i64 row) { if (LANE == 0) counts[row] = found; found = 0; });
}
STEP combine_bits(GIVEN, const i64 *words, const u32 *bits, const i64 *positions, int *out, i64 stride) {
  const i64 warp = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / 32, warps = gridDim.x * (i64)blockDim.x / 32;
  for (i64 row = warp; row < rows; row += warps) {
    const i64 begin = offsets[ids[row]];
    i64 at = positions[row];
    for (i64 word = words[row]; word < words[row + 1]; ++word) {
      const u32 mask = bits[word];
      if (mask >> LANE & 1) {
        out[at + BEFORE(mask)] = (int)row;
        out[stride + at + BEFORE(mask)] = __ldg(ids + begin + (word - words[row]) * 32 + LANE);
      }
      at += __popc(mask);
    }
  }
}
// Pairs (row, vertex) in blocks of BLOCK numbers; `used` says how many numbers a block has.
STEP extend_blocks(GIVEN, int *pool, u64 *next, i64 *used) {
  i64 block = -1, fill = BLOCK;
  each_row(offsets, from, ids, rows, [&](i64 row, i64, int x, u32 mask) {
    if (fill + 2 * __popc(mask) > BLOCK) {
      u64 taken = 0;
      if (LANE == 0) { if (block >= 0) used[block] = fill; taken = atomicAdd(next, 1ull); }
      block = (i64)__shfl_sync(FULL, taken, 0), fill = 0;
    }
    int *to = pool + block * BLOCK + fill + 2 * BEFORE(mask);
    if (mask >> LANE & 1) { to[0] = (int)row; to[1] = x; }
    fill += 2 * __popc(mask); }, [](i64) {});
  if (LANE == 0 && block >= 0) used[block] = fill;
}

// A block of threads takes a vertex u, and its warps its rows.  0: search; 1: filter, and search at once; 2: filter,
// collect, search.
template <int STAGES>
__device__ void by_vertex(const i64 *offsets, const int *ids, i64 vertices, u64 *next, u64 *total) {
  __shared__ u32 filter[2048];
  __shared__ int kept[8][64];
  __shared__ u64 taken;
  const u32 warp = threadIdx.x / 32, warps = blockDim.x / 32;
  u64 found = 0;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) taken = atomicAdd(next, 1ull);
    __syncthreads();
    if (taken >= (u64)vertices) break;
    const i64 begin = offsets[taken], end = offsets[taken + 1];
    u32 words = 32;
    while (words < 2048 && words * 4 < end - begin) words *= 2;
    const u32 bits = words * 32 - 1;
    if (STAGES) {
      for (u32 i = threadIdx.x; i < words; i += blockDim.x) filter[i] = 0;
      __syncthreads();
      for (i64 k = begin + threadIdx.x; k < end; k += blockDim.x) {
        const u32 a = (u32)ids[k] * 2654435769u >> 7 & bits, b = (u32)ids[k] * 2246822519u >> 9 & bits;
        atomicOr(filter + a / 32, 1u << a % 32);
        atomicOr(filter + b / 32, 1u << b % 32);
      }
      __syncthreads();
    }
    u32 n = 0;
    for (i64 row = begin + warp; row < end; row += warps) {
      const i64 first = offsets[ids[row]], count = offsets[ids[row] + 1] - first;
      for (i64 k = 0; k < count; k += 32) {
        bool on = k + LANE < count;
        const int x = on ? __ldg(ids + first + k + LANE) : 0;
        if (STAGES) {
          const u32 a = (u32)x * 2654435769u >> 7 & bits, b = (u32)x * 2246822519u >> 9 & bits;
          on = on && filter[a / 32] >> a % 32 & 1 && filter[b / 32] >> b % 32 & 1;
        }
        if (STAGES < 2) {
          found += on && holds(ids, begin, end, x);
          continue;
        }
        const u32 mask = __ballot_sync(FULL, on);
        if (on) kept[warp][n + BEFORE(mask)] = x;
        n += __popc(mask);
        __syncwarp();
        if (n >= 32) {
          found += holds(ids, begin, end, kept[warp][LANE]);
          n -= 32;
          const int rest = kept[warp][32 + LANE];
          __syncwarp();
          kept[warp][LANE] = rest;
          __syncwarp();
        }
      }
    }
    if (LANE < n) found += holds(ids, begin, end, kept[warp][LANE]);
    __syncwarp();
  }
  for (int by = 16; by; by /= 2) found += __shfl_xor_sync(FULL, found, by);
  if (LANE == 0 && found) atomicAdd(total, found);
}
#define BY_VERTEX(NAME, STAGES)                                                                   \\
  STEP NAME(const i64 *offsets, const int *ids, i64 vertices, u64 *next, u64 *total) {            \\
    by_vertex<STAGES>(offsets, ids, vertices, next, total);                                       \\
  }
BY_VERTEX(search_lists, 0)
BY_VERTEX(filter_lists, 1)
BY_VERTEX(collect_lists, 2)
"""

Rows = NDArray[np.int64]


@dataclass
class Extension:
    """An oriented graph on a device, whose edges are extended."""

    device: Device
    oriented: Oriented

    def __post_init__(self) -> None:
        degrees = np.diff(self.oriented.offsets)
        ids = self.oriented.neighbours.astype(np.int32)
        lists = degrees[ids]
        upload, at = self.device.memory.upload, np.int64
        self.rows, self.vertices, self.elements = len(ids), len(degrees), int(lists.sum())
        with self.device.active():
            self._given = (
                upload(self.oriented.offsets.astype(at)),
                upload(np.repeat(np.arange(len(degrees)), degrees).astype(np.int32)),
                upload(ids),
                at(self.rows),
            )
            self._upper = upload(np.append(0, np.cumsum(lists)).astype(at))
            self._words = upload(np.append(0, np.cumsum((lists + 31) // 32)).astype(at))
            self._word_count = int(((lists + 31) // 32).sum())
            self._module = self.device.compile(Source("extension", KERNELS, (f"-DBLOCK={BLOCK_CELLS}",)))

    def _launch(self, kernel: str, *arguments: Any, blocks: int = 0, threads: int = 256) -> None:
        blocks = blocks or min(-(-self.rows // 8), 16 * self.device.processors)
        self._module.launch(kernel, blocks, *arguments, threads=threads)

    def _finish(self, counts: Any, write: Callable[[Any, Any, int], None]) -> tuple[Any, int]:
        """The rows [2, found] that ``write`` writes where the sums of ``counts`` say."""
        positions = self.device.offsets(counts)
        found = self.device.last(positions)
        out = self.device.memory.empty((2, max(found, 1)), np.int32)
        write(positions, out, out.shape[1])
        return out, found

    # --- output: (what holds the rows, how many, bytes allocated)

    def two_steps(self) -> tuple[Any, int, int]:
        """Count, sum up, and do all of it again to write."""
        counts = self.device.memory.empty(self.rows, np.int64)
        self._launch("count_rows", *self._given, counts)
        out, found = self._finish(counts, lambda at, to, n: self._launch("write_rows", *self._given, at, to, n))
        return out, found, counts.nbytes + out.nbytes

    def prealloc(self) -> tuple[Any, int, int]:
        """Room for all elements; then the rows are combined."""
        counts = self.device.memory.empty(self.rows, np.int64)
        room = self.device.memory.empty(max(self.elements, 1), np.int32)
        self._launch("extend_prealloc", *self._given, self._upper, room, counts)
        out, found = self._finish(
            counts, lambda at, to, n: self._launch("combine_prealloc", self.rows, self._upper, at, room, to, n)
        )
        return out, found, counts.nbytes + room.nbytes + out.nbytes

    def bits(self) -> tuple[Any, int, int]:
        """A bit for each element; then the rows are combined."""
        counts = self.device.memory.empty(self.rows, np.int64)
        bits = self.device.memory.empty(max(self._word_count, 1), np.uint32)
        self._launch("mark_rows", *self._given, self._words, bits, counts)
        out, found = self._finish(
            counts, lambda at, to, n: self._launch("combine_bits", *self._given, self._words, bits, at, to, n)
        )
        return out, found, counts.nbytes + bits.nbytes + out.nbytes

    def blocks(self, room: int) -> tuple[Any, int, int]:
        """Into blocks of a pool that has room for so many rows, and one block more for every warp."""
        blocks = min(-(-self.rows // 8), 16 * self.device.processors)
        most = 2 * room // (BLOCK_CELLS - 64) + 8 * blocks + 1
        pool = self.device.memory.empty((most, BLOCK_CELLS), np.int32)
        used = self.device.memory.upload(np.zeros(most + 1, np.int64))
        self._launch("extend_blocks", *self._given, pool, used[most:], used, blocks=blocks)
        taken = used.get()
        self.taken = taken[:most]
        return pool, int(taken[:most].sum()) // 2, int(taken[most]) * BLOCK_CELLS * 4 + used.nbytes

    # --- intersection: how many

    def intersected(self, kernel: str) -> int:
        """Triangles, by a block of threads per vertex."""
        cells = self.device.memory.upload(np.zeros(2, np.uint64))
        offsets, _, ids, _ = self._given
        self._launch(kernel, offsets, ids, self.vertices, cells, cells[1:], blocks=8 * self.device.processors)
        return int(cells.get()[1])


def timed(device: Device, run: Callable[[], Any]) -> tuple[Any, float]:
    """(what it gives, ms between events, the least of some runs)."""
    with device.active():
        found, least = run(), np.inf
        for _ in range(RUNS):
            begin = device.event()
            run()
            least = min(least, device.milliseconds(begin, device.event()))
    return found, least


def main() -> None:
    """Print a table per graph."""
    from tests.benchmarks.device_counting import graph_of

    for name in sys.argv[1:] or ("wiki-Vote", "email-Enron", "rmat18"):
        graph, label = graph_of(name)
        device = Device(0)
        step = Extension(device, graph.oriented((label,)))
        print(f"{name}: {step.rows:,} rows, {step.elements:,} elements")
        (_, found, size), ms = timed(device, step.two_steps)
        print(f"  {'two steps':<32} {ms:>9.3f} ms {size / 1e6:>9.1f} MB  {found:,} rows")
        ways: tuple[tuple[str, Callable[[], Any]], ...] = (
            ("Prealloc-Combine", step.prealloc),
            ("a bit per element", step.bits),
            ("blocks of 8 KB from a pool", lambda step=step, found=found: step.blocks(found)),  # type: ignore[misc]
        )
        for title, way in ways:
            (_, again, size), ms = timed(device, way)
            assert again == found, title
            print(f"  {title:<32} {ms:>9.3f} ms {size / 1e6:>9.1f} MB", flush=True)
        for kernel in ("search_lists", "filter_lists", "collect_lists"):
            count, ms = timed(device, lambda step=step, kernel=kernel: step.intersected(kernel))  # type: ignore[misc]
            assert count == found, kernel
            print(f"  {kernel:<32} {ms:>9.3f} ms", flush=True)


if __name__ == "__main__":
    main()

// Extensions of embeddings by a vertex or an edge, a warp for each embedding; as graphdb/mining/extension_kernels.py.
//
// KIND is ANY (a vertex adjacent to any of the embedding), ALL (one above the last, adjacent to all) or EDGES.  PASS is
// COUNT (how many extensions each row has), WRITE (they go to the places that prefix sums over these say), or POOL: one
// pass writes to blocks of a pool, each taken by one warp, and counts; another puts what was written in order
// (GAMMA §6.1, optimisation 1).  CODES counts the extensions of ANY by what joins all vertices, and writes none.
// Where MERGED is not 0, a warp takes all rows with the same prefix, and what the vertices of the prefix have in common,
// up to MERGED of them, is intersected once, in shared memory (optimisation 2).

#include "teams.cuh"

const int ANY = 0, ALL = 1, EDGES = 2, COUNT = 0, WRITE = 1, POOL = 2, CODES = 3;
const int MOST = 8, RUN = 8, LARGEST = 64, WARPS = 8;

struct Lists {
  const i64 *offsets;
  const int *ids;
};

__device__ __forceinline__ i64 lower_bound(const int *ids, i64 begin, i64 end, int least) {
  while (begin < end) {
    const i64 middle = (begin + end) >> 1;
    if (__ldg(ids + middle) < least) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

// The place of v among the neighbours of u; -1 where it is none.
__device__ __forceinline__ i64 place_of(const Lists &lists, int u, int v) {
  const i64 end = __ldg(lists.offsets + u + 1), at = lower_bound(lists.ids, __ldg(lists.offsets + u), end, v);
  return at < end && __ldg(lists.ids + at) == v ? at : -1;
}

__device__ __forceinline__ int least_after(const int *row, int size, int place) {
  int least = row[0] + 1;
  for (int j = place + 1; j < size; ++j) least = row[j] + 1 > least ? row[j] + 1 : least;
  return least;
}

// take(u, on) is called by whole warps; u extends the row where `on`.
template <typename Take>
__device__ void any_of(const Lists &lists, const int *row, int size, Take take) {
  for (int i = 0; i < size; ++i) {
    const i64 end = __ldg(lists.offsets + row[i] + 1);
    const i64 begin = lower_bound(lists.ids, __ldg(lists.offsets + row[i]), end, least_after(row, size, i));
    for (i64 at = begin; at < end; at += WARP) {
      const int u = at + LANE < end ? __ldg(lists.ids + at + LANE) : -1;
      bool on = u >= 0;
      for (int j = 0; j < i; ++j) on = on && row[j] != u && place_of(lists, row[j], u) < 0;
      take(u, on);
    }
  }
}

// As any_of; the shortest of the lists is gone through.
template <typename Take>
__device__ void all_of(const Lists &lists, const int *row, int size, Take take) {
  int best = 0;
  i64 shortest = (i64)1 << 62;
  for (int i = 0; i < size; ++i) {
    const i64 count = __ldg(lists.offsets + row[i] + 1) - __ldg(lists.offsets + row[i]);
    if (count < shortest) best = i, shortest = count;
  }
  const i64 end = __ldg(lists.offsets + row[best] + 1);
  const i64 begin = lower_bound(lists.ids, __ldg(lists.offsets + row[best]), end, row[size - 1] + 1);
  for (i64 at = begin; at < end; at += WARP) {
    const int u = at + LANE < end ? __ldg(lists.ids + at + LANE) : -1;
    bool on = u >= 0;
    for (int j = 0; j < size; ++j) on = on && (j == best || place_of(lists, row[j], u) >= 0);
    take(u, on);
  }
}

#if MERGED
#include "prefix.cuh"
#endif

// As any_of, of edges: two are adjacent where they share an end.  lists are the edges at each vertex.
template <typename Take>
__device__ void edges_of(const Lists &lists, const int *source, const int *target, const int *row, int size,
                         Take take) {
  for (int i = 0; i < size; ++i) {
    const int least = least_after(row, size, i), first = __ldg(source + row[i]);
    for (int end = 0; end < 2; ++end) {
      const int vertex = end ? __ldg(target + row[i]) : first;
      const i64 last = __ldg(lists.offsets + vertex + 1);
      for (i64 at = lower_bound(lists.ids, __ldg(lists.offsets + vertex), last, least); at < last; at += WARP) {
        const int edge = at + LANE < last ? __ldg(lists.ids + at + LANE) : -1;
        bool on = edge >= 0;
        const int a = on ? __ldg(source + edge) : 0, b = on ? __ldg(target + edge) : 0;
        if (end) on = on && a != first && b != first;  // seen from the other end already
        for (int j = 0; j < size; ++j) on = on && edge != row[j];
        for (int j = 0; j < i && on; ++j) {
          const int c = __ldg(source + row[j]), d = __ldg(target + row[j]);
          on = a != c && a != d && b != c && b != d;
        }
        take(edge, on);
      }
    }
  }
}

// Where a warp writes the extensions of its rows.
struct Writer {
  int *values, *owners, *ranks;
  u64 *cursor;
  i64 pool_blocks, block_entries;
  i64 at, left;            // of the warp's block of the pool
  i64 task, first, found;  // the row, where its extensions go, and how many it has so far

  // Called by whole warps.
  __device__ __forceinline__ void put(int u, bool on) {
    const u32 all = __ballot_sync(FULL, on);
    const int before = __popc(all & ((1u << LANE) - 1)), total = __popc(all);
    if (PASS == WRITE && on) values[first + found + before] = u;
    if (PASS == POOL) {
      // Entries that the block has no place for go to the next one; a pool without blocks only counts.
      const i64 old = at;
      const int fitting = left < total ? (int)left : total;
      at += fitting, left -= fitting;
      i64 fresh = 0;
      if (fitting < total) {
        u64 block = 0;
        if (LANE == 0) block = atomicAdd(cursor, 1ull);
        block = __shfl_sync(FULL, block, 0);
        const bool there = block < (u64)pool_blocks;
        fresh = there ? (i64)block * block_entries : -1;
        at = fresh + (total - fitting), left = there ? block_entries - (total - fitting) : 0;
      }
      const i64 mine = before < fitting ? old + before : fresh < 0 ? -1 : fresh + before - fitting;
      if (on && mine >= 0) {
        values[mine] = u;
        owners[mine] = (int)task;
        ranks[mine] = (int)(found + before);
      }
    }
    found += total;
  }
};

// rows: int [count, size].  counts gets (WRITE: has) the number of extensions of each row, and places where they begin.
// Of the pool, cursor is the next block; what a warp wrote of a row is (value, row, rank).
extern "C" __global__ void __launch_bounds__(256)
extend(const i64 *offsets, const int *ids, const int *source, const int *target, const int *rows, i64 count, i64 size,
       i64 *counts, const i64 *places, int *values, int *owners, int *ranks, u64 *cursor, i64 pool_blocks,
       i64 block_entries, u64 *next, const volatile int *stop) {
  const Lists lists = {offsets, ids};
  TaskCounter<Warp> tasks_left = {next, stop};
  Writer writer = {values, owners, ranks, cursor, pool_blocks, block_entries, 0, 0, 0, 0, 0};
  auto take = [&](int u, bool on) { writer.put(u, on); };
  int row[MOST];
  auto read = [&](i64 task) {
    for (int i = 0; i < MOST; ++i) row[i] = i < size ? __ldg(rows + task * size + i) : 0;
    writer.task = task, writer.found = 0;
    if (PASS == WRITE) writer.first = places[task];
  };
  auto ended = [&] {
    if (PASS != WRITE && LANE == 0) counts[writer.task] = writer.found;
  };
#if MERGED
  // A task are the groups that begin among RUN rows.
  __shared__ int merged[WARPS][ROOM];
  Prefix prefix = {merged[threadIdx.x / WARP], 0};
  for (;;) {
    const u64 run = tasks_left.take();
    if (run > (u64)count / RUN) break;
    const i64 begin = (i64)run * RUN;
    const bool head = LANE < RUN && begin + LANE < count && is_head(rows, begin + LANE, (int)size);
    u32 heads = __ballot_sync(FULL, head);
    for (; heads; heads &= heads - 1) {
      i64 task = begin + __ffs(heads) - 1;
      bool more = task + 1 < count && !is_head(rows, task + 1, (int)size);
      read(task);
      prefix.count = MERGED + 1;
      if (more) merge(lists, row, (int)size, prefix);
      for (;;) {
        if (prefix.count > MERGED) all_of(lists, row, (int)size, take);
        else all_of_merged(lists, prefix, row[size - 1], take);
        ended();
        if (!more) break;
        read(++task);
        more = task + 1 < count && !is_head(rows, task + 1, (int)size);
      }
    }
  }
#else
  for (;;) {
    const u64 task = tasks_left.take();
    if (task >= (u64)count) break;
    read((i64)task);
    if (KIND == ANY) any_of(lists, row, (int)size, take);
    if (KIND == ALL) all_of(lists, row, (int)size, take);
    if (KIND == EDGES) edges_of(lists, source, target, row, (int)size, take);
    ended();
  }
#endif
}


// What was written to the pool goes to its place; owners of entries that nobody wrote are negative.
extern "C" __global__ void __launch_bounds__(256)
put_in_order(const int *values, const int *owners, const int *ranks, i64 entries, const i64 *places, int *out) {
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < entries; i += gridDim.x * (i64)blockDim.x)
    if (owners[i] >= 0) out[places[owners[i]] + ranks[i]] = values[i];
}

// Count the connected sets of one more vertex by their codes (graphdb/mining/motif_kernels.py).  ways stands beside the
// neighbours.  firsts gets for each code the least (number of the row from `base` on, vertex) that has it.
extern "C" __global__ void __launch_bounds__(256)
count_codes(const i64 *offsets, const int *ids, const unsigned char *ways, const int *rows, i64 count, i64 size,
            i64 base, u64 *counts, u64 *firsts, u64 *next, const volatile int *stop) {
  const Lists lists = {offsets, ids};
  TaskCounter<Warp> tasks_left = {next, stop};
  for (;;) {
    const u64 task = tasks_left.take();
    if (task >= (u64)count) break;
    int row[MOST];
    for (int i = 0; i < MOST; ++i) row[i] = i < size ? __ldg(rows + task * size + i) : 0;
    u32 own = 0;
    for (int j = 1; j < size; ++j)
      for (int i = 0; i < j; ++i) {
        const i64 at = place_of(lists, row[i], row[j]);
        if (at >= 0) own |= (u32)__ldg(ways + at) << (2 * (j * (j - 1) / 2 + i));
      }
    const int shift = (int)(size * (size - 1));
    any_of(lists, row, (int)size, [&](int u, bool on) {
      u32 code = own;
      for (int j = 0; j < size && on; ++j) {
        const i64 at = place_of(lists, row[j], u);
        if (at >= 0) code |= (u32)__ldg(ways + at) << (shift + 2 * j);
      }
      // Most sets have few codes: lanes that have the same add once.
      for (u32 left = __ballot_sync(FULL, on); left;) {
        const int leader = __ffs(left) - 1;
        const u32 wanted = __shfl_sync(FULL, code, leader);
        const u32 same = __ballot_sync(FULL, on && code == wanted);
        if (LANE == leader) {
          atomicAdd(counts + code, (u64)__popc(same));
          const u64 mine = (u64)(base + (i64)task) << 31 | (u32)u;
          if (mine < firsts[code]) atomicMin(firsts + code, mine);
        }
        left &= ~same;
      }
    });
  }
}

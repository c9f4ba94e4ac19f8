// Depth-first search by warps (STMatch §IV-VI), written per plan: gpu/search/code_generation.py says what plan.cuh holds.
//
// A warp holds, per step, a *batch* of up to 32 partial matches in shared memory, one per lane.  To extend a batch, all
// its lists stand one after the other and lanes are assigned to elements, whatever the lists they belong to: many small
// sets are worked on at once (STMatch §VI).  What passes is collected until a batch is full, which is then extended
// before the search goes on here.  So a list may be of any length, and nothing but batches is ever stored.
//
// Work is divided into pieces of the second step's lists, of equal numbers of elements: hubs are shared by many warps.  Where
// STEAL says so, warps without work take half of what others have left (steal.cuh).

#include "checks.cuh"

#ifndef WARP
#define WARP 32
#define FULL 0xffffffffu
#endif
#ifndef UNROLL
#define UNROLL WARP
#endif
#ifndef RESIDENT
#define RESIDENT 1
#endif
#ifndef STEAL
#define STEAL 0
#define LEVELS 1
#define LEFT 2
#endif
#define LANE ((int)(threadIdx.x % WARP))

extern __shared__ ID batches[];

// What a run reads and writes; an array of 64-bit cells in the order of gpu/code/layout.py.
struct Run {
  const Partition *partitions;
  const i64 *lists, *checks, *uncertain, *constants;
  i64 resources, type_label;
  const i64 *scans;    // per step: the address and length of its scan
  const ID *scan;
  i64 roots;
  const i64 *ends;     // of the elements of each WARP roots, summed; null: a root is one element
  i64 elements, piece; // in all, and of a task
  u64 *next;           // the next task
  u32 *halt;           // set: stop
  const volatile int *stop;  // the host's flag
  u64 *found;          // matches
  i64 limit;           // stop at so many; -1
  ID *shares;          // per warp: room for shared intersections ...
  i64 share_ids;       // ... of so many ids
  ID *pool;            // partial matches that are shared out anew, [columns][pool_rows]; null: none
  i64 pool_rows;
  u64 *pooled, *pool_end;  // how many there are, or, where they had no room, where the last of them ends
  i64 resumes;         // this launch goes on with them
  // Matches leave through a ring of blocks: block b holds rows b * block_rows ...
  ID *ring;
  i64 block_rows, blocks;
  u64 *head;                   // rows that have a place
  u32 *filled;                 // per block of the ring: rows written
  volatile u64 *ready;         // per block of the ring, the host's: 1 + the number of the last block that is complete
  const volatile u64 *taken;   // blocks that have been taken: a copy behind theirs writes it
  // Stealing: who is at work, letters, the batches that come with them, and how often within and across blocks.
  u32 *desk;
  ID *mail;
  u64 *stolen;
};
#include "run_layout.cuh"

// Of steal.cuh.
struct Search;
__device__ void open_desk(const Run &run);
__device__ bool steal(Search &search, bool &on);
__device__ void open(Search &search, int step, u32 at, u32 end, bool on);
__device__ u32 close(int step);

// What a warp knows.
struct Search {
  const Run &run;
  Graph graph;
  ID *room;         // its shared memory
  ID *shares;       // where it keeps shared intersections
  u64 found;        // by this lane
  u32 turn;
  i64 asked;        // when the host's flag was last read
  bool over;
  const Run *given;
  u32 step = 0, low = 0, high = 0;  // a batch from elsewhere: the step to go on with, and which of its elements; 0: none
  bool made = false;                // ... which brings its shared intersections
  u32 looked = 0;                   // the turn when marks of blocks were last looked at

  // Now and then: whether to stop.
  __device__ __forceinline__ bool poll() {
    if (++turn & 63) return over;
    return stopped();
  }

  __device__ __forceinline__ bool stopped() {
    u32 stop = 0;
    if (LANE == 0) {
      // One warp asks the host often, and the others seldom: it lies far away, and one who asks waits for those before.
      const i64 pause = blockIdx.x == 0 && threadIdx.x == 0 ? 1 << 19 : 1 << 26;
      if (clock64() - asked > pause) {
        asked = clock64();
        if (*run.stop) atomicExch(run.halt, 1u);
      }
      stop = *(volatile u32 *)run.halt;
    }
    over = __shfl_sync(FULL, stop, 0) != 0;
    return over;
  }
};

__device__ __forceinline__ u32 before(u32 mask) { return __popc(mask & ((1u << LANE) - 1)); }

__device__ __forceinline__ u32 exclusive_sum(u32 value, u32 &total) {
  u32 sum = value;
  for (int step = 1; step < WARP; step <<= 1) {
    u32 other = __shfl_up_sync(FULL, sum, step);
    if (LANE >= step) sum += other;
  }
  total = __shfl_sync(FULL, sum, WARP - 1);
  return sum - value;
}

// The lane that element `at` belongs to, where lane i's elements begin at `first`: the last with first <= at.
__device__ __forceinline__ int owner_of(u32 first, u32 at) {
  int owner = 0;
  for (int step = WARP / 2; step; step >>= 1) {
    u32 there = __shfl_sync(FULL, first, (owner + step) % WARP);
    if (owner + step < WARP && there <= at) owner += step;
  }
  return owner;
}

// Where a round from `at` on ends: a warp's lanes are assigned to its next elements, of at most UNROLL lists at a time.
__device__ __forceinline__ u32 round_end(u32 first, u32 at, u32 total) {
  u32 end = min(at + WARP, total);
  if (UNROLL < WARP) {
    const int next = owner_of(first, at) + UNROLL;
    const u32 until = __shfl_sync(FULL, first, next % WARP);
    if (next < WARP) end = min(end, until);
  }
  return end;
}

// A lane's list, for all.
__device__ __forceinline__ Begin from_lane(const Begin &list, int lane) {
#ifdef BIT_PACKED
  return {(const u32 *)__shfl_sync(FULL, (u64)list.words, lane), __shfl_sync(FULL, list.how, lane),
          __shfl_sync(FULL, list.least, lane)};
#else
  return (Begin)__shfl_sync(FULL, (u64)list, lane);
#endif
}

__device__ __forceinline__ Elements list_of(const Run &run, int partition, i64 vertex) {
  return list_in(run.partitions[partition], vertex);
}

__device__ __forceinline__ void swap_if(bool yes, Elements &a, Elements &b) {
  if (yes) {
    Elements c = a;
    a = b;
    b = c;
  }
}

// Cut off what is below `least`.
__device__ __forceinline__ void cut(Elements &list, i64 least) {
  u32 gone = (u32)find(list.ids, 0, list.count, least);
  list.ids = behind(list.ids, gone);
  list.count -= gone;
}

// Reserve places for a warp's rows, and wait until the host has room for them: the lane's row, or -1 to drop it.
__device__ __forceinline__ i64 place(Search &search, u32 mask) {
  const Run &run = search.run;
  u64 base = 0;
  if (LANE == 0) base = atomicAdd(run.head, (u64)__popc(mask));
  base = __shfl_sync(FULL, base, 0);
  i64 last = (i64)base + __popc(mask) - 1;
  if (run.limit >= 0 && last + 1 >= run.limit) {
    if (LANE == 0) atomicExch(run.halt, 1u);
    last = min(last, run.limit - 1);
  }
  u32 stop = 0;
  if (LANE == 0 && last >= (i64)base)
    for (u32 turn = 0; last / run.block_rows >= (i64)*run.taken + run.blocks && !stop; ++turn) {
      __nanosleep(1000);
      stop = turn % 4096 == 4095 && *run.stop;  // seldom: the host's memory is far away
    }
  if (__shfl_sync(FULL, stop, 0)) {
    if (LANE == 0) atomicExch(run.halt, 1u);
    search.over = true;
    return -1;
  }
  i64 row = (i64)base + before(mask);
  return mask >> LANE & 1 && row <= last ? row : -1;
}

// Say that rows have been written: whoever completes a block tells the host.
__device__ __forceinline__ void written(Search &search, i64 row) {
  const Run &run = search.run;
  __threadfence();
  i64 block = row < 0 ? -1 : row / run.block_rows;
  for (u32 left = __ballot_sync(FULL, block >= 0); left;) {
    int first = __ffs(left) - 1;
    i64 here = __shfl_sync(FULL, block, first);
    u32 same = __ballot_sync(FULL, block == here);
    if (LANE == 0) {
      u32 *filled = run.filled + here % run.blocks;
      u32 count = __popc(same);
      if (atomicAdd(filled, count) + count == (u32)run.block_rows) {
        atomicExch(filled, 0u);
        __threadfence_system();
        run.ready[here % run.blocks] = (u64)here + 1;
      }
    }
    left &= ~same;
  }
  __syncwarp();
}

// With a limit: say what has been found, and stop when it is enough.
__device__ __forceinline__ void report(Search &search) {
  u64 sum = search.found;
  for (int step = WARP / 2; step; step >>= 1) sum += __shfl_xor_sync(FULL, sum, step);
  search.found = 0;
  u32 enough = 0;
  if (LANE == 0 && sum) enough = atomicAdd(search.run.found, sum) + sum >= (u64)search.run.limit;
  if (__shfl_sync(FULL, enough, 0)) {
    if (LANE == 0) atomicExch(search.run.halt, 1u);
    search.over = true;
  }
}

// Intersect each lane's lists, a of which is the shorter, and write lane i's common values from to + i * stride on: how
// many they are.
__device__ __forceinline__ u32 intersect(Search &search, const Elements &a, const Elements &b, ID *to, i64 stride) {
  u32 total, passed = 0;
  const u32 first = exclusive_sum(a.count, total);
  for (u32 at = 0, end; at < total; at = end) {
    if (search.poll()) return passed;
    end = round_end(first, at, total);
    const u32 mine = at + LANE;
    const int owner = owner_of(first, mine);
    const Begin list = from_lane(a.ids, owner), other = from_lane(b.ids, owner);
    const u32 begin = __shfl_sync(FULL, first, owner), n = __shfl_sync(FULL, b.count, owner);
    const u32 before_now = __shfl_sync(FULL, passed, owner);
    bool ok = mine < end;
    const ID x = ok ? element(list, mine - begin) : 0;
    ok = ok && holds(other, 0, n, x);
    const u32 mask = __ballot_sync(FULL, ok);
    const u32 near = begin > at ? begin - at : 0;  // the owner's first lane
    if (ok) to[owner * stride + before_now + __popc(mask & ((1u << LANE) - 1) & ~((1u << near) - 1))] = x;
    // Of the lane's own list, elements low ... high are in this round.
    const u32 low = first > at ? min(first - at, (u32)WARP) : 0;
    const u32 high = first + a.count > at ? min(first + a.count - at, (u32)WARP) : 0;
    if (high > low) passed += __popc(mask >> low << low & (high < 32 ? (1u << high) - 1 : FULL));
  }
  return passed;
}

#include "plan.cuh"

#if STEAL
#include "steal.cuh"
#endif

// How many elements a root has in the partition by whose lists work is scheduled.
__device__ __forceinline__ u32 elements_of(const Partition *partitions, const ID *scan, i64 roots, i64 root) {
  if (root >= roots) return 0;
  return list_in(partitions[SECOND], __ldg(scan + root)).count;
}

// How many each WARP roots have together.
extern "C" __global__ void degrees(const Partition *partitions, const ID *scan, i64 roots, i64 *out) {
  const i64 root = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  u32 total;
  exclusive_sum(elements_of(partitions, scan, roots, root), total);
  if (LANE == 0 && root < roots) out[root / WARP] = total;
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) search(const Run *given) {
  const Run run = *given;
  const i64 warps = gridDim.x * (i64)(blockDim.x / WARP);
  Search search = {run, {run.partitions, run.uncertain, run.resources, run.type_label},
                   batches + (threadIdx.x / WARP) * ROOM,
                   run.shares + (blockIdx.x * (i64)(blockDim.x / WARP) + threadIdx.x / WARP) * run.share_ids, 0, 0, clock64(),
                   false, given};
  if constexpr (STEAL > 0) open_desk(run);
  const i64 waiting = run.resumes ? (i64)min(*run.pooled, *run.pool_end) : 0;
  const i64 some = max(min(waiting / (warps * 32), (i64)WARP), (i64)1);  // of the pool, per task
  const i64 tasks = run.resumes ? (waiting + some - 1) / some : (run.elements + run.piece - 1) / run.piece;
  i64 begin = 0, end = 0, root = run.roots;  // of a task: its elements, and which root comes next
  while (!search.over) {
    bool on = false;
    i64 low = 0, high = 0;  // of each root's list, where the task begins and ends
    if (root >= run.roots) {
      search.turn = 63;
      if (search.poll()) break;
      i64 task = 0;
      if (LANE == 0) task = (i64)atomicAdd(run.next, 1ull);
      task = __shfl_sync(FULL, task, 0);
      if (task >= tasks) {
        if constexpr (STEAL > 0) {
          if (!steal(search, on)) break;
        } else {
          break;
        }
      } else if (run.resumes) {
        on = resume(search, task * some, (u32)min(some, waiting - task * some));
      } else {
        begin = task * run.piece, end = min(begin + run.piece, run.elements);
        root = run.ends ? WARP * find(run.ends, 0, (run.roots + WARP - 1) / WARP, begin + 1) : begin;
      }
    }
    if (root < run.roots) {
      // The roots whose elements these are, a batch at a time.
      const i64 mine = root + LANE;
      i64 from = mine, to = mine + 1;
      if (run.ends) {
        u32 total;
        const u32 count = elements_of(run.partitions, run.scan, run.roots, mine);
        from = exclusive_sum(count, total) + (root ? run.ends[root / WARP - 1] : 0);
        to = from + count;
      }
      on = mine < run.roots && from < end && to > begin;
      root = __ballot_sync(FULL, on) ? root + WARP : run.roots;
      low = max(begin - from, (i64)0), high = min(end, to) - from;
      on = start(search, on, on ? __ldg(run.scan + mine) : 0);
    }
    extend(search, on, low, high);
  }
  u64 sum = search.found;
  for (int step = WARP / 2; step; step >>= 1) sum += __shfl_xor_sync(FULL, sum, step);
  if (LANE == 0 && sum) atomicAdd(run.found, sum);
}

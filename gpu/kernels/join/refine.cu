// Candidate sets refined along the edges of a pattern: a candidate stays one if it has the neighbours that it needs.
//
// What fits where stands in `fits`, one u64 per data vertex: bit u says that it is a candidate of pattern vertex u.  So one
// pass over the neighbours of a candidate tests all pattern edges of one relation at once.  A level has pattern vertices
// of which no two are joined: none of them asks for a bit that another one drops.  One launch does it all, since a level
// takes less time than a launch: its blocks, which must all run at a time, wait for each other after each level.
//
// A warp has a candidate, a block those of one pattern vertex.  Lists that are too long for a warp are scanned by
// the block together.

#include "sets.cuh"

#ifndef THREADS
#define THREADS 256
#endif
#ifndef LONG
#define LONG 1024
#endif

const int WARPS = THREADS / 32;
const int MOST_GROUPS = 32;

// A pattern vertex: its number, those joined with it (bits), its arcs and candidates, and where its pieces begin among
// those of all: WARPS candidates each, or THREADS each.
struct Vertex {
  i64 number, near, first_arc, last_arc;
  const ID *candidates;
  i64 size, pieces, tiles;
};

// The vertices [first, last), which have so many pieces.
struct Level {
  i64 first, last, pieces;
};

// What a candidate needs in one relation: neighbours that fit all of these (bits), in groups, and how many at least.
struct Arc {
  i64 vertex, partition, need, first, last, least;
};

// So many different neighbours must each fit one of these pattern vertices.
struct Group {
  i64 fits, least;
};
#include "refinement_layout.cuh"

// What may have been written since the kernel began, by any block.
template <typename T>
__device__ __forceinline__ T fresh(const T *address) {
  return *(const volatile T *)address;
}

// Where all blocks wait for each other; what each wrote before, all see after.
struct Meeting {
  u64 *arrived, expected = 0;

  __device__ __forceinline__ void wait() {
    __syncthreads();
    expected += gridDim.x;
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(arrived, 1ull);
      while (fresh(arrived) < expected) __nanosleep(20);
      __threadfence();
    }
    __syncthreads();
  }
};

// What a warp has not seen yet, and how many neighbours it has seen: lane g those of group g.
struct Seen {
  u64 missing;
  u32 count;

  __device__ __forceinline__ bool enough(const Arc &arc, const Group *groups) const {
    i64 group = arc.first + threadIdx.x % 32;
    return !__any_sync(~0u, group < arc.last && count < groups[group].least) && missing == 0;
  }
};

// What is asked of candidates, and what is left of them.
struct Refinement {
  const Vertex *vertices;
  const Arc *arcs;
  const Group *groups;
  const Partition *partitions;
  u64 *fits;
  // When a pattern vertex lost a candidate last, and how many each pass has dropped.
  i64 *changed;
  u64 *dropped;

  // Goes through some neighbours, 32 at a time and `stride` on, until all that is needed was seen.
  __device__ __forceinline__ Seen look(const ID *neighbours, i64 begin, i64 end, i64 stride, const Arc &arc) const {
    u32 lane = threadIdx.x % 32;
    Seen seen = {(u64)arc.need, 0};
    for (i64 at = begin; at < end; at += stride) {
      u64 here = at + lane < end ? fresh(fits + neighbours[at + lane]) : 0;
      for (u64 left = seen.missing; left; left &= left - 1) {
        u64 wanted = left & (0 - left);
        if (__any_sync(~0u, (here & wanted) != 0)) seen.missing ^= wanted;
      }
      for (i64 group = arc.first; group < arc.last; ++group) {
        u32 more = __popc(__ballot_sync(~0u, (here & (u64)groups[group].fits) != 0));
        if (lane == group - arc.first) seen.count += more;
      }
      if (seen.enough(arc, groups)) break;
    }
    return seen;
  }

  // Whether a warp finds what x needs; `later` says that some list is left to the block.
  __device__ __forceinline__ bool supported(const Vertex &own, i64 x, bool &later) const {
    for (i64 a = own.first_arc; a < own.last_arc; ++a) {
      const Arc arc = arcs[a];
      const Partition &partition = partitions[arc.partition];
      Span span = neighbours_of(partition, x);
      if (span.end - span.begin < arc.least) return false;
      if (span.end - span.begin > LONG)
        later = true;
      else if (!look(partition.neighbours, span.begin, span.end, 32, arc).enough(arc, groups))
        return false;
    }
    return true;
  }

  // Whether the block finds it in the long lists.
  __device__ __forceinline__ bool supported_by_long(const Vertex &own, i64 x) const {
    __shared__ u32 counts[MOST_GROUPS];
    __shared__ u64 missing;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (i64 a = own.first_arc; a < own.last_arc; ++a) {
      const Arc arc = arcs[a];
      const Partition &partition = partitions[arc.partition];
      Span span = neighbours_of(partition, x);
      if (span.end - span.begin <= LONG) continue;
      if (threadIdx.x < MOST_GROUPS) counts[threadIdx.x] = 0;
      if (threadIdx.x == 0) missing = arc.need;
      __syncthreads();
      Seen seen = look(partition.neighbours, span.begin + 32 * warp, span.end, THREADS, arc);
      if (lane == 0) atomicAnd(&missing, seen.missing);
      if (seen.count) atomicAdd(counts + lane, seen.count);
      __syncthreads();
      bool good = Seen{missing, counts[lane]}.enough(arc, groups);
      __syncthreads();
      if (!good) return false;
    }
    return true;
  }

  // Drops those of a piece's candidates that lack a neighbour.
  __device__ __forceinline__ void drop(const Vertex &own, i64 piece, i64 pass, i64 now) const {
    __shared__ i64 postponed[WARPS];
    __shared__ u32 lost;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    i64 at = piece * WARPS + warp;
    i64 x = at < own.size ? (i64)own.candidates[at] : -1;
    if (x >= 0 && !(fresh(fits + x) >> own.number & 1)) x = -1;
    bool later = false, good = x < 0 || supported(own, x, later);
    if (lane == 0) postponed[warp] = good && later ? x : -1;
    if (threadIdx.x == 0) lost = 0;
    __syncthreads();
    for (int w = 0; w < WARPS; ++w) {
      if (postponed[w] < 0) continue;
      bool fine = supported_by_long(own, postponed[w]);
      if (w == warp) good = fine;
    }
    if (lane == 0 && !good) {
      atomicAnd(fits + x, ~(1ull << own.number));
      atomicAdd(&lost, 1u);
    }
    __syncthreads();
    if (threadIdx.x == 0 && lost) {
      atomicAdd(dropped + pass, (u64)lost);
      changed[own.number] = now;
    }
    __syncthreads();  // compilers have every thread read `lost`: the next piece must not begin it anew meanwhile
  }

  // Whether a vertex joined with this one has lost candidates since then.
  __device__ __forceinline__ bool stale(const Vertex &own, i64 since) const {
    for (u64 near = own.near; near; near &= near - 1)
      if (fresh(changed + (__ffsll(near) - 1)) > since) return true;
    return false;
  }
};

// Makes `fits`, drops candidates until a pass finds few, and writes one bit per candidate that is left; each vertex
// begins with a word of its own.  `total` is the number of candidates, `tiles` how many all have.
extern "C" __global__ void refine(const Vertex *vertices, i64 count, i64 tiles, const Level *levels, i64 deep,
                                  const Arc *arcs, const Group *groups, const Partition *partitions, u64 *fits,
                                  i64 size, i64 *changed, u64 *dropped, u64 *arrived, i64 passes, i64 few, i64 total,
                                  u32 *words) {
  Refinement task = {vertices, arcs, groups, partitions, fits, changed, dropped};
  Meeting all = {arrived};
  for (i64 x = blockIdx.x * (i64)THREADS + threadIdx.x; x < size; x += gridDim.x * (i64)THREADS) fits[x] = 0;
  all.wait();
  const Vertex *own = vertices;
  for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    while (own + 1 < vertices + count && own[1].tiles <= tile) ++own;
    i64 at = (tile - own->tiles) * THREADS + threadIdx.x;
    if (at < own->size) atomicOr(fits + own->candidates[at], 1ull << own->number);
  }
  all.wait();
  for (i64 pass = 0; pass < passes; ++pass) {
    for (i64 step = 0; step < deep; ++step) {
      const Level level = levels[pass % 2 ? deep - 1 - step : step];
      // When these were looked at before: the last pass went the other way.
      i64 now = pass * deep + step, before = pass * deep - 1 - step;
      own = vertices + level.first;
      for (i64 piece = blockIdx.x; piece < level.pieces; piece += gridDim.x) {
        while (own + 1 < vertices + level.last && own[1].pieces <= piece) ++own;
        if (pass == 0 || task.stale(*own, before)) task.drop(*own, piece - own->pieces, pass, now);
      }
      all.wait();
    }
    i64 gone = (i64)fresh(dropped + pass);
    total -= gone;
    if (few * gone < total) break;
  }
  own = vertices;
  for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    while (own + 1 < vertices + count && own[1].tiles <= tile) ++own;
    i64 at = (tile - own->tiles) * THREADS + threadIdx.x;
    u32 word = __ballot_sync(~0u, at < own->size && fresh(fits + own->candidates[at]) >> own->number & 1);
    if (threadIdx.x % 32 == 0) words[(tile * THREADS + threadIdx.x) / 32] = word;
  }
}

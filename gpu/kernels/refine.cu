// Candidate sets refined along the edges of a pattern: a candidate stays one if it has the neighbours that it needs.
//
// What fits where stands in `fits`, one u64 per data vertex: bit u says that it is a candidate of pattern vertex u.  So one
// pass over the neighbours of a candidate tests all pattern edges of one relation at once.  A launch looks at pattern
// vertices of which no two are joined: none of them asks for a bit that another one drops.
//
// A warp has a candidate, a block those of one pattern vertex.  Lists that are too long for a warp are gone through by
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

// A pattern vertex: its number, those joined with it (bits), its arcs and candidates, and the first block that looks at
// some of them (WARPS each), or goes through them (THREADS each).
struct Vertex {
  i64 number, near, first_arc, last_arc;
  const ID *candidates;
  i64 size, looks, goes;
};

// What a candidate needs in one relation: neighbours that fit all of these (bits), in groups, and how many at least.
struct Arc {
  i64 vertex, partition, need, first, last, least;
};

// So many different neighbours must each fit one of these pattern vertices.
struct Group {
  i64 fits, least;
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

// The last of the vertices [first, last) that begins at this block or before; `begin` says where they begin.
template <typename Begin>
__device__ __forceinline__ const Vertex *vertex_of_block(const Vertex *vertices, i64 first, i64 last, Begin begin) {
  i64 own = first, block = begin(vertices[first]) + blockIdx.x;
  while (own + 1 < last && begin(vertices[own + 1]) <= block) ++own;
  return vertices + own;
}

// Goes through some neighbours, 32 at a time and `stride` on, until all that is needed was seen.
__device__ __forceinline__ Seen look(const ID *neighbours, i64 begin, i64 end, i64 stride, const Arc &arc,
                                     const Group *groups, const u64 *fits) {
  u32 lane = threadIdx.x % 32;
  Seen seen = {(u64)arc.need, 0};
  for (i64 at = begin; at < end; at += stride) {
    u64 here = at + lane < end ? fits[neighbours[at + lane]] : 0;
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

extern "C" __global__ void spread(const Vertex *vertices, i64 count, u64 *fits) {
  const Vertex *own = vertex_of_block(vertices, 0, count, [](const Vertex &v) { return v.goes; });
  i64 at = (blockIdx.x - own->goes) * THREADS + threadIdx.x;
  if (at < own->size) atomicOr(fits + own->candidates[at], 1ull << own->number);
}

// Drops candidates of the vertices [first, last) that lack a neighbour.  `changed` says when a pattern vertex lost one
// last, `left` how many it has.  One whose neighbours lost none since `before`, when it was looked at, is passed over.
extern "C" __global__ void drop_unsupported(const Vertex *vertices, i64 first, i64 last, const Arc *arcs,
                                            const Group *groups, const Partition *partitions, u64 *fits, i64 *changed,
                                            i64 *left, i64 now, i64 before) {
  __shared__ i64 postponed[WARPS];
  __shared__ u32 counts[MOST_GROUPS], dropped;
  __shared__ u64 missing;
  const Vertex *own = vertex_of_block(vertices, first, last, [](const Vertex &v) { return v.looks; });
  bool stale = before < 0;
  for (u64 near = own->near; near && !stale; near &= near - 1) stale = changed[__ffsll(near) - 1] > before;
  if (!stale) return;
  u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  i64 at = (blockIdx.x + vertices[first].looks - own->looks) * WARPS + warp;
  i64 x = at < own->size ? (i64)own->candidates[at] : -1;
  if (x >= 0 && !(fits[x] >> own->number & 1)) x = -1;
  bool good = true, later = false;
  for (i64 a = own->first_arc; x >= 0 && good && a < own->last_arc; ++a) {
    const Arc arc = arcs[a];
    const Partition &partition = partitions[arc.partition];
    Span span = neighbours_of(partition, x);
    if (span.end - span.begin < arc.least)
      good = false;
    else if (span.end - span.begin > LONG)
      later = true;
    else
      good = look(partition.neighbours, span.begin, span.end, 32, arc, groups, fits).enough(arc, groups);
  }
  if (lane == 0) postponed[warp] = good && later ? x : -1;
  if (threadIdx.x == 0) dropped = 0;
  __syncthreads();
  for (int w = 0; w < WARPS; ++w) {
    if (postponed[w] < 0) continue;
    bool fine = true;
    for (i64 a = own->first_arc; fine && a < own->last_arc; ++a) {
      const Arc arc = arcs[a];
      const Partition &partition = partitions[arc.partition];
      Span span = neighbours_of(partition, postponed[w]);
      if (span.end - span.begin <= LONG) continue;
      if (threadIdx.x < MOST_GROUPS) counts[threadIdx.x] = 0;
      if (threadIdx.x == 0) missing = arc.need;
      __syncthreads();
      Seen seen = look(partition.neighbours, span.begin + 32 * warp, span.end, THREADS, arc, groups, fits);
      if (lane == 0) atomicAnd(&missing, seen.missing);
      if (seen.count) atomicAdd(counts + lane, seen.count);
      __syncthreads();
      fine = Seen{missing, counts[lane]}.enough(arc, groups);
      __syncthreads();
    }
    if (w == warp) good = fine;
  }
  if (lane == 0 && x >= 0 && !good) {
    atomicAnd(fits + x, ~(1ull << own->number));
    atomicAdd(&dropped, 1u);
  }
  __syncthreads();
  if (threadIdx.x == 0 && dropped) {
    atomicAdd((u64 *)left + own->number, 0 - (u64)dropped);
    changed[own->number] = now;
  }
}

// One bit per candidate that is left; each vertex begins with a word of its own.
extern "C" __global__ void mark_left(const Vertex *vertices, i64 count, const u64 *fits, u32 *words) {
  const Vertex *own = vertex_of_block(vertices, 0, count, [](const Vertex &v) { return v.goes; });
  i64 at = (blockIdx.x - own->goes) * THREADS + threadIdx.x;
  bool fit = at < own->size && fits[own->candidates[at]] >> own->number & 1;
  u32 word = __ballot_sync(~0u, fit);
  if (threadIdx.x % 32 == 0) words[(blockIdx.x * (i64)THREADS + threadIdx.x) / 32] = word;
}

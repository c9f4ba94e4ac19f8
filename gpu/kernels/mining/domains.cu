// Domains of patterns (minimum image support), a block for each pattern: as graphdb/mining/frequent_kernels.py finds them.
//
// Candidates and domains are rows of bits.  Threads take bytes of a row, so that sparse rows and dense ones are both shared
// evenly; who finds an embedding sets bits of all its vertices' domains, whoever looks for them.

#include "teams.cuh"

#include "domain_layout.cuh"

const int PLACES = 6, EDGES = 5, STEPS = 20;

// A pattern's edge: two places, and the code as the first sees it.
struct Edge {
  i64 a, b, code;
};

// A place bound next, and what joins it to those before it: (place, code as that one sees it).
struct Bound {
  int place, joined;
  int other[EDGES];
  i64 code[EDGES];
};

struct Shape {
  int size, count, steps;
  Edge edges[EDGES];
  int orbits[PLACES];
  Edge join[STEPS];
  Bound plan[PLACES];
};

struct Lists {
  const i64 *offsets, *keys;
  i64 n;
};

__device__ __forceinline__ i64 first_at_least(const i64 *keys, i64 begin, i64 end, i64 least) {
  while (begin < end) {
    const i64 middle = (begin + end) >> 1;
    if (__ldg(keys + middle) < least) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

__device__ __forceinline__ i64 seen_from(const Edge &edge, i64 place, bool directed) {
  return directed && place == edge.b ? edge.code ^ 1 : edge.code;
}

// The steps of the join: along the edges that close cycles, then up and down a spanning tree.
__device__ void plan_join(Shape &shape, bool directed) {
  Edge tree[EDGES];
  int found = 0, total = 0;
  u32 inside = 1, used = 0;
  while (found < shape.size - 1) {
    for (int e = 0; e < shape.count; ++e) {
      const Edge &edge = shape.edges[e];
      const bool in = inside >> edge.a & 1, other = inside >> edge.b & 1;
      if (in == other) continue;
      const i64 parent = in ? edge.a : edge.b, child = in ? edge.b : edge.a;
      tree[found++] = {parent, child, e};
      inside |= 1u << child;
      used |= 1u << e;
    }
  }
  for (int e = 0; e < shape.count; ++e) {
    const Edge &edge = shape.edges[e];
    if (used >> e & 1) continue;
    shape.join[total++] = {edge.a, edge.b, seen_from(edge, edge.a, directed)};
    shape.join[total++] = {edge.b, edge.a, seen_from(edge, edge.b, directed)};
  }
  for (int t = found - 1; t >= 0; --t)
    shape.join[total++] = {tree[t].a, tree[t].b, seen_from(shape.edges[tree[t].code], tree[t].a, directed)};
  for (int t = 0; t < found; ++t)
    shape.join[total++] = {tree[t].b, tree[t].a, seen_from(shape.edges[tree[t].code], tree[t].b, directed)};
  shape.steps = total;
}

// The order in which places are bound from a root on: next comes a place with most edges to those before it.
__device__ void plan_search(Shape &shape, int root, bool directed) {
  u32 inside = 1u << root;
  shape.plan[0].place = root;
  shape.plan[0].joined = 0;
  for (int d = 1; d < shape.size; ++d) {
    int best = -1, most = 0;
    for (int place = 0; place < shape.size; ++place) {
      int joined = 0;
      for (int e = 0; e < shape.count; ++e) {
        const Edge &edge = shape.edges[e];
        joined += (edge.a == place && inside >> edge.b & 1) || (edge.b == place && inside >> edge.a & 1);
      }
      if (!(inside >> place & 1) && joined > most) best = place, most = joined;
    }
    Bound &bound = shape.plan[d];
    bound.place = best;
    bound.joined = 0;
    for (int e = 0; e < shape.count; ++e) {
      const Edge &edge = shape.edges[e];
      const i64 other = edge.a == best ? edge.b : edge.a;
      if ((edge.a != best && edge.b != best) || !(inside >> other & 1)) continue;
      bound.other[bound.joined] = (int)other;
      bound.code[bound.joined++] = seen_from(edge, other, directed);
    }
    inside |= 1u << best;
  }
}

// Whether a vertex has a neighbour by edges of a code among candidates.
__device__ __forceinline__ bool joined_with(const Lists &lists, i64 vertex, i64 code, const u32 *candidates) {
  const i64 end = __ldg(lists.offsets + vertex + 1), least = code * lists.n;
  i64 at = first_at_least(lists.keys, __ldg(lists.offsets + vertex), end, least);
  for (; at < end; ++at) {
    const i64 other = __ldg(lists.keys + at) - least;
    if (other >= lists.n) return false;
    if (bit(candidates, (int)other)) return true;
  }
  return false;
}

// Search for an embedding in which the plan's root takes a vertex: whether there is one, and where it puts each place.
__device__ bool search(const Lists &lists, const Shape &shape, const u32 *candidates, i64 words, int vertex,
                       int (&put)[PLACES], const volatile int *stop) {
  i64 at[PLACES], end[PLACES];
  int depth = 0;
  u32 steps = 0;
  put[shape.plan[0].place] = vertex;
  for (bool enter = true;;) {
    if (enter) {
      if (++depth == shape.size) return true;
      const Bound &bound = shape.plan[depth];
      const int from = put[bound.other[0]];
      const i64 last = __ldg(lists.offsets + from + 1);
      at[depth] = first_at_least(lists.keys, __ldg(lists.offsets + from), last, bound.code[0] * lists.n);
      end[depth] = first_at_least(lists.keys, at[depth], last, (bound.code[0] + 1) * lists.n);
      enter = false;
    }
    if (at[depth] == end[depth]) {
      if (--depth == 0) return false;
      continue;
    }
    if ((++steps & 0xfff) == 0 && *stop) return false;
    const Bound &bound = shape.plan[depth];
    const i64 next = __ldg(lists.keys + at[depth]++) - bound.code[0] * lists.n;
    bool fits = bit(candidates + bound.place * words, (int)next);
    for (int d = 0; d < depth && fits; ++d) fits = put[shape.plan[d].place] != next;
    for (int c = 1; c < bound.joined && fits; ++c) {
      const int from = put[bound.other[c]];
      const i64 last = __ldg(lists.offsets + from + 1), wanted = bound.code[c] * lists.n + next;
      const i64 there = first_at_least(lists.keys, __ldg(lists.offsets + from), last, wanted);
      fits = there < last && __ldg(lists.keys + there) == wanted;
    }
    if (!fits) continue;
    put[bound.place] = (int)next;
    enter = true;
  }
}

__device__ __forceinline__ i64 ones(const u32 *row, i64 words) {
  i64 own = 0;
  for (i64 w = threadIdx.x; w < words; w += blockDim.x) own += __popc(row[w]);
  return Block::sum(own);
}

// Whether the pattern is a tree whose places cannot take the same vertex: those joined never do.
__device__ bool apart(const Shape &shape, const u32 *candidates, i64 words) {
  if (shape.count != shape.size - 1) return false;
  i64 shared = 0;
  for (int a = 0; a < shape.size; ++a) {
    for (int b = a + 1; b < shape.size; ++b) {
      bool joined = false;
      for (int e = 0; e < shape.count; ++e) {
        const Edge &edge = shape.edges[e];
        joined = joined || (edge.a == a && edge.b == b) || (edge.a == b && edge.b == a);
      }
      if (joined) continue;
      for (i64 w = threadIdx.x; w < words; w += blockDim.x)
        shared += (candidates[a * words + w] & candidates[b * words + w]) != 0;
    }
  }
  return Block::sum(shared) == 0;
}

// Candidates without a neighbour among those of the next place go; false where too few are left.
__device__ bool join(const Lists &lists, const Shape &shape, u32 *candidates, i64 words, i64 support) {
  for (int s = 0; s < shape.steps; ++s) {
    const Edge &step = shape.join[s];
    unsigned char *row = (unsigned char *)(candidates + step.a * words);
    i64 left = 0;
    for (i64 i = threadIdx.x; i < 4 * words; i += blockDim.x) {
      const u32 before = row[i];
      u32 after = before;
      for (u32 bits = before; bits; bits &= bits - 1) {
        const int b = __ffs(bits) - 1;
        if (!joined_with(lists, i * 8 + b, step.code, candidates + step.b * words)) after &= ~(1u << b);
      }
      if (after != before) row[i] = (unsigned char)after;
      left += __popc(after);
    }
    if (Block::sum(left) < support) return false;
  }
  return true;
}

// Each candidate that is in no embedding found so far is searched for one; false where too few are left.
__device__ bool verify(const Lists &lists, Shape &shape, u32 *candidates, u32 *domains, i64 words, i64 support,
                       bool directed, u32 *excluded, const volatile int *stop) {
  for (int p = 0; p < shape.size; ++p)
    if (shape.orbits[p] != p)
      for (i64 w = threadIdx.x; w < words; w += blockDim.x)
        candidates[shape.orbits[p] * words + w] &= candidates[p * words + w];
  __syncthreads();
  for (int p = 0; p < shape.size; ++p)
    if (shape.orbits[p] != p)
      for (i64 w = threadIdx.x; w < words; w += blockDim.x)
        candidates[p * words + w] = candidates[shape.orbits[p] * words + w];
  __syncthreads();
  for (int p = 0; p < shape.size; ++p) {
    if (shape.orbits[p] != p) continue;
    const i64 left = ones(candidates + p * words, words);
    if (left < support) return false;
    if (threadIdx.x == 0) {
      plan_search(shape, p, directed);
      *excluded = 0;
    }
    __syncthreads();
    unsigned char *row = (unsigned char *)(candidates + p * words);
    const volatile unsigned char *found = (const volatile unsigned char *)(domains + p * words);
    for (i64 i = threadIdx.x; i < 4 * words; i += blockDim.x) {
      u32 failed = 0;
      for (u32 bits = row[i]; bits; bits &= bits - 1) {
        const int b = __ffs(bits) - 1;
        if (found[i] >> b & 1) continue;
        if (left - (i64)*(volatile u32 *)excluded < support) break;
        int put[PLACES];
        if (!search(lists, shape, candidates, words, (int)(i * 8 + b), put, stop)) {
          failed |= 1u << b;
          atomicAdd(excluded, 1u);
          continue;
        }
        for (int place = 0; place < shape.size; ++place)
          set_bit(domains + shape.orbits[place] * words, put[place]);
      }
      if (failed) row[i] &= (unsigned char)~failed;
    }
    __syncthreads();
    if (ones(domains + p * words, words) < support) return false;
    for (int other = 0; other < shape.size; ++other)
      if (shape.orbits[other] == p)
        for (i64 w = threadIdx.x; w < words; w += blockDim.x)
          candidates[other * words + w] = domains[p * words + w];
    __syncthreads();
  }
  return true;
}

// patterns has PATTERN_CELLS numbers for each (gpu/code/layout.py); rows[source] is the address of a place's candidates.
// Patterns have `most` places at most; scratch has twice as many rows of bits for each block, or is null where they lie
// in shared memory.  supports gets 0 where the
// support is too small; out (or null) the domains of each pattern's places, of those that stand for their orbits.
extern "C" __global__ void __launch_bounds__(THREADS)
domains(const i64 *offsets, const i64 *keys, i64 n, i64 directed, const i64 *patterns, i64 count, const u64 *rows,
        i64 words, i64 most, i64 support, u32 *scratch, i64 *supports, int *examples, u32 *out, u64 *next,
        const volatile int *stop) {
  extern __shared__ u64 shared_memory[];
  __shared__ Shape shape;
  __shared__ u32 excluded;
  const Lists lists = {offsets, keys, n};
  u32 *candidates = scratch ? scratch + 2 * most * words * blockIdx.x : (u32 *)shared_memory;
  u32 *found = candidates + most * words;
  TaskCounter<Block> tasks_left = {next, stop};
  for (;;) {
    const u64 task = tasks_left.take();
    if (task >= (u64)count) break;
    const i64 *pattern = patterns + PATTERN_CELLS * task;
    if (threadIdx.x == 0) {
      shape.size = (int)pattern[SIZE];
      shape.count = (int)pattern[COUNT];
      for (int e = 0; e < EDGES; ++e)
        shape.edges[e] = {pattern[EDGES_AT + 3 * e], pattern[EDGES_AT + 3 * e + 1], pattern[EDGES_AT + 3 * e + 2]};
      for (int p = 0; p < PLACES; ++p) shape.orbits[p] = (int)pattern[ORBITS_AT + p];
      plan_join(shape, directed);
    }
    __syncthreads();
    bool frequent = true;
    for (int p = 0; p < shape.size; ++p) {
      const u32 *row = (const u32 *)rows[pattern[SOURCES_AT + p]];
      for (i64 w = threadIdx.x; w < words; w += blockDim.x) {
        candidates[p * words + w] = row[w];
        found[p * words + w] = 0;
      }
    }
    __syncthreads();
    for (int p = 0; p < shape.size && frequent; ++p) frequent = ones(candidates + p * words, words) >= support;
    frequent = frequent && join(lists, shape, candidates, words, support);
    if (frequent && apart(shape, candidates, words)) {
      for (i64 w = threadIdx.x; w < shape.size * words; w += blockDim.x) found[w] = candidates[w];
      __syncthreads();
    } else if (frequent) {
      frequent = verify(lists, shape, candidates, found, words, support, directed, &excluded, stop);
    }
    i64 least = frequent ? (i64)1 << 62 : 0;
    for (int p = 0; p < shape.size && frequent; ++p) {
      if (shape.orbits[p] != p) continue;
      const i64 taken = ones(found + p * words, words);
      least = taken < least ? taken : least;
    }
    if (frequent && out)
      for (i64 w = threadIdx.x; w < shape.size * words; w += blockDim.x)
        out[task * PLACES * words + w] = found[shape.orbits[w / words] * words + w % words];
    if (threadIdx.x == 0) {
      supports[task] = least;
      if (frequent) {  // candidates are the domains: an embedding of the lowest vertex, the same every time
        int put[PLACES] = {0, 0, 0, 0, 0, 0};
        i64 w = 0;
        while (!found[w]) ++w;
        plan_search(shape, 0, directed);
        search(lists, shape, candidates, words, (int)(w * 32 + __ffs(found[w]) - 1), put, stop);
        for (int p = 0; p < PLACES; ++p) examples[task * PLACES + p] = put[p];
      }
    }
    __syncthreads();
  }
}

// Rows that stay, one after the other.
extern "C" __global__ void __launch_bounds__(THREADS)
gather(const u32 *rows, const i64 *which, i64 count, i64 width, u32 *out) {
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < count * width; i += gridDim.x * (i64)blockDim.x)
    out[i] = rows[which[i / width] * width + i % width];
}

// Cliques of SIZE vertices over the graph oriented by degree (SMOG §III; Chiba and Nishizeki).
//
// For each vertex u the neighbours of higher rank are a small graph of their own: a matrix of bits in shared memory, of
// whose rows only the words from the diagonal on are kept, as many as u's neighbours need.
// Its rows are found by going through their lists and asking a bit per vertex; where a bit stands among all of u's is
// the number of bits before it, stored per word.  In the matrix the other vertices are chosen in rising order: what can
// still be chosen is a row of bits in registers, and the last choice is a count of bits.
//
// Most vertices have few neighbours of higher rank.  A warp has each of these: its matrix is one word for each lane, and
// whether two are joined is searched in the list of one, which is longer than all the others that would be asked for.
//
// Of a graph with more ranks than shared memory has room for, the bits are those of the last: a vertex before them asks
// its own list, which is short, as ranks are by degree.
//
// With SCRATCH a matrix that shared memory has no room for lies in the block's scratch memory.
//
// With NARROW the lists of the last ranks are distances from the first of these, of 16 bits each, so that more lists stand
// on a device that has no room for all.  With PACKED lists have few bits a neighbour (packed_lists.cuh), also where not all
// of them stand on the device: a vertex's own is unpacked in shared memory.
//
// With DIVIDED a vertex of many neighbours is not one block's alone: once a block has its matrix it says so, and the
// matrix's rows are drawn by its warps and by blocks that have no vertices left, which make the matrix once more
// (STMatch §V: work is stolen across blocks).  So no run, and no share of one, ends with a block that works alone for long.
//
// SIZE, WORDS (of a row: the longest list in words of 32), TEAM (Warp or Block), the THREADS of a block, whether there are
// more ranks than bits (SPARSE), SCRATCH, NARROW, PACKED, DIVIDED, and whether offsets have 64 bits (WIDE), are compile-time
// constants.

#include "teams.cuh"

#ifndef GROUP  // lanes that go through a list
#ifdef PACKED
#define GROUP 16
#else
#define GROUP 8
#endif
#endif
const int GROUPS = WARP / GROUP;
const int FEW = WARP;  // neighbours: no more than lanes
#if SIZE > 3 || defined(PACKED)
const u32 OWNED = WARP;  // words of shared memory that a warp has for itself
#else
const u32 OWNED = 0;
#endif

#ifdef WIDE
typedef i64 Offset;
#else
typedef u32 Offset;
#endif

#ifdef DIVIDED
#ifndef LARGE
#define LARGE 128  // neighbours of a vertex that is divided
#endif
#ifndef LEFT
#define LEFT 16  // rows that are worth the matrix, for who helps
#endif
const int DRAWN = 64;  // a warp draws such a part of the rows that are left, and one
#endif

#ifdef PACKED
#include "packed_lists.cuh"
typedef const int *Ranks;  // the list of the vertex that a team works on
#else
// A list of ranks.
struct Ranks {
  const int *ids;
#ifdef NARROW
  const unsigned short *distances;  // from `first`, where ids is null
  int first;
  __device__ __forceinline__ int operator[](int i) const { return ids ? __ldg(ids + i) : first + __ldg(distances + i); }
#else
  __device__ __forceinline__ int operator[](int i) const { return __ldg(ids + i); }
#endif
};

// All lists: those from rank `first` on are distances from it, and begin with `begin` among all.
struct Graph {
  const Offset *offsets;
  const int *neighbours;
  const unsigned short *distances;
  i64 first, begin;

  __device__ __forceinline__ Ranks list(i64 rank, Offset at) const {
#ifdef NARROW
    if (rank >= first) return {nullptr, distances + (at - begin), (int)first};
    return {neighbours + at, nullptr, 0};
#else
    return {neighbours + at};
#endif
  }
};
#endif

// Where a rank stands in a sorted list of so many, or -1.
__device__ __forceinline__ int place_in(const Ranks &list, int count, int wanted) {
  int low = 0;
  for (int high = count; low < high;) {
    const int middle = (low + high) >> 1;
    if (list[middle] < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low < count && list[low] == wanted ? low : -1;
}

// The matrix of a vertex: row i has the words from i / 32 on, of `width`.
struct Rows {
  u32 *words;
  int width;

  __device__ __forceinline__ u32 before(int i) const {
    const u32 r = (u32)i >> 5;
    return 32 * r * width - 16 * r * (r - 1) + (i & 31) * (width - r);
  }
  __device__ __forceinline__ u32 *row(int i) const { return words + before(i) - (i >> 5); }
};

// The cliques of `left` more vertices within `candidates`, each later than the one before, of word `from` at least.
template <int left, int words>
struct Choose {
  static __device__ __forceinline__ u64 count(const Rows &rows, const u32 (&candidates)[words], int from) {
    u64 found = 0;
    for (int word = from; word < rows.width; ++word) {
      u32 bits = 0;
#pragma unroll
      for (int w = 0; w < words; ++w) bits = w == word ? candidates[w] : bits;
      for (; bits; bits &= bits - 1) {
        const u32 *row = rows.row(word * 32 + __ffs(bits) - 1);
        u32 fewer[words];
#pragma unroll
        for (int w = 0; w < words; ++w) fewer[w] = w < word || w >= rows.width ? 0 : candidates[w] & row[w];
        found += Choose<left - 1, words>::count(rows, fewer, word);
      }
    }
    return found;
  }
};

template <int words>
struct Choose<1, words> {
  static __device__ __forceinline__ u64 count(const Rows &, const u32 (&candidates)[words], int) {
    u32 found = 0;
#pragma unroll
    for (int w = 0; w < words; ++w) found += __popc(candidates[w]);
    return found;
  }
};

// The cliques of a vertex with few neighbours, `mine`, by a warp, of which each lane returns its own part; `rows` are
// FEW words of shared memory.  Each row of the matrix is found by as many lanes as it may have bits.
__device__ __forceinline__ u64 count_few(const Graph &graph, const Ranks &mine, int degree, u32 *rows) {
  const bool there = LANE < degree;
  const int vertex = there ? mine[LANE] : 0;
#ifndef PACKED
  const Offset begin = there ? __ldg(graph.offsets + vertex) : 0;
  const int length = there ? (int)(__ldg(graph.offsets + vertex + 1) - begin) : 0;
#endif
  const int width = degree <= 8 ? 8 : degree <= 16 ? 16 : FEW, together = WARP / width;
  const int j = LANE % width, wanted = __shfl_sync(FULL, vertex, j);
  u32 row = 0;
  for (int from = 0; from < degree - 1; from += together) {
    const int i = from + LANE / width;
    const int other = __shfl_sync(FULL, vertex, i % WARP);
    bool joined = i < j && j < degree;
#ifdef PACKED
    if (joined) joined = graph.list(other).has(wanted);
#else
    const Offset start = __shfl_sync(FULL, begin, i % WARP);
    const int count = __shfl_sync(FULL, length, i % WARP);
    joined = joined && place_in(graph.list(other, start), count, wanted) >= 0;
#endif
    const u32 all = __ballot_sync(FULL, joined);
    if (LANE >= from && LANE < from + together) row = all >> (LANE - from) * width & FULL >> (WARP - width);
  }
#if SIZE == 3
  return __popc(row);
#else
  rows[LANE] = row;
  __syncwarp();
  const u32 candidates[1] = {row};
  const u64 found = Choose<SIZE - 2, 1>::count({rows, 1}, candidates, 0);
  __syncwarp();
  return found;
#endif
}

// What a team has in shared memory, and the vertex that it works on.
struct Matrix {
  Graph graph;
  i64 ranks, span;
  u32 *bits;
  Rows rows;
  unsigned short *before, *chosen;
  Ranks mine;
  int degree;
#ifdef SCRATCH
  u32 *small, *large, room;  // matrices in shared memory, of so many words, and others
#endif
#ifdef PACKED
  int *unpacked;
#endif

  __device__ __forceinline__ bool take(i64 u) {
#ifdef PACKED
    const Packed own = graph.list(u);
    mine = unpacked, degree = own.count;
    if (degree > FEW) own.unpack<TEAM>(unpacked);
#else
    const Offset first = __ldg(graph.offsets + u);
    mine = graph.list(u, first);
    degree = (int)(__ldg(graph.offsets + u + 1) - first);
#endif
    rows.width = (degree + 31) / 32;
#ifdef SCRATCH
    rows.words = rows.before(degree) <= room ? small : large;
#endif
    return degree > FEW;
  }

  // Make the matrix of u, which was taken; of triangles, return how many this thread has found.
  __device__ __forceinline__ u64 make(i64 u) {
    u64 found = 0;
#ifdef SPARSE
    const int base = (int)(ranks - span), marked = u >= base ? degree : 0;
#else
    const int base = 0, marked = degree;
#endif
    for (int i = TEAM::rank(); i < marked; i += TEAM::size()) set_bit(bits, mine[i] - base);
    if (SIZE > 3) {
      for (int i = TEAM::rank(); i < marked; i += TEAM::size()) {
        const int word = (mine[i] - base) >> 5;
        if (i == 0 || (mine[i - 1] - base) >> 5 != word) before[word] = (unsigned short)i;
      }
      wipe<TEAM>(rows.words, rows.before(degree));
    }
    TEAM::sync();
#ifdef PACKED
    for (int from = TEAM::warp() * GROUPS; from < degree; from += TEAM::warps() * GROUPS) {  // lanes go together
      const int i = from + LANE / GROUP;
      Packed near = graph.list(mine[i < degree ? i : degree - 1]);
      near.words = i < degree ? near.words : 0;
#else
    for (int i = TEAM::warp() * GROUPS + LANE / GROUP; i < degree; i += TEAM::warps() * GROUPS) {
      const int v = mine[i];
      const Offset begin = __ldg(graph.offsets + v);
      const Ranks near = graph.list(v, begin);
      const int length = (int)(__ldg(graph.offsets + v + 1) - begin);
#endif
      const auto look = [&](int w) {
        int place = 0;
#ifdef SPARSE
        if (!marked) {
          place = place_in(mine, degree, w);
          if (place < 0) return;
        } else
#endif
        {
          const u32 word = bits[(w - base) >> 5], one = 1u << ((w - base) & 31);
          if (!(word & one)) return;
          if (SIZE > 3) place = before[(w - base) >> 5] + __popc(word & (one - 1));
        }
        if (SIZE == 3)
          ++found;
        else
          atomicOr(rows.row(i) + (place >> 5), 1u << (place & 31));
      };
#ifdef PACKED
      near.each<GROUP>(look);
#else
      int k = LANE % GROUP;
      for (; k + 3 * GROUP < length; k += 4 * GROUP) {  // four reads on their way at a time
        const int a = near[k], b = near[k + GROUP], c = near[k + 2 * GROUP], d = near[k + 3 * GROUP];
        look(a), look(b), look(c), look(d);
      }
      for (; k < length; k += GROUP) look(near[k]);
#endif
    }
    TEAM::sync();
    for (int i = TEAM::rank(); i < marked; i += TEAM::size()) bits[(mine[i] - base) >> 5] = 0;
    TEAM::sync();
    return found;
  }

#if SIZE > 3
  // The cliques of row i and vertex j.
  __device__ __forceinline__ u64 count(const u32 *row, int j) const {
    const u32 *other = rows.row(j);
#if SIZE == 4
    u32 found = 0;
    for (int w = j >> 5; w < rows.width; ++w) found += __popc(row[w] & other[w]);
    return found;
#else
    u32 both[WORDS];
#pragma unroll
    for (int w = 0; w < WORDS; ++w) both[w] = w < j >> 5 || w >= rows.width ? 0 : row[w] & other[w];
    return Choose<SIZE - 3, WORDS>::count(rows, both, j >> 5);
#endif
  }

  // The cliques of a row, by a warp whose lanes take the bits of it: these wait in a ring until there is one for each.
  __device__ __forceinline__ u64 count(int i) const {
    u64 found = 0;
    const u32 *row = rows.row(i);
    int begin = 0, end = 0;
    for (int w = i >> 5; w < rows.width; ++w) {
      const u32 all = row[w];
      if (all >> LANE & 1) chosen[(end + __popc(all & ((1u << LANE) - 1))) % (2 * WARP)] = (unsigned short)(w * 32 + LANE);
      end += __popc(all);
      __syncwarp();
      if (end - begin >= WARP) {
        found += count(row, chosen[(begin + LANE) % (2 * WARP)]);
        begin += WARP;
        __syncwarp();
      }
    }
    if (begin + LANE < end) found += count(row, chosen[(begin + LANE) % (2 * WARP)]);
    __syncwarp();
    return found;
  }

  __device__ __forceinline__ u64 count_all() const {
    u64 found = 0;
    for (int i = TEAM::warp(); i < degree; i += TEAM::warps()) found += count(i);
    return found;
  }
#endif

#ifdef DIVIDED
  // The rows that nobody has begun, a warp after the other: of whoever published `mark`, and of who helps.
  __device__ __forceinline__ u64 count_drawn(u64 *rank, u32 mark) const {
    u64 found = 0;
    for (;;) {
      int row = degree, several = 0;
      if (LANE == 0) {
        u64 seen = *(volatile u64 *)rank;
        while ((u32)(seen >> 32) == mark && (int)(u32)seen < degree) {
          const int left = degree - (int)(u32)seen, wanted = left / DRAWN + 1;
          const u64 now = atomicCAS(rank, seen, seen + wanted);
          if (now == seen) {
            row = (int)(u32)seen, several = wanted;
            break;
          }
          seen = now;
        }
      }
      row = __shfl_sync(FULL, row, 0), several = __shfl_sync(FULL, several, 0);
      if (!several) return found;
      for (int i = row; i < row + several; ++i) found += count(i);
    }
  }
#endif
};

// The first five are the oriented graph's (struct Graph), the last of them nothing with PACKED; matrix_words are those
// of shared memory for a matrix, 0 for triangles, list_words those for a vertex's own list, if it is unpacked there;
// scratch_words those of a block's scratch memory.
// Counted are the cliques whose first vertex is one of the ranks from `first` on, before `end`; those before `large` all
// have few neighbours.  *next, at first 0, is the next task: of the first ones each is a vertex of many neighbours, of
// the others the vertices of few among WARP ranks, which a warp takes; both from the last rank down.  There is a bit for
// each of the last `span` ranks.  Of each block, `published` has the vertex that is divided, and 1, in its upper half,
// and below the row that is drawn next; at first 0.
extern "C" __global__ void __launch_bounds__(THREADS)
#ifdef PACKED
cliques(const u32 *near_begins, const u32 *near_words, const u32 *far_begins, const u32 *far_words, i64 near,
#else
cliques(const Offset *offsets, const int *neighbours, const unsigned short *distances, i64 narrow, i64 narrow_begin,
#endif
        i64 ranks, i64 span, i64 first, i64 end, i64 large,
        i64 matrix_words, i64 list_words, u32 *scratch, i64 scratch_words, u64 *next, u64 *sums, const volatile int *stop, u64 *published) {
  extern __shared__ u64 shared_memory[];
  const u32 words = (u32)((span + 31) / 32);
  const u32 counted = SIZE > 3 ? (words + 1) / 2 : 0;
  const u32 room = words + counted + (u32)(matrix_words + list_words) + OWNED * TEAM::warps();
  u32 *bits = (u32 *)shared_memory + (threadIdx.x / TEAM::size()) * room;
  u32 *rows = bits + words + counted, *list = rows + matrix_words, *own = list + list_words + TEAM::warp() * OWNED;
#ifdef PACKED
  const Graph graph = {near_begins, near_words, far_begins, far_words, near};
  const Ranks none = (const int *)list;
#else
  const Graph graph = {offsets, neighbours, distances, narrow, narrow_begin};
  const Ranks none = graph.list(0, 0);
#endif
  Matrix matrix = {graph, ranks, span, bits, {rows, 0}, (unsigned short *)(bits + words), (unsigned short *)own, none, 0};
#ifdef PACKED
  matrix.unpacked = (int *)list;
#endif
#ifdef SCRATCH
  matrix.small = rows, matrix.large = scratch + blockIdx.x * scratch_words, matrix.room = (u32)matrix_words;
#endif
  wipe<TEAM>(bits, words);
  u64 found = 0;
  TaskCounter<TEAM> tasks_left = {next, stop};
  const u64 many = end > large ? (u64)(end - (first > large ? first : large)) : 0;
  u64 task;
  TEAM::sync();
  while ((task = tasks_left.take()) < many) {
    const i64 u = end - 1 - (i64)task;
    if (!matrix.take(u)) continue;
    found += matrix.make(u);
#ifdef DIVIDED
    if (matrix.degree >= LARGE) {
      u64 *row = published + blockIdx.x;
      if (threadIdx.x == 0) atomicExch(row, (u64)(u + 1) << 32);
      TEAM::sync();
      found += matrix.count_drawn(row, (u32)(u + 1));
      continue;
    }
#endif
#if SIZE > 3
    found += matrix.count_all();
#endif
  }
  TaskCounter<Warp> pieces_left = {next, stop};
  for (u64 piece = TEAM::warp() == 0 ? task : pieces_left.take(); piece - many < (u64)(end - first + WARP - 1) / WARP;
       piece = pieces_left.take()) {
    const i64 u = end - 1 - (i64)(piece - many) * WARP - LANE;
#ifdef PACKED
    const int degree = u < first ? 0 : graph.list(u).count;
#else
    const Offset begin = u < first ? 0 : __ldg(offsets + u);
    const int degree = u < first ? 0 : (int)(__ldg(offsets + u + 1) - begin);
#endif
    for (u32 left = __ballot_sync(FULL, degree >= SIZE - 1 && degree <= FEW); left; left &= left - 1) {
      const int owner = __ffs(left) - 1;
#ifdef PACKED
      graph.list(__shfl_sync(FULL, u, owner)).unpack<Warp>((int *)own);
      const Ranks mine = (const int *)own;
#else
      const Ranks mine = graph.list(__shfl_sync(FULL, u, owner), __shfl_sync(FULL, begin, owner));
#endif
      found += count_few(graph, mine, __shfl_sync(FULL, degree, owner), own);
    }
  }
#ifdef DIVIDED
  // Block by block, beginning behind its own: those who help are spread.
  __shared__ u64 seen;
  for (u32 at = 1; at < gridDim.x; ++at) {
    u64 *other = published + (blockIdx.x + at) % gridDim.x;
    for (u64 before = 0;;) {  // again, where it has gone on to another vertex meanwhile
      __syncthreads();
      if (threadIdx.x == 0) seen = *(volatile u64 *)next >= 1ull << 62 ? 0 : *(volatile u64 *)other;
      __syncthreads();
      const u64 mark = seen >> 32;
      if (mark == before || !matrix.take((i64)mark - 1) || matrix.degree - (int)(u32)seen < LEFT) break;
      before = mark;
      matrix.make((i64)mark - 1);
      found += matrix.count_drawn(other, (u32)mark);
    }
  }
#endif
  found = warp_sum(found);
  if (LANE == 0 && found) atomicAdd(sums, found);
}

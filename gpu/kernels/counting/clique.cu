// Cliques of SIZE vertices over the graph oriented by degree (SMOG §III; Chiba and Nishizeki).
//
// For each vertex u the neighbours of higher rank are a small graph of their own: a matrix of bits in shared memory.
// Its rows are found by going through their lists and asking a bit per vertex; where a bit stands among all of u's is
// the number of bits before it, stored per word.  In the matrix the other vertices are chosen in rising order: what can
// still be chosen is a row of bits in registers, and the last choice is a count of bits.
//
// Of a graph with more ranks than shared memory has room for, the bits are those of the last: a vertex before them asks
// its own list, which is short, as ranks are by degree.
//
// With DIVIDED a vertex of many neighbours is not one block's alone: once a block has its matrix it says so, and the
// matrix's rows are drawn by its warps and by blocks that have no vertices left, which make the matrix once more
// (STMatch §V: work is stolen across blocks).  So no run, and no share of one, ends with a block that works alone for long.
//
// SIZE, WORDS (of a row: the longest list in words of 32), TEAM (Warp or Block), whether there are more ranks than bits
// (SPARSE), DIVIDED, and whether offsets have 64 bits (WIDE), are compile-time constants.

#include "teams.cuh"

#ifndef GROUP
#define GROUP 8
#endif
const int GROUPS = WARP / GROUP;

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

#ifdef SPARSE
// Where a rank stands in a sorted list of so many, or -1.
__device__ __forceinline__ int place_in(const int *list, int count, int wanted) {
  int low = 0;
  for (int high = count; low < high;) {
    const int middle = (low + high) >> 1;
    if (__ldg(list + middle) < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low < count && __ldg(list + low) == wanted ? low : -1;
}
#endif

// The cliques of `left` more vertices within `candidates`, each later than the one before.
template <int left>
struct Choose {
  static __device__ __forceinline__ u64 count(const u32 *matrix, const u32 (&candidates)[WORDS], int from) {
    u64 found = 0;
    for (int word = from; word < WORDS; ++word) {
      u32 bits = 0;
#pragma unroll
      for (int w = 0; w < WORDS; ++w) bits = w == word ? candidates[w] : bits;
      for (; bits; bits &= bits - 1) {
        const u32 *row = matrix + (word * 32 + __ffs(bits) - 1) * WORDS;
        u32 fewer[WORDS];
#pragma unroll
        for (int w = 0; w < WORDS; ++w) fewer[w] = w < word ? 0 : candidates[w] & row[w];
        found += Choose<left - 1>::count(matrix, fewer, word);
      }
    }
    return found;
  }
};

template <>
struct Choose<1> {
  static __device__ __forceinline__ u64 count(const u32 *, const u32 (&candidates)[WORDS], int) {
    u32 found = 0;
#pragma unroll
    for (int w = 0; w < WORDS; ++w) found += __popc(candidates[w]);
    return found;
  }
};

// What a team has in shared memory, and the vertex that it works on.
struct Matrix {
  const Offset *offsets;
  const int *neighbours;
  i64 ranks, span;
  u32 *bits, *rows;
  unsigned short *before, *chosen;
  const int *mine;
  int degree;

  __device__ __forceinline__ bool take(i64 u) {
    const Offset first = __ldg(offsets + u);
    mine = neighbours + first;
    degree = (int)(__ldg(offsets + u + 1) - first);
    return degree >= SIZE - 1;
  }

  // Make the matrix of u, which was taken; of triangles, return how many this thread has found.
  __device__ __forceinline__ u64 make(i64 u) {
    u64 found = 0;
#ifdef SPARSE
    const int base = (int)(ranks - span), marked = u >= base ? degree : 0;
#else
    const int base = 0, marked = degree;
#endif
    for (int i = TEAM::rank(); i < marked; i += TEAM::size()) set_bit(bits, __ldg(mine + i) - base);
    if (SIZE > 3) {
      for (int i = TEAM::rank(); i < marked; i += TEAM::size()) {
        const int word = (__ldg(mine + i) - base) >> 5;
        if (i == 0 || (__ldg(mine + i - 1) - base) >> 5 != word) before[word] = (unsigned short)i;
      }
      wipe<TEAM>(rows, (u32)degree * WORDS);
    }
    TEAM::sync();
    const int group = TEAM::warp() * GROUPS + LANE / GROUP;
    for (int i = group; i < degree; i += TEAM::warps() * GROUPS) {
      const int v = __ldg(mine + i);
      const Offset begin = __ldg(offsets + v);
      const int *near = neighbours + begin;
      const int length = (int)(__ldg(offsets + v + 1) - begin);
      for (int k = LANE % GROUP; k < length; k += GROUP) {
        const int w = __ldg(near + k) - base;
#ifdef SPARSE
        if (!marked) {
          const int place = place_in(mine, degree, w + base);
          if (place >= 0) {
            if (SIZE == 3)
              ++found;
            else
              atomicOr(rows + i * WORDS + (place >> 5), 1u << (place & 31));
          }
          continue;
        }
#endif
        const u32 word = bits[w >> 5];
        if (word >> (w & 31) & 1) {
          if (SIZE == 3) {
            ++found;
          } else {
            const int place = before[w >> 5] + __popc(word & ((1u << (w & 31)) - 1));
            atomicOr(rows + i * WORDS + (place >> 5), 1u << (place & 31));
          }
        }
      }
    }
    TEAM::sync();
    for (int i = TEAM::rank(); i < marked; i += TEAM::size()) bits[(__ldg(mine + i) - base) >> 5] = 0;
    TEAM::sync();
    return found;
  }

#if SIZE > 3
  // The cliques of a row, by a warp whose lanes take the bits of it.
  __device__ __forceinline__ u64 count(int i) const {
    u64 found = 0;
    const u32 *row = rows + i * WORDS;
    int count = 0;
    for (int w = 0; w < WORDS; ++w) {
      const u32 all = row[w];
      for (int b = LANE; b < 32; b += WARP)
        if (all >> b & 1) chosen[count + __popc(all & ((1u << b) - 1))] = (unsigned short)(w * 32 + b);
      count += __popc(all);
    }
    __syncwarp();
    for (int c = LANE; c < count; c += WARP) {
      const int j = chosen[c];
      const u32 *other = rows + j * WORDS;
      u32 both[WORDS];
#pragma unroll
      for (int w = 0; w < WORDS; ++w) both[w] = row[w] & other[w];
      found += Choose<SIZE - 3>::count(rows, both, j >> 5);
    }
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

// offsets and neighbours are the oriented graph's; matrix_words is 0 for triangles, else the longest list * WORDS.
// Tasks are the ranks from the last down: those from *next on, before task last.  There is a bit for each of the last
// `span` ranks.  Of each block, `published` has the vertex that is divided, and 1, in its upper half, and below the row
// that is drawn next; at first 0.
extern "C" __global__ void __launch_bounds__(256)
cliques(const Offset *offsets, const int *neighbours, i64 ranks, i64 span, i64 last, i64 matrix_words, u64 *next,
        u64 *sums, const volatile int *stop, u64 *published) {
  extern __shared__ u64 shared_memory[];
  const u32 words = (u32)((span + 31) / 32);
  const u32 counted = SIZE > 3 ? (words + 1) / 2 : 0;
  const u32 room = words + counted + (u32)matrix_words + (SIZE > 3 ? (WORDS * 16 + 1) * TEAM::warps() : 0);
  u32 *bits = (u32 *)shared_memory + (threadIdx.x / TEAM::size()) * room;
  u32 *rows = bits + words + counted;
  unsigned short *chosen = (unsigned short *)(rows + matrix_words) + TEAM::warp() * (WORDS * 32 + 2);
  Matrix matrix = {offsets, neighbours, ranks, span, bits, rows, (unsigned short *)(bits + words), chosen, neighbours, 0};
  wipe<TEAM>(bits, words);
  u64 found = 0;
  TaskCounter<TEAM> tasks_left = {next, stop};
  TEAM::sync();
  for (;;) {
    const u64 task = tasks_left.take();
    if (task >= (u64)last) break;
    const i64 u = ranks - 1 - (i64)task;
    if (!matrix.take(u)) continue;
    found += matrix.make(u);
#ifdef DIVIDED
    if (matrix.degree >= LARGE) {
      u64 *own = published + blockIdx.x;
      if (threadIdx.x == 0) atomicExch(own, (u64)(u + 1) << 32);
      TEAM::sync();
      found += matrix.count_drawn(own, (u32)(u + 1));
      continue;
    }
#endif
#if SIZE > 3
    found += matrix.count_all();
#endif
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

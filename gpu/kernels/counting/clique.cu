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
// SIZE, WORDS (of a row: the longest list in words of 32), TEAM (Warp or Block), and whether there are more ranks than
// bits (SPARSE), are compile-time constants.

#include "teams.cuh"

#ifndef GROUP
#define GROUP 8
#endif
const int GROUPS = WARP / GROUP;

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

// offsets and neighbours are the oriented graph's; matrix_words is 0 for triangles, else the longest list * WORDS.
// Tasks are the ranks from the last down: those from *next on, before task last.  There is a bit for each of the last
// `span` ranks.
extern "C" __global__ void __launch_bounds__(256)
cliques(const i64 *offsets, const int *neighbours, i64 ranks, i64 span, i64 last, i64 matrix_words, u64 *next,
        u64 *sums, const volatile int *stop) {
  extern __shared__ u64 shared_memory[];
  const u32 words = (u32)((span + 31) / 32);
  const u32 counted = SIZE > 3 ? (words + 1) / 2 : 0;
  const u32 room = words + counted + (u32)matrix_words + (SIZE > 3 ? (WORDS * 16 + 1) * TEAM::warps() : 0);
  u32 *bits = (u32 *)shared_memory + (threadIdx.x / TEAM::size()) * room;
  unsigned short *before = (unsigned short *)(bits + words);
  u32 *matrix = bits + words + counted;
  unsigned short *chosen = (unsigned short *)(matrix + matrix_words) + TEAM::warp() * (WORDS * 32 + 2);
  wipe<TEAM>(bits, words);
  u64 found = 0;
  TaskCounter<TEAM> tasks_left = {next, stop};
  TEAM::sync();
  for (;;) {
    const u64 task = tasks_left.take();
    if (task >= (u64)last) break;
    const i64 u = ranks - 1 - (i64)task;
    const i64 first = __ldg(offsets + u);
    const int *mine = neighbours + first;
    const int degree = (int)(__ldg(offsets + u + 1) - first);
    if (degree < SIZE - 1) continue;
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
      wipe<TEAM>(matrix, (u32)degree * WORDS);
    }
    TEAM::sync();
    const int group = TEAM::warp() * GROUPS + LANE / GROUP;
    for (int i = group; i < degree; i += TEAM::warps() * GROUPS) {
      const int v = __ldg(mine + i);
      const i64 begin = __ldg(offsets + v), end = __ldg(offsets + v + 1);
      for (i64 k = begin + LANE % GROUP; k < end; k += GROUP) {
        const int w = __ldg(neighbours + k) - base;
#ifdef SPARSE
        if (!marked) {
          const int place = place_in(mine, degree, w + base);
          if (place >= 0) {
            if (SIZE == 3)
              ++found;
            else
              atomicOr(matrix + i * WORDS + (place >> 5), 1u << (place & 31));
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
            atomicOr(matrix + i * WORDS + (place >> 5), 1u << (place & 31));
          }
        }
      }
    }
    TEAM::sync();
    for (int i = TEAM::rank(); i < marked; i += TEAM::size()) bits[(__ldg(mine + i) - base) >> 5] = 0;
    TEAM::sync();
#if SIZE > 3
    // A warp takes a row; its lanes take the bits of it.
    for (int i = TEAM::warp(); i < degree; i += TEAM::warps()) {
      const u32 *row = matrix + i * WORDS;
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
        const u32 *other = matrix + j * WORDS;
        u32 both[WORDS];
#pragma unroll
        for (int w = 0; w < WORDS; ++w) both[w] = row[w] & other[w];
        found += Choose<SIZE - 3>::count(matrix, both, j >> 5);
      }
      __syncwarp();
    }
#endif
  }
  found = warp_sum(found);
  if (LANE == 0 && found) atomicAdd(sums, found);
}

// Triangles with their common neighbours: the sum, over all triangles, of how many vertices all three know, to a power.
//
// Each triangle is seen from its vertex of least degree (the greatest rank): everything else is among that one's
// neighbours.  Edges among these are bits, a row for each that has a smaller rank, so that the vertices all three
// know are the bits that two rows share.  An edge is found in the list of its end of lesser degree, among the smaller
// ranks: those lists are short, however many neighbours a hub has.

#include "teams.cuh"

#ifndef GROUP
#define GROUP 8
#endif
const int GROUPS = WARP / GROUP;

// Tasks are the ranks from *next on, before last; room is how many words of shared memory a matrix may take; a larger one lies in the block's scratch memory.
extern "C" __global__ void __launch_bounds__(512)
books(const i64 *table, i64 relation, i64 ranks, i64 last, i64 power, i64 room, i64 rows, u32 *scratch, i64 stride, u64 *sums,
      double *sizes, u64 *next, const volatile int *stop) {
  extern __shared__ u64 shared_memory[];
  const i64 *row_of = table + RANKED_CELLS * relation;
  const Ranked all = {(const u32 *)row_of[0], (const u32 *)row_of[1], (const u32 *)row_of[2], (const int *)row_of[3]};
  const u32 words = (u32)((ranks + 31) / 32);
  u32 *bits = (u32 *)shared_memory;
  unsigned short *before = (unsigned short *)(bits + words);
  u32 *small = bits + words + (words + 1) / 2;
  unsigned short *chosen = (unsigned short *)(small + room) + Block::warp() * rows;
  wipe<Block>(bits, words);
  u64 own = 0;
  double size = 0;
  TaskCounter<Block> tasks_left = {next, stop};
  for (;;) {
    const u64 task = tasks_left.take();
    if (task >= (u64)last) break;
    const int a = (int)task;
    const List mine = list<0>(all, a);
    const u32 lower = list<-1>(all, a).count;
    if (lower < 2) continue;
    const u32 width = (mine.count + 31) / 32;
    u32 *matrix = (i64)lower * width <= room ? small : scratch + stride * blockIdx.x;
    for (u32 i = threadIdx.x; i < mine.count; i += blockDim.x) {
      const int x = __ldg(mine.ids + i);
      set_bit(bits, x);
      if (i == 0 || __ldg(mine.ids + i - 1) >> 5 != x >> 5) before[x >> 5] = (unsigned short)i;
    }
    wipe<Block>(matrix, lower * width);
    __syncthreads();
    for (u32 i = threadIdx.x / GROUP; i < mine.count; i += blockDim.x / GROUP) {
      const List near = list<-1>(all, __ldg(mine.ids + i));
      for (u32 k = threadIdx.x % GROUP; k < near.count; k += GROUP) {
        const int y = __ldg(near.ids + k);
        const u32 word = bits[y >> 5];
        if (word >> (y & 31) & 1) {
          const u32 place = before[y >> 5] + __popc(word & ((1u << (y & 31)) - 1));
          if (place < lower) atomicOr(matrix + place * width + (i >> 5), 1u << (i & 31));
          if (i < lower) atomicOr(matrix + i * width + (place >> 5), 1u << (place & 31));
        }
      }
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < mine.count; i += blockDim.x) bits[__ldg(mine.ids + i) >> 5] = 0;
    // A warp takes a row, its groups the rows of smaller ranks that are joined to it.
    for (u32 i = Block::warp(); i < lower; i += Block::warps()) {
      const u32 *row = matrix + i * width;
      u32 count = 0;
      for (u32 w = 0; w <= i >> 5; ++w) {
        const u32 set = w < i >> 5 ? row[w] : row[w] & ((1u << (i & 31)) - 1);
        for (int b = LANE; b < 32; b += WARP)
          if (set >> b & 1) chosen[count + __popc(set & ((1u << b) - 1))] = (unsigned short)(w * 32 + b);
        count += __popc(set);
      }
      __syncwarp();
      for (u32 from = 0; from < count; from += GROUPS) {
        const u32 c = from + LANE / GROUP;
        u32 common = 0;
        if (c < count) {
          const u32 *other = matrix + chosen[c] * width;
          for (u32 w = LANE % GROUP; w < width; w += GROUP) common += __popc(row[w] & other[w]);
        }
        for (int step = GROUP / 2; step; step >>= 1) common += __shfl_xor_sync(FULL, common, step);
        if (LANE % GROUP == 0 && common) {
          own += raised((u64)common, (int)power);
          size += raised((double)common, (int)power);
        }
      }
      __syncwarp();
    }
  }
  own = warp_sum(own);
  size = warp_sum(size);
  if (LANE == 0 && own) atomicAdd(sums, own);
  if (LANE == 0 && size != 0) atomicAdd(sizes, size);
}

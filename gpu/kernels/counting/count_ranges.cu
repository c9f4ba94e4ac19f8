// Sums that go through lists, of a graph whose lists do not fit the device (gpu/counting/passes/run.py): the roots of a
// segment send numbers along the blocks of lists that hold the ranks of one pass.
//
// THREADS are those of a block, HALVES says whether 16 bits do for what a rank is sent.

#include "teams.cuh"

#ifndef BLOCKS
#define BLOCKS 4
#endif

// Elements of lists: their low 16 bits, and where these do not do, the 8 bits above them.
struct Planes {
  const unsigned short *low;
  const unsigned char *high;
  __device__ __forceinline__ int operator[](u32 at) const {
    return (int)__ldg(low + at) | (high ? (int)__ldg(high + at) << 16 : 0);
  }
};

struct Run {
  u32 first, count;
};

// Where the first element from `first` on stands that is not below `wanted`, in a sorted list that ends at `last`.
__device__ __forceinline__ u32 not_below(const Planes &elements, u32 first, u32 last, int wanted) {
  while (first < last) {
    const u32 middle = (first + last) >> 1;
    if (elements[middle] < wanted)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

// The elements of a sorted list from `low` on, before `end`.
__device__ __forceinline__ Run within(const Planes &elements, u32 first, u32 last, int low, int end) {
  if (first == last || elements[last - 1] < low) return {first, 0};
  if (low) first = not_below(elements, first, last, low);
  return {first, not_below(elements, first, last, end) - first};
}

// Every lane has a list; the warp goes through one after the other: take(z) for each element.
template <typename Take>
__device__ __forceinline__ void each_element(const Planes &elements, const Run &own, Take take) {
  for (u32 left = __ballot_sync(FULL, own.count > 0); left; left &= left - 1) {
    const int owner = __ffs(left) - 1;
    const u32 last = __shfl_sync(FULL, own.first + own.count, owner);
    u32 k = __shfl_sync(FULL, own.first, owner) + LANE;
    for (; k + 3 * WARP < last; k += 4 * WARP) {  // four reads on their way at a time
      const int a = elements[k], b = elements[k + WARP], c = elements[k + 2 * WARP], d = elements[k + 3 * WARP];
      take(a), take(b), take(c), take(d);
    }
    for (; k < last; k += WARP) take(elements[k]);
  }
}

// The lists of a root's neighbours.
struct Neighbours {
  const Planes roots, block;
  const u32 *in_block, *bits;  // of bits those that count, or null
  u32 begin, entries;

  // Every warp takes its lists, and goes through what of them is from `low` on, before `end`: visit(z) for each element.
  // Returns how many elements there are of the thread's own lists.
  template <typename Visit>
  __device__ __forceinline__ u64 each(int low, int end, Visit visit) const {
    const u32 some = share<Block>(entries);
    u64 found = 0;
    for (u32 at = Block::warp() * some; at < entries; at += Block::warps() * some) {
      const u32 k = at + LANE;
      Run list = {0, 0};
      if (LANE < some && k < entries) {
        const int y = roots[begin + k];
        if (!bits || bit(bits, y)) list = within(block, __ldg(in_block + y), __ldg(in_block + y + 1), low, end);
      }
      found += list.count;
      each_element(block, list, visit);
    }
    return found;
  }
};

// For each root x from `first` on, before `last`: the sum over the ranks z from `from` on, before `to`, of a power of how
// many neighbours y of x have z in their list.  Of z behind x, with `mirrored`, none counts, and those before it count
// twice.  Of x, y and z only those count that have a bit, where there are bits.  What each x adds is added to its number
// `by_root` as well, unless that is null.
//
// Lists of roots begin at begin[x], those of y in the pass's block at in_block[y]; elements of the latter are told from
// `from`.  The numbers of `span` ranks at a time lie in shared memory.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
ranges(const u32 *begin, const unsigned short *root_low, const unsigned char *root_high,
       const u32 *in_block, const unsigned short *block_low, const unsigned char *block_high,
       const u32 *root_bits, const u32 *middle_bits, const u32 *end_bits,
       i64 first, i64 last, i64 from, i64 to, i64 span, i64 power, i64 mirrored,
       u64 *sums, double *sizes, u64 *by_root, u64 *next, const volatile int *stop) {
  extern __shared__ u64 shared_memory[];
  u32 *words = (u32 *)shared_memory;
#if HALVES
  const Halves numbers = {words};
  const u32 all_words = (u32)((span + 1) / 2);
#else
  u32 *numbers = words;
  const u32 all_words = (u32)span;
#endif
  wipe<Block>(words, all_words);
  __syncthreads();
  const Planes roots = {root_low, root_high}, block = {block_low, block_high};
  u64 own = 0;
  double size = 0;
  TaskCounter<Block> tasks_left = {next, stop};
  for (;;) {
    const u64 task = tasks_left.take();
    if (task >= (u64)(last - first)) break;
    const int x = (int)(first + (i64)task);
    if (root_bits && !bit(root_bits, x)) continue;
    const u32 x_begin = __ldg(begin + x), entries = __ldg(begin + x + 1) - x_begin;
    const Neighbours near = {roots, block, in_block, middle_bits, x_begin, entries};
    const int top = (int)min(to, mirrored ? (i64)x + 1 : to) - (int)from, own_place = x - (int)from;
    if (!entries) continue;
    const u64 before = own;
    for (int low = 0; low < top; low += (int)span) {
      const int end = min(low + (int)span, top);
      u64 acc = 0;
      double big = 0;
      const auto gain = [&](u64 number, int z) {
        const int times = 1 + (mirrored && z < own_place);
        acc += times * raised(number, (int)power);
        big += times * raised((double)number, (int)power);
      };
      u64 sent = near.each(low, end, [&](int z) {
        if (!end_bits || bit(end_bits, (int)from + z)) add_to(numbers, z - low, 1u);
      });
      sent = Block::sum(sent);
      __syncthreads();
      if (sent > (u32)(end - low) / 2) {
        for (u32 at = Block::rank(); at < (u32)(end - low); at += Block::size()) {
          const u64 number = numbers[at];
          if (number) gain(number, low + (int)at);
        }
        __syncthreads();
        wipe<Block>(numbers, (u32)(end - low));
      } else {
        near.each(low, end, [&](int z) {
          const u64 number = take_from(numbers, z - low);
          if (number) gain(number, z);
        });
      }
      own += acc;
      size += big;
      __syncthreads();
    }
    if (by_root) {
      const u64 added = Block::sum(own - before);
      if (threadIdx.x == 0 && added) atomicAdd(by_root + x, added);
    }
  }
  own = warp_sum(own);
  size = warp_sum(size);
  if (LANE == 0 && own) atomicAdd(sums, own);
  if (LANE == 0 && size != 0) atomicAdd(sizes, size);
}

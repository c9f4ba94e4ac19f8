// Leaving work to warps that have none (GAMMA, Qiu et al., ICDE 2024, §V-A): a warp without work takes a ticket, and waits at
// its own place of a queue.  Others look now and then whether more wait there than were served, and leave what they have left
// at their shallowest step that can be divided, in as many pieces as wait: the bindings before it, and each candidate that was
// found, or a range of its list.  So the work is shared within blocks and across them.
//
// By the steps before them, pieces of a step count as often as its ancestors' other children have matches: of siblings, those
// with the fewest steps below are counted first, and the last one alone is divided.
//
// They look by the clock: a binding may take a thousand times as long as another one.  And who waits asks a word of his own:
// if all asked for one and the same, each piece of work would have thousands contend for it.

#include "delta_steps.cuh"

#ifndef LOOK
#define LOOK (1 << 13)
#endif

struct Sharing : Steps {
  // The step above one, as far as it was searched here; -1 where there is none.
  __device__ __forceinline__ int above(int number) const {
    return number == bottom ? -1 : writes ? number - 1 : relative(step(number)[9]);
  }

  // Which bit of a mask is the one after so many others.
  __device__ __forceinline__ int bit_after(u32 mask, int others) const {
#pragma unroll 1
    for (; others > 0; --others) mask &= mask - 1;
    return __ffs(mask) - 1;
  }

  // If some wait for work: leave them what is left at the shallowest step, of those down to `reached`; all of it where they are
  // enough, else at most half.
  __device__ __forceinline__ void share(int reached) {
    i64 waiting = 0;
    if (search.queue_places && LANE == 0 && clock64() - looked > LOOK) {
      looked = clock64();
      const volatile u64 *desk = search.desk;
      waiting = (i64)(desk[TICKETS] - desk[GIFTS]);
    }
    const int wanted = __shfl_sync(FULL, (int)max(min(waiting, (i64)MOST_PIECES), (i64)0), 0);
    if (!wanted) return;
    int shallow = -1;
#pragma unroll 1
    for (int number = reached; number >= 0; number = above(number))
      if (number < DIVISIBLE && divisible >> number & 1 && (levels[number].at < levels[number].end || levels[number].mask))
        shallow = number;
    if (shallow < 0) return;
    i64 times = factor;
#pragma unroll 1
    for (int number = above(shallow); number >= 0 && !writes; number = above(number)) times *= levels[number].product;
    Level &level = levels[shallow];
    const u32 mask = level.mask;
    const int candidates = __popc(mask), at = level.at, end = level.end;
    const int size = max((end - at + MOST_PIECES * WARP - 1) / (MOST_PIECES * WARP), 1) * WARP;
    const int units = candidates + (end - at + size - 1) / size;
    const int given = min(wanted, wanted < units ? (units + 1) / 2 : units), kept = units - given, unit = kept + LANE;
    int from = at + (unit - candidates) * size, to = min(from + size, end);
    if (unit < candidates) from = level.found[bit_after(mask, unit)], to = VALUE;
    __syncwarp();
    u64 ticket = 0;
    if (LANE == 0) {
      level.end = min(at + max(kept - candidates, 0) * size, end);
      if (kept < candidates) level.mask = mask & ((1u << bit_after(mask, kept)) - 1);
      atomicAdd(search.state + BUSY, (u64)given);  // who takes them is at work from now on
      atomicAdd(search.state + STOLEN, (u64)given);
      ticket = atomicAdd(search.desk + GIFTS, (u64)given);
    }
    ticket = __shfl_sync(FULL, ticket, 0) + LANE;
    if (LANE < given) {
      const int place = (int)(ticket & (search.queue_places - 1));
      while (*(volatile u64 *)(search.turns + place) != ticket) __nanosleep(100);
      __threadfence();
      int *mail = search.queue + place * (MAIL_HEADER + search.slots);
      mail[0] = record, mail[1] = plan_number, mail[2] = shallow, mail[3] = from, mail[4] = to;
      mail[5] = (int)times, mail[6] = (int)(times >> 32);
#pragma unroll 1
      for (int slot = 0; slot < search.slots; ++slot) mail[MAIL_HEADER + slot] = values[slot];
      __threadfence();
      atomicAdd(search.turns + place, 1ull);
    }
    __syncwarp();
  }
};

// Leaving work to warps that have none (GAMMA, Qiu et al., ICDE 2024, §V-A): a warp without work takes a ticket, and waits at
// its own place of a queue.  Others look now and then whether more wait there than were served, and leave half of what they
// have left at their shallowest step: the bindings before it, and a range of its list.  So the work is shared within blocks
// and across them.
//
// They look by the clock: a binding may take a thousand times as long as another one.  And who waits asks a word of his own:
// if all asked for one and the same, each piece of work would have thousands contend for it.

#include "delta_steps.cuh"

#ifndef LOOK
#define LOOK (1 << 13)
#endif
const int MAIL_HEADER = 6;

struct Sharing : Steps {
  // If somebody waits for work: leave him half of what is left at the shallowest step, of those from `bottom` to `reached`.
  __device__ __forceinline__ void share(int bottom, int reached) {
    if (!search.queue_places) return;
    u32 place = 0, given = 0;
    int low = 0, high = 0, shallow = bottom;
    if (LANE == 0 && clock64() - looked > LOOK) {
      looked = clock64();
      const volatile u64 *desk = search.desk;
      if ((i64)(desk[TICKETS] - desk[GIFTS]) > 0) {
        for (; shallow < divisible && shallow <= reached && !given; ++shallow) {
          Level &level = levels[shallow];
          if (level.at < level.end) {
            low = level.at + (level.end - level.at) / 2, high = level.end;
            level.end = low;
            given = 1;
          } else if (const int more = __popc(level.mask) / 2) {  // of the candidates at hand, the last ones
            u32 rest = level.mask;
            for (int i = __popc(level.mask) - more; i; --i) rest &= rest - 1;
            low = level.base + __ffs(rest) - 1, high = level.end;
            level.mask &= ~rest, level.end = low;
            given = 1;
          }
        }
        --shallow;
      }
      if (given) {
        atomicAdd(search.state + BUSY, 1ull);  // who takes it is at work from now on
        const u64 ticket = atomicAdd(search.desk + GIFTS, 1ull);
        place = (u32)(ticket & (search.queue_places - 1));
        while (*(volatile u64 *)(search.turns + place) != ticket) __nanosleep(100);
        __threadfence();
      }
    }
    given = __shfl_sync(FULL, given, 0);
    if (!given) return;
    place = __shfl_sync(FULL, place, 0);
    int *mail = search.queue + place * (MAIL_HEADER + search.slots);
    if (LANE == 0) mail[0] = record, mail[1] = plan_number, mail[2] = shallow, mail[3] = low, mail[4] = high;
    for (int slot = LANE; slot < search.slots; slot += WARP) mail[MAIL_HEADER + slot] = values[slot];
    __threadfence();
    __syncwarp();
    if (LANE == 0) {
      atomicAdd(search.state + STOLEN, 1ull);
      atomicAdd(search.turns + place, 1ull);
    }
  }
};

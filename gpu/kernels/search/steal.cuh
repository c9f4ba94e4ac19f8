// Work stealing within and across blocks (STMatch §V); search.cu includes it where STEAL is 1 (within) or 2 (and across).
//
// A warp that has no work looks for the warp of its block with the most left at the shallowest step (Algorithm 2) and
// asks it.  That one divides what is left there when it next goes on to a later step: as nobody else touches its stack,
// it needs none of the paper's locks.  Where all warps of a block have none, the block is marked (is_idle there); who is
// at work somewhere else sees that now and then, takes the mark away and gives half of his to the block's first warp
// (its global_stk), from which the others take.  The search ends when no block has any.
//
// Candidates are not stored, as in the paper, but scanned: what is given is the batch whose lists they are, and the
// elements low ... high of these.  Shared memory that several warps use is only used by atomics.  What is given lies in
// global memory: the rows of the batch as a letter, their shared intersections where the receiver keeps his.

const u32 CLOSED = ~0u;                             // of Stack::asked: has nothing to give
const u32 ROUNDS = 32;                              // between two looks for blocks without work
const u32 REFUSED = 1u << 16, DONE = REFUSED + 1;  // of a letter, besides steps

// A warp's, in shared memory.
struct Stack {
  struct {
    u32 at, end, on;  // the elements left, and the rows of the batch that they belong to
  } frames[LEVELS];   // per step that is under way
  u32 left[LEVELS];   // how many: for other warps
  u32 asked;          // 1 + the warp of the block that asks for work, or CLOSED; 0: none
};

// In global memory, per warp.
struct Letter {
  u32 step;  // 0: none
  u32 low, high, on;
};
#include "stealing_layout.cuh"

__device__ __forceinline__ Stack *stacks() { return (Stack *)(batches + blockDim.x / WARP * ROOM); }
__device__ __forceinline__ u32 *idle_warps() { return (u32 *)(stacks() + blockDim.x / WARP); }

// The run's, in global memory: how many blocks are at work, how many are marked, the marks, and letters.
__device__ __forceinline__ u32 *marked(const Run &run) { return run.desk + 1; }
__device__ __forceinline__ u32 *marks(const Run &run) { return run.desk + 2; }
__device__ __forceinline__ u32 mark_words() { return (gridDim.x + 31) / 32; }
__device__ __forceinline__ Letter *letter_of(const Run &run, i64 warp) {
  return (Letter *)(run.desk + 2 + mark_words()) + warp;
}
__device__ __forceinline__ i64 first_warp() { return blockIdx.x * (i64)(blockDim.x / WARP); }

__device__ __forceinline__ u32 least_of(int step) { return step == LEVELS - 1 ? LEFT : 2; }

// Who asks this warp for work; 0: nobody.
__device__ __forceinline__ u32 asking() {
  u32 found = 0;
  if (LANE == 0) found = atomicOr(&stacks()[threadIdx.x / WARP].asked, 0u);
  return __shfl_sync(FULL, found, 0);
}

// Whether blocks are without work.
__device__ __forceinline__ bool marking(const Run &run) {
  u32 found = 0;
  if (LANE == 0) found = *(volatile u32 *)marked(run);
  return __shfl_sync(FULL, found, 0) != 0;
}

// And here it goes on itself, up to the end that is given back.
__device__ __forceinline__ u32 close(int step) {
  Stack &stack = stacks()[threadIdx.x / WARP];
  if (LANE == 0) atomicExch(&stack.left[step], 0u);
  __syncwarp();
  return stack.frames[step].end;
}

// Copy lists, lane i's of `count` elements from i * stride on: past what this processor keeps of them in its cache.
__device__ __forceinline__ void copy_lists(ID *to, const volatile ID *from, u32 count, i64 stride) {
  u32 total;
  const u32 first = exclusive_sum(count, total);
  for (u32 at = 0; at < total; at += WARP) {
    const u32 mine = at + LANE;
    const int owner = owner_of(first, mine);
    const i64 place = owner * stride + (mine - __shfl_sync(FULL, first, owner));
    if (mine < total) to[place] = from[place];
  }
  __syncwarp();
}

// Give half of what is left at the shallowest step to a warp; false where that is too little.
__device__ __noinline__ bool give(const Run *given, i64 to) {
  const Run &run = *given;
  Letter *letter = letter_of(run, to);
  int step = 0;
  if (LANE == 0) {
    Stack &stack = stacks()[threadIdx.x / WARP];
    for (step = FIRST; step < LEVELS; ++step)
      if (atomicOr(&stack.left[step], 0u) >= least_of(step)) break;
    if (step == LEVELS) step = 0;
    if (step && to >= 0) {
      auto &frame = stack.frames[step];
      const u32 middle = frame.end - (frame.end - frame.at) / 2;
      letter->low = middle, letter->high = frame.end, letter->on = frame.on;
      frame.end = middle;
      atomicExch(&stack.left[step], middle - frame.at);
    }
  }
  step = __shfl_sync(FULL, step, 0);
  if (!step || to < 0) return step;
  const ID *room = batches + threadIdx.x / WARP * ROOM;
  const ID *from = run.shares + (first_warp() + threadIdx.x / WARP) * run.share_ids;
  ID *rows = run.mail + to * MAIL, *shares = run.shares + to * run.share_ids;
  carry(
      step,
      [&](int at) {
        rows[LANE] = room[at + LANE];
        rows += WARP;
      },
      [&](int lengths, i64 keep, i64 stride) {
        copy_lists(shares + keep, from + keep, (u32)room[lengths + LANE], stride);
      });
  __threadfence();
  __syncwarp();
  if (LANE == 0) atomicExch(&letter->step, (u32)step);
  return true;
}

// Say no to who asks.
__device__ __forceinline__ void refuse(const Run &run, u32 asked) {
  atomicExch(&letter_of(run, first_warp() + asked - 1)->step, REFUSED);
}

// If a warp of the block asks for work: give it some, or say no.
__device__ __noinline__ void answer(const Run *given, u32 asked) {
  u32 *idle = idle_warps();
  const u32 bit = 1u << (asked - 1);
  // It is at work from now on, lest the block be taken for one without any while its work is under way.
  if (LANE == 0) atomicAnd(idle, ~bit);
  if (give(given, first_warp() + asked - 1)) {
    if (LANE == 0) atomicAdd(given->stolen, 1ull);
  } else if (LANE == 0) {
    atomicOr(idle, bit);
    __threadfence();
    refuse(*given, asked);
  }
  __syncwarp();
  if (LANE == 0) atomicExch(&stacks()[threadIdx.x / WARP].asked, 0u);
}

// If a block is marked: take its mark away and give it work.
__device__ __noinline__ void push(const Run *given) {
  const Run &run = *given;
  if (!give(given, -1)) return;
  u32 mine = 0;
  if (LANE == 0) {
    const u32 seen = *(volatile u32 *)marked(run);
    mine = seen && atomicCAS(marked(run), seen, seen - 1) == seen;
  }
  if (!__shfl_sync(FULL, mine, 0)) return;
  // There is a mark for everyone who comes as far as this; where one begins to look depends on where one is.
  const u32 words = mark_words();
  for (u32 at = blockIdx.x / 32 + LANE;; at += WARP) {
    const u32 word = at % words, seen = *(volatile u32 *)(marks(run) + word);
    const u32 some = __ballot_sync(FULL, seen != 0);
    if (!some) continue;
    const int lane = __ffs(some) - 1;
    u32 block = ~0u;
    if (LANE == lane) {
      const u32 bit = seen & (0u - seen);
      if (atomicAnd(marks(run) + word, ~bit) & bit) block = word * 32 + __ffs(bit) - 1;
    }
    block = __shfl_sync(FULL, block, lane);
    if (block == ~0u) continue;
    if (LANE == 0) {
      atomicAdd(run.desk, 1u);
      atomicAdd(run.stolen + 1, 1ull);
    }
    give(given, (i64)block * (blockDim.x / WARP));
    return;
  }
}

// Step `step` goes on with later ones: what is left there can be divided now.
__device__ __forceinline__ void open(Search &search, int step, u32 at, u32 end, bool on) {
  const u32 rows = __ballot_sync(FULL, on);
  if (LANE == 0) {
    Stack &stack = stacks()[threadIdx.x / WARP];
    stack.frames[step] = {at, end, rows};
    atomicExch(&stack.left[step], end - at);
  }
  if (const u32 who = asking()) answer(search.given, who);
  if (STEAL > 1 && search.turn - search.looked >= ROUNDS) {
    search.looked = search.turn;
    if (marking(search.run)) push(search.given);
  }
}

// Before work is shared out.
__device__ __forceinline__ void open_desk(const Run &run) {
  Stack &stack = stacks()[threadIdx.x / WARP];
  for (int step = LANE; step < LEVELS; step += WARP) atomicExch(&stack.left[step], 0u);
  if (LANE == 0) atomicExch(&stack.asked, 0u);
  if (threadIdx.x == 0) {
    atomicExch(idle_warps(), 0u);
    atomicAdd(run.desk, 1u);
    __threadfence();
  }
  __syncthreads();
}

// All warps of this block are without work: mark it; and if no block has any, tell all.
__device__ __forceinline__ void mark(const Run &run) {
  u32 last = 0;
  if (LANE == 0) {
    __threadfence();
    atomicOr(marks(run) + blockIdx.x / 32, 1u << blockIdx.x % 32);
    __threadfence();
    atomicAdd(marked(run), 1u);
    __threadfence();
    last = atomicAdd(run.desk, ~0u) == 1;
  }
  if (!__shfl_sync(FULL, last, 0)) return;
  for (u32 block = LANE; block < gridDim.x; block += WARP)
    atomicExch(&letter_of(run, (i64)block * (blockDim.x / WARP))->step, DONE);
}

// Wait for work: true, and in `on` the rows of the batch that extend() is to go on with; false: there is no more.
__device__ __forceinline__ bool steal(Search &search, bool &on) {
  const Run &run = search.run;
  const u32 warps = blockDim.x / WARP, me = threadIdx.x / WARP, all = (u32)((1ull << warps) - 1);
  Stack &stack = stacks()[me];
  u32 *idle = idle_warps();
  Letter *letter = letter_of(run, first_warp() + me);
  u32 full = 0;
  if (LANE == 0) {
    const u32 asked = atomicExch(&stack.asked, CLOSED);
    if (asked) refuse(run, asked);
    __threadfence();
    full = (atomicOr(idle, 1u << me) | 1u << me) == all;
  }
  if (STEAL > 1 && __shfl_sync(FULL, full, 0)) mark(run);
  u32 step = 0;
  bool waits = false;  // for an answer
  for (u32 turn = 1;; ++turn) {
    u32 state = 0;
    if (LANE == 0) {
      state = atomicOr(idle, 0u);
      if (waits || (STEAL > 1 && me == 0 && state == all))
        if (*(volatile u32 *)&letter->step) step = atomicExch(&letter->step, 0u);
    }
    state = __shfl_sync(FULL, state, 0), step = __shfl_sync(FULL, step, 0);
    if (step == DONE && LANE == 0) atomicOr(idle, 1u << 31);
    if (step == DONE || (!waits && (state >> 31 || (STEAL == 1 && state == all)))) return false;
    if (step && step != REFUSED) break;
    waits = waits && !step;
    step = 0;
    if (turn % 32 == 0 && search.stopped()) return false;
    if (!waits && state != all) {
      // Who has the most left at the shallowest step.
      u32 best = 0;
      int victim = 0;
      for (int level = FIRST; level < LEVELS && !best; ++level) {
        best = (u32)LANE < warps && LANE != me ? atomicOr(&stacks()[LANE].left[level], 0u) : 0;
        best = best < least_of(level) ? 0 : best;
        victim = LANE;
        for (int by = WARP / 2; by; by >>= 1) {
          const u32 other = __shfl_xor_sync(FULL, best, by);
          const int whose = __shfl_xor_sync(FULL, victim, by);
          if (other > best || (other == best && whose < victim)) best = other, victim = whose;
        }
      }
      u32 asked = 0;
      if (LANE == 0 && best) asked = atomicCAS(&stacks()[victim].asked, 0u, me + 1) == 0;
      waits = __shfl_sync(FULL, asked, 0);
    }
    __nanosleep(waits ? 200 : 1000);
  }
  __threadfence();
  __syncwarp();
  search.step = step, search.made = true;
  search.low = *(volatile u32 *)&letter->low, search.high = *(volatile u32 *)&letter->high;
  on = *(volatile u32 *)&letter->on >> LANE & 1;
  const volatile ID *rows = run.mail + (first_warp() + me) * MAIL;
  carry(
      (int)step,
      [&](int at) {
        search.room[at + LANE] = rows[LANE];
        rows += WARP;
      },
      [&](int lengths, i64 keep, i64 stride) {  // which others have written: so that this processor's cache knows
        copy_lists(search.shares + keep, search.shares + keep, (u32)search.room[lengths + LANE], stride);
      });
  __syncwarp();
  if (LANE == 0) {
    atomicAnd(idle, ~(1u << me));
    atomicExch(&stack.asked, 0u);
  }
  return true;
}

// Running kernels that are compiled as C++: the threads of a block are fibers that switch where CUDA synchronises.
//
// Blocks run one after the other, or together, as who emulates asks for.  Between two synchronisations another thread is
// the first one each time, so that what depends on an order that CUDA does not promise differs from run to run.  A
// collective that not all its threads reach is found as a deadlock.

#include <stdlib.h>
#include <time.h>
#include <ucontext.h>

#include "device.hpp"

// Where a function goes on.  The C library's jumps take several times as long as GCC's, of which there the compiler must
// not see that they never return: it would leave out where they are come back from.
#ifdef __clang__
#include <setjmp.h>
typedef jmp_buf Place;
#define REMEMBER _setjmp
#define GO_TO(place) _longjmp(place, 1)
#else
typedef void *Place[5];
#define REMEMBER __builtin_setjmp
__attribute__((noipa)) static void GO_TO(Place place) { __builtin_longjmp(place, 1); }
#endif

Dim threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {

typedef void (*Kernel)(unsigned long long, unsigned long long, unsigned long long, unsigned long long,
                       unsigned long long, unsigned long long, unsigned long long, unsigned long long,
                       unsigned long long, unsigned long long, unsigned long long, unsigned long long,
                       unsigned long long, unsigned long long, unsigned long long, unsigned long long,
                       unsigned long long, unsigned long long, unsigned long long, unsigned long long,
                       unsigned long long, unsigned long long, unsigned long long, unsigned long long);

struct Barrier { int expected, arrived; unsigned long long generation; };
// What the lanes give, by the parity of the generation: whoever gives the next value writes it beside those being read.
struct Warp { Barrier lanes; unsigned long long given[2][32]; };

// A fiber goes on where it left off, once the barrier that it waits at, if any, is past the generation that it found.
struct Fiber {
  Place left;
  Barrier *group;
  Warp *warp;
  char *stack;
  unsigned thread, block;
  bool done;
  const Barrier *at;
  unsigned long long generation;
  Fiber *next;
};

static const size_t STACK = 1 << 17, PAGE = 1 << 12, STAGGER = 9 * 64;
static Place scheduler;
static Fiber *idle, *waiting;  // lists
static Fiber *running;
static Barrier *blocks;
static Warp *warps;
static unsigned long long progress;
static unsigned chance = 1;
static Kernel kernel;
static const unsigned long long *arguments;

// Contexts only begin fibers: to switch between contexts is to call the system.
__attribute__((noinline)) void yield() {
  if (!REMEMBER(running->left)) GO_TO(scheduler);
}

static void wait(Barrier &barrier) {
  unsigned long long generation = barrier.generation;
  if (++barrier.arrived == barrier.expected) {
    barrier.arrived = 0;
    ++barrier.generation;
    ++progress;
  }
  if (barrier.generation != generation) return;
  running->at = &barrier;
  running->generation = generation;
  yield();
  running->at = nullptr;
}

void wait_for_block() { wait(*running->group); }
void wait_for_warp() { wait(running->warp->lanes); }

// Every lane gives a value and sees all of its warp, until it waits for the others once more.
static unsigned long long *exchange(unsigned long long value) {
  Warp *warp = running->warp;
  unsigned long long *given = warp->given[warp->lanes.generation % 2];
  given[threadIdx.x % 32] = value;
  wait(warp->lanes);
  return given;
}

unsigned ballot(bool predicate) {
  unsigned long long *given = exchange(predicate);
  unsigned word = 0, count = running->warp->lanes.expected;
  for (unsigned i = 0; i < count; ++i) word |= (unsigned)given[i] << i;
  return word;
}

// `width` is a power of two.
unsigned long long shuffle(unsigned long long value, int lane, int width) {
  return exchange(value)[(threadIdx.x % 32 & -width) + (lane & (width - 1))];
}

unsigned long long nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ull + now.tv_nsec;
}

// What a fiber runs: a thread, and once that has ended, another one.
static void body() {
  for (;;) {
    const unsigned long long *a = arguments;
    kernel(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15], a[16],
           a[17], a[18], a[19], a[20], a[21], a[22], a[23]);
    running->done = true;
    ++progress;
    yield();
  }
}

static void enter(Fiber *fiber) {
  running = fiber;
  threadIdx.x = fiber->thread;
  blockIdx.x = fiber->block;
}

// Stacks begin at different places in a page: at the same one they would share the same few lines of the cache.
__attribute__((noinline)) static void begin(Fiber *fiber) {
  static unsigned begun;
  enter(fiber);
  fiber->stack = (char *)malloc(STACK + PAGE);
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = fiber->stack + begun++ * STAGGER % PAGE;
  context.uc_stack.ss_size = STACK;
  context.uc_link = nullptr;
  makecontext(&context, body, 0);
  if (!REMEMBER(scheduler)) setcontext(&context);
}

__attribute__((noinline)) static void go_on(Fiber *fiber) {
  enter(fiber);
  if (!REMEMBER(scheduler)) GO_TO(fiber->left);
}

static void resume(Fiber *fiber) {
  if (!fiber->at || fiber->at->generation != fiber->generation) go_on(fiber);
}

// A fiber whose thread has ended serves another one.
static void rest(Fiber *fiber) {
  fiber->next = idle;
  idle = fiber;
}

static unsigned threads_of(unsigned warp) { return blockDim.x - warp * 32 < 32 ? blockDim.x - warp * 32 : 32; }

// Run blocks first ... last - 1; returns whether all their threads end.
static bool run_blocks(unsigned first, unsigned last) {
  unsigned threads = blockDim.x;
  for (unsigned block = first; block < last; ++block) {
    blocks[block] = {(int)threads, 0, 0};
    for (unsigned warp = 0; warp * 32 < threads; ++warp)
      warps[block * ((threads + 31) / 32) + warp].lanes = {(int)threads_of(warp), 0, 0};
  }
  Fiber **end = &waiting;
  for (unsigned number = first * threads; number < last * threads; ++number) {
    Fiber *fiber = idle;
    if (fiber) idle = fiber->next;
    else fiber = (Fiber *)calloc(1, sizeof(Fiber));
    fiber->next = nullptr;
    fiber->thread = number % threads;
    fiber->block = number / threads;
    fiber->group = &blocks[fiber->block];
    fiber->warp = &warps[fiber->block * ((threads + 31) / 32) + fiber->thread / 32];
    fiber->done = false;
    fiber->at = nullptr;
    fiber->stack ? resume(fiber) : begin(fiber);
    if (fiber->done) {
      rest(fiber);
    } else {
      *end = fiber;
      end = &fiber->next;
    }
  }
  for (int rounds = 0; waiting;) {
    unsigned long long before = progress;
    Fiber **place = &waiting;
    while (*place) {
      Fiber *fiber = *place;
      resume(fiber);
      if (fiber->done) {
        *place = fiber->next;
        rest(fiber);
      } else {
        place = &fiber->next;
      }
    }
    rounds = progress == before ? rounds + 1 : 0;
    if (rounds == 4) return false;  // who sleeps is not stuck: all may do so at once
    *place = waiting;  // a ring, which begins somewhere else
    for (int skipped = (chance = chance * 1103515245 + 12345) >> 16 & 255; waiting && skipped >= 0; --skipped) {
      place = &waiting->next;
      waiting = *place;
    }
    *place = nullptr;
  }
  return true;
}

// Leave threads that wait for ever.
static void give_up() {
  while (Fiber *fiber = waiting) {
    waiting = fiber->next;
    free(fiber->stack);
    free(fiber);
  }
}

}  // namespace emulator

// Run a kernel, `together` blocks at a time: 0, or 1 where threads wait for others that never come.
extern "C" int emulate(void *kernel, const unsigned long long *arguments, unsigned blocks, unsigned threads,
                       unsigned together) {
  emulator::kernel = (emulator::Kernel)kernel;
  emulator::arguments = arguments;
  gridDim = {blocks, 1, 1};
  blockDim = {threads, 1, 1};
  size_t warps = (size_t)blocks * ((threads + 31) / 32);
  emulator::blocks = (emulator::Barrier *)realloc(emulator::blocks, blocks * sizeof(emulator::Barrier));
  emulator::warps = (emulator::Warp *)realloc(emulator::warps, warps * sizeof(emulator::Warp));
  for (unsigned block = 0; block < blocks; block += together) {
    if (!emulator::run_blocks(block, block + together < blocks ? block + together : blocks)) {
      emulator::give_up();
      return 1;
    }
  }
  return 0;
}

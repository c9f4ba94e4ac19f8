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

struct Fiber;

// Who waits stands in `waiting`, which has room for all but the last who comes.
struct Barrier { int expected, arrived; unsigned long long generation; Fiber **waiting; };
// What the lanes give, by the parity of the generation: whoever gives the next value writes it beside those being read.
struct Warp { Barrier lanes; unsigned long long given[2][32]; Fiber *waiting[32]; };

// A fiber goes on where it left off.
struct Fiber {
  Place left;
  Barrier *group;
  Warp *warp;
  char *stack;
  unsigned thread, block;
  bool done;
  Fiber *next;
};

static const size_t STACK = 1 << 17, PAGE = 1 << 12, STAGGER = 9 * 64;
static Place scheduler;
static Fiber *idle;  // a list
static Fiber *running;
static Barrier *blocks;
static Warp *warps;
static Fiber **all, **ready, **at_blocks;  // of the blocks that run; who can go on stands in a ring
static unsigned room, count, head, turns;
static unsigned alive, stuck;
static unsigned long long progress, before;
static unsigned chance = 1;
static Kernel kernel;
static const unsigned long long *arguments;

static unsigned drawn() { return (chance = chance * 1103515245 + 12345) >> 16; }

static void queue(Fiber *fiber) {
  unsigned place = head + count++;
  ready[place < room ? place : place - room] = fiber;
}

static Fiber *taken() {
  Fiber *fiber = ready[head];
  if (++head == room) head = 0;
  --count;
  return fiber;
}

// Who goes on; nobody where none can, or where those who can sleep for ever.
static Fiber *following() {
  if (!count) return nullptr;
  if (!turns) {  // all had a turn: another one is the first now
    stuck = progress == before ? stuck + 1 : 0;
    before = progress;
    if (stuck == 4) return nullptr;  // who sleeps is not stuck: all may do so at once
    for (unsigned skipped = drawn() & 255; skipped; --skipped) queue(taken());
    turns = count;
  }
  --turns;
  return taken();
}

static void go_to(Fiber *fiber);

// Contexts only begin fibers: to switch between contexts is to call the system.
__attribute__((noinline)) static void leave() {
  if (!REMEMBER(running->left)) go_to(following());
}

void yield() {
  queue(running);
  leave();
}

static void wait(Barrier &barrier) {
  int arrived = barrier.arrived++;
  if (barrier.arrived < barrier.expected) {
    barrier.waiting[arrived] = running;
    leave();
    return;
  }
  barrier.arrived = 0;
  ++barrier.generation;
  ++progress;
  int first = arrived ? drawn() % arrived : 0;
  for (int i = first; i < arrived; ++i) queue(barrier.waiting[i]);
  for (int i = 0; i < first; ++i) queue(barrier.waiting[i]);
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
    running->next = idle;
    idle = running;
    --alive;
    ++progress;
    leave();
  }
}

// Stacks begin at different places in a page: at the same one they would share the same few lines of the cache.
__attribute__((noinline)) static void begin(Fiber *fiber) {
  static unsigned begun;
  fiber->stack = (char *)malloc(STACK + PAGE);
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = fiber->stack + begun++ * STAGGER % PAGE;
  context.uc_stack.ss_size = STACK;
  context.uc_link = nullptr;
  makecontext(&context, body, 0);
  setcontext(&context);
}

static void go_to(Fiber *fiber) {
  if (!fiber) GO_TO(scheduler);
  running = fiber;
  threadIdx.x = fiber->thread;
  blockIdx.x = fiber->block;
  if (fiber->stack) GO_TO(fiber->left);
  begin(fiber);
}

__attribute__((noinline)) static void go_on() {
  if (!REMEMBER(scheduler)) go_to(following());
}

static unsigned threads_of(unsigned warp) { return blockDim.x - warp * 32 < 32 ? blockDim.x - warp * 32 : 32; }

// Run blocks first ... last - 1; returns whether all their threads end.
static bool run_blocks(unsigned first, unsigned last) {
  unsigned threads = blockDim.x, warps_each = (threads + 31) / 32;
  for (unsigned block = first; block < last; ++block) {
    blocks[block] = {(int)threads, 0, 0, at_blocks + (block - first) * threads};
    for (unsigned warp = 0; warp < warps_each; ++warp) {
      Warp &own = warps[block * warps_each + warp];
      own.lanes = {(int)threads_of(warp), 0, 0, own.waiting};
    }
  }
  alive = (last - first) * threads;
  head = count = stuck = 0;
  for (unsigned number = first * threads; number < last * threads; ++number) {
    Fiber *fiber = idle;
    if (fiber) idle = fiber->next;
    else fiber = (Fiber *)calloc(1, sizeof(Fiber));
    fiber->thread = number % threads;
    fiber->block = number / threads;
    fiber->group = &blocks[fiber->block];
    fiber->warp = &warps[fiber->block * warps_each + fiber->thread / 32];
    fiber->done = false;
    all[count] = fiber;
    queue(fiber);
  }
  before = progress;
  turns = count;
  go_on();
  return !alive;
}

// Leave threads that wait for ever.
static void give_up(unsigned threads) {
  for (unsigned number = 0; number < threads; ++number) {
    if (all[number]->done) continue;
    free(all[number]->stack);
    free(all[number]);
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
  if (blocks < together) together = blocks;
  emulator::room = together * threads;
  size_t size = emulator::room * sizeof(emulator::Fiber *);
  emulator::all = (emulator::Fiber **)realloc(emulator::all, size);
  emulator::ready = (emulator::Fiber **)realloc(emulator::ready, size);
  emulator::at_blocks = (emulator::Fiber **)realloc(emulator::at_blocks, size);
  for (unsigned block = 0; block < blocks; block += together) {
    unsigned last = block + together < blocks ? block + together : blocks;
    if (!emulator::run_blocks(block, last)) {
      emulator::give_up((last - block) * threads);
      return 1;
    }
  }
  return 0;
}

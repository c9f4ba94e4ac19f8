// What CUDA C++ needs to run as C++ on the CPU: the threads of a block are fibers that switch where CUDA synchronises.
//
// Blocks run one after the other, or together, as who emulates asks for.  Between two synchronisations another thread is
// the first one each time, so that what depends on an order that CUDA does not promise differs from run to run.  A
// collective that not all its threads reach is found as a deadlock.
//
// It is compiled with each module: lists and arrays of its own take a quarter of the time that those of the library take.

#include <setjmp.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>

#define __device__
#define __global__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __shared__ static
#define __constant__ static

struct Dim { unsigned x, y, z; };
static Dim threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {

static unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }

struct Barrier { int expected, arrived; unsigned long long generation; };
// A fiber goes on where it left off, once the barrier that it waits at, if any, is past the generation that it found.
struct Fiber {
  jmp_buf left;
  char *stack;
  unsigned thread, block;
  bool done;
  const Barrier *at;
  unsigned long long generation;
  Fiber *next;
};

static jmp_buf scheduler;
static Fiber *idle, *waiting;  // lists
static Fiber *running;
static Barrier *blocks, *warps;
static unsigned long long progress;
static unsigned chance = 1;
static void (*kernel)(...);
static const unsigned long long *arguments;

// Contexts only begin fibers: to switch between contexts is to call the system.
static void yield() {
  if (!_setjmp(running->left)) _longjmp(scheduler, 1);
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

static unsigned warp_number() { return blockIdx.x * ((blockDim.x + 31) / 32) + threadIdx.x / 32; }
static Barrier &warp() { return warps[warp_number()]; }

// Every lane gives a value and sees all of its warp.
template <typename T> static T *exchange(T value) {
  static_assert(sizeof(T) <= 8, "at most eight bytes");
  static T lanes[64][32];
  T *mine = lanes[warp_number() % 64];
  mine[threadIdx.x % 32] = value;
  wait(warp());
  return mine;
}

typedef void (*Kernel)(unsigned long long, unsigned long long, unsigned long long, unsigned long long,
                       unsigned long long, unsigned long long, unsigned long long, unsigned long long,
                       unsigned long long, unsigned long long, unsigned long long, unsigned long long,
                       unsigned long long, unsigned long long, unsigned long long, unsigned long long,
                       unsigned long long, unsigned long long, unsigned long long, unsigned long long);

static void body() {
  const unsigned long long *a = arguments;
  ((Kernel)kernel)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15],
                   a[16], a[17], a[18], a[19]);
  running->done = true;
  ++progress;
  _longjmp(scheduler, 1);
}

static void enter(Fiber *fiber) {
  running = fiber;
  threadIdx.x = fiber->thread;
  blockIdx.x = fiber->block;
}

static void begin(Fiber *fiber) {
  enter(fiber);
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = fiber->stack;
  context.uc_stack.ss_size = 1 << 17;
  context.uc_link = nullptr;
  makecontext(&context, body, 0);
  if (!_setjmp(scheduler)) setcontext(&context);
}

static void resume(Fiber *fiber) {
  if (fiber->at && fiber->at->generation == fiber->generation) return;
  enter(fiber);
  if (!_setjmp(scheduler)) _longjmp(fiber->left, 1);
}

// A fiber whose thread has ended serves another one.
static void rest(Fiber *fiber) {
  fiber->next = idle;
  idle = fiber;
}

// Run blocks first ... last - 1, of at most 64 warps.
static int run_blocks(unsigned first, unsigned last, unsigned threads) {
  for (unsigned block = first; block < last; ++block) {
    blocks[block] = {(int)threads, 0, 0};
    for (unsigned warp = 0; warp * 32 < threads; ++warp)
      warps[block * ((threads + 31) / 32) + warp] = {(int)min(threads - warp * 32, 32u), 0, 0};
  }
  Fiber **end = &waiting;
  while (*end) end = &(*end)->next;
  for (unsigned number = first * threads; number < last * threads; ++number) {
    if (!idle) {
      idle = (Fiber *)calloc(1, sizeof(Fiber));
      idle->stack = (char *)malloc(1 << 17);
    }
    Fiber *fiber = idle;
    idle = fiber->next;
    fiber->next = nullptr;
    fiber->thread = number % threads;
    fiber->block = number / threads;
    fiber->done = false;
    fiber->at = nullptr;
    begin(fiber);
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
    if (rounds == 4) return 1;  // who sleeps is not stuck: all may do so at once
    *place = waiting;  // a ring, which begins somewhere else
    for (int skipped = (chance = chance * 1103515245 + 12345) >> 16 & 255; waiting && skipped >= 0; --skipped) {
      place = &waiting->next;
      waiting = *place;
    }
    *place = nullptr;
  }
  return 0;
}

}  // namespace emulator

// Run a kernel, `together` blocks at a time: 0, or 1 where threads wait for others that never come.
extern "C" int emulate(void *kernel, const unsigned long long *arguments, unsigned blocks, unsigned threads,
                       unsigned together) {
  emulator::kernel = (void (*)(...))kernel;
  emulator::arguments = arguments;
  gridDim = {blocks, 1, 1};
  blockDim = {threads, 1, 1};
  size_t warps = (size_t)blocks * ((threads + 31) / 32);
  emulator::blocks = (emulator::Barrier *)realloc(emulator::blocks, blocks * sizeof(emulator::Barrier));
  emulator::warps = (emulator::Barrier *)realloc(emulator::warps, warps * sizeof(emulator::Barrier));
  for (unsigned block = 0; block < blocks; block += together)
    if (emulator::run_blocks(block, emulator::min(block + together, blocks), threads)) return 1;
  return 0;
}

static inline void __syncthreads() { emulator::wait(emulator::blocks[blockIdx.x]); }
static inline void __syncwarp(unsigned = ~0u) { emulator::wait(emulator::warp()); }
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}
static inline long long clock64() { return 0; }
#define NANOSECONDS 1
static inline unsigned long long nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ull + now.tv_nsec;
}
template <typename T> static T min(T a, T b) { return b < a ? b : a; }
template <typename T> static T max(T a, T b) { return a < b ? b : a; }
static inline void __nanosleep(unsigned) { emulator::yield(); }

static inline unsigned __ballot_sync(unsigned, bool predicate) {
  unsigned *lanes = emulator::exchange<unsigned>(predicate);
  unsigned word = 0;
  unsigned count = emulator::warp().expected;
  for (unsigned i = 0; i < count; ++i) word |= (lanes[i] != 0) << i;
  __syncwarp();
  return word;
}
static inline bool __any_sync(unsigned mask, bool predicate) { return __ballot_sync(mask, predicate) != 0; }
static inline bool __all_sync(unsigned mask, bool predicate) { return !__ballot_sync(mask, !predicate); }

template <typename T> static T __shfl_sync(unsigned, T value, int lane, int width = 32) {
  T *lanes = emulator::exchange(value);
  int own = threadIdx.x % 32;
  T found = lanes[own / width * width + (lane & (width - 1))];
  __syncwarp();
  return found;
}
template <typename T> static T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
  int own = threadIdx.x % width;
  return __shfl_sync(mask, value, own >= (int)by ? own - (int)by : own, width);
}
template <typename T> static T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
  int own = threadIdx.x % width;
  return __shfl_sync(mask, value, own + (int)by < width ? own + (int)by : own, width);
}
template <typename T> static T __shfl_xor_sync(unsigned mask, T value, int by, int width = 32) {
  return __shfl_sync(mask, value, (int)(threadIdx.x % width) ^ by, width);
}

template <typename T> static T __ldg(const T *address) { return *address; }
static inline int __popc(unsigned word) { return __builtin_popcount(word); }
static inline int __popcll(unsigned long long word) { return __builtin_popcountll(word); }
static inline int __ffs(int word) { return __builtin_ffs(word); }
static inline int __ffsll(long long word) { return __builtin_ffsll(word); }
static inline int __clz(int word) { return word ? __builtin_clz(word) : 32; }
static inline int __clzll(long long word) { return word ? __builtin_clzll(word) : 64; }

template <typename T, typename U> static T atomicAdd(T *address, U value) { T old = *address; *address = old + (T)value; return old; }
template <typename T, typename U> static T atomicExch(T *address, U value) { T old = *address; *address = (T)value; return old; }
template <typename T, typename U> static T atomicOr(T *address, U value) { T old = *address; *address = old | (T)value; return old; }
template <typename T, typename U> static T atomicAnd(T *address, U value) { T old = *address; *address = old & (T)value; return old; }
template <typename T, typename U> static T atomicMax(T *address, U value) { T old = *address; if ((T)value > old) *address = (T)value; return old; }
template <typename T, typename U> static T atomicMin(T *address, U value) { T old = *address; if ((T)value < old) *address = (T)value; return old; }
template <typename T, typename U, typename V> static T atomicCAS(T *address, U expected, V value) {
  T old = *address;
  if (old == (T)expected) *address = (T)value;
  return old;
}

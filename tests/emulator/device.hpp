// What CUDA C++ needs to run as C++ on the CPU, for each module of device code; fibers.cpp, compiled once, runs the threads.
//
// It is compiled with each module, and nothing of the C or C++ library with it: reading their headers would take a tenth
// of the time.

#define __device__
#define __global__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __shared__ static
#define __constant__ static

typedef decltype(sizeof(0)) size_t;

struct Dim { unsigned x, y, z; };
extern Dim threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {

void wait_for_block();
void wait_for_warp();
void yield();
unsigned ballot(bool predicate);
unsigned long long shuffle(unsigned long long value, int lane, int width);
unsigned long long nanoseconds();

}  // namespace emulator

static inline void __syncthreads() { emulator::wait_for_block(); }
static inline void __syncwarp(unsigned = ~0u) { emulator::wait_for_warp(); }
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}
static inline long long clock64() { static long long now; return now += 1 << 10; }
#define NANOSECONDS 1
static inline unsigned long long nanoseconds() { return emulator::nanoseconds(); }
template <typename T> static T min(T a, T b) { return b < a ? b : a; }
template <typename T> static T max(T a, T b) { return a < b ? b : a; }
static inline void __nanosleep(unsigned) { emulator::yield(); }

static inline unsigned __ballot_sync(unsigned, bool predicate) { return emulator::ballot(predicate); }
static inline bool __any_sync(unsigned mask, bool predicate) { return __ballot_sync(mask, predicate) != 0; }
static inline bool __all_sync(unsigned mask, bool predicate) { return !__ballot_sync(mask, !predicate); }

template <typename T> static T __shfl_sync(unsigned, T value, int lane, int width = 32) {
  static_assert(sizeof(T) <= 8, "at most eight bytes");
  union { unsigned long long word; T value; } both = {0};
  both.value = value;
  both.word = emulator::shuffle(both.word, lane, width);
  return both.value;
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

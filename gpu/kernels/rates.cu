// How fast a card reads lists, adds at random places, and looks elements up in sorted lists (gpu/calibration.py).

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;

// A number that looks random.
static __device__ __forceinline__ u32 mixed(u64 number) {
  number = (number ^ number >> 33) * 0xff51afd7ed558ccdull;
  return (u32)((number ^ number >> 33) * 0xc4ceb9fe1a85ec53ull >> 32);
}

// The sum over a warp, in its first thread.
static __device__ __forceinline__ u64 together(u64 own) {
  for (int half = 16; half > 0; half /= 2) own += __shfl_down_sync(~0u, own, half);
  return own;
}

#ifndef NANOSECONDS
#define NANOSECONDS 1
// The card's clock: the same for all processors.
static __device__ __forceinline__ u64 nanoseconds() {
  u64 now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
#endif

// From when to when a launch ran, by the card's clock: what delays the host between two launches is not in it.
struct Span {
  u64 begin, end;

  __device__ __forceinline__ void begins() {
    if (threadIdx.x == 0) atomicMin(&begin, nanoseconds());
  }

  __device__ __forceinline__ void ends() {
    __threadfence();  // what was added is there
    __syncthreads();
    if (threadIdx.x == 0) atomicMax(&end, nanoseconds());
  }
};

// Ascending lists of `length` (a power of two): of each pair of numbers, one.
extern "C" __global__ void __launch_bounds__(256) fill_lists(u32 *cells, i64 count, u32 length) {
  const i64 step = gridDim.x * (i64)blockDim.x;
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < count; i += step)
    cells[i] = 2 * ((u32)i & (length - 1)) + (mixed(i) & 1);
}

// The sum of all cells: lists read in order.
extern "C" __global__ void __launch_bounds__(256) listed(const u32 *cells, i64 count, u64 *sum, Span *span) {
  span->begins();
  const i64 step = gridDim.x * (i64)blockDim.x;
  u64 own = 0;
#pragma unroll 8
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < count; i += step) own += cells[i];
  own = together(own);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, own);
  span->ends();
}

// Add to `count` cells among `size` (a power of two) at random.
extern "C" __global__ void __launch_bounds__(256) scattered(u32 *cells, i64 size, i64 count, Span *span) {
  span->begins();
  const i64 step = gridDim.x * (i64)blockDim.x;
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < count; i += step) atomicAdd(cells + (mixed(i) & (size - 1)), 1u);
  span->ends();
}

// Look the elements of each list up in another one, taken at random: how many are found.
extern "C" __global__ void __launch_bounds__(256) intersected(const u32 *cells, i64 count, u32 length, u64 *found, Span *span) {
  span->begins();
  const i64 step = gridDim.x * (i64)blockDim.x, lists = count / length;
  u64 own = 0;
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < count; i += step) {
    const u32 *other = cells + (i64)(mixed(i / length) % lists) * length;
    const u32 wanted = cells[i];
    u32 low = 0;
    for (u32 half = length / 2; half > 0; half /= 2)
      if (other[low + half] <= wanted) low += half;
    own += other[low] == wanted;
  }
  own = together(own);
  if (threadIdx.x % 32 == 0) atomicAdd(found, own);
  span->ends();
}

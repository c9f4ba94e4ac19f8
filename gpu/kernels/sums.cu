// Prefix sums: out[0] is 0, and out[i + 1] what values[0 ... i] are together.  Of several tiles, each is summed up first.
// Values may stand where their sums go, in out + 1.

#include "sets.cuh"

const int ITEMS = 8;

// What the values of each tile are together.
extern "C" __global__ void tile_sums(const i64 *values, i64 n, i64 *sums) {
  __shared__ i64 parts[32];
  const i64 begin = blockIdx.x * (i64)(ITEMS * blockDim.x);
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  i64 sum = 0;
  for (int i = 0; i < ITEMS; ++i) {
    const i64 at = begin + i * (i64)blockDim.x + threadIdx.x;
    if (at < n) sum += values[at];
  }
  for (int by = 16; by; by /= 2) sum += __shfl_down_sync(~0u, sum, by);
  if (lane == 0) parts[warp] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (u32 i = 1; i < blockDim.x / 32; ++i) sum += parts[i];
    sums[blockIdx.x] = sum;
  }
}

// The sums of each tile, behind those before it: `sums` are what tiles are together, or with `summed` their prefix sums.
extern "C" __global__ void sum_tiles(const i64 *values, i64 n, const i64 *sums, i64 summed, i64 *out) {
  __shared__ i64 parts[32];
  const i64 begin = blockIdx.x * (i64)(ITEMS * blockDim.x);
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  i64 before = 0;
  if (summed) {
    before = sums[blockIdx.x];
  } else if (blockIdx.x) {
    i64 sum = 0;
    for (u32 i = threadIdx.x; i < blockIdx.x; i += blockDim.x) sum += sums[i];
    for (int by = 16; by; by /= 2) sum += __shfl_down_sync(~0u, sum, by);
    if (lane == 0) parts[warp] = sum;
    __syncthreads();
    for (u32 i = 0; i < warps; ++i) before += parts[i];
    __syncthreads();
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) out[0] = 0;
  for (int i = 0; i < ITEMS; ++i) {
    const i64 at = begin + i * (i64)blockDim.x + threadIdx.x;
    i64 sum = at < n ? values[at] : 0;
    for (int by = 1; by < 32; by *= 2) {
      const i64 other = __shfl_up_sync(~0u, sum, by);
      if (lane >= by) sum += other;
    }
    if (lane == 31) parts[warp] = sum;
    __syncthreads();
    i64 all = 0;
    for (u32 j = 0; j < warps; ++j) {
      if (j < warp) sum += parts[j];
      all += parts[j];
    }
    if (at < n) out[at + 1] = before + sum;
    before += all;
    __syncthreads();
  }
}

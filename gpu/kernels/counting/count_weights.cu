// Weights: a number per vertex, counted along trees (plan/counting/nested_loops.py).

#include "teams.cuh"

// out[x] = (before ? before[x] : 1) * n (n - 1) … (n - fall + 1), where x passes the filter; else 0.
// n is the sum of the child over x's neighbours; fall is 1 but for leaves that differ.  The child is bits, numbers or (both null) 1.  top becomes the greatest value, flag is set if one may not fit.
extern "C" __global__ void __launch_bounds__(256)
weigh(const i64 *table, i64 relation, const u32 *child_bits, const u64 *child, const u32 *filter, const u64 *before,
      u64 *out, i64 vertices, u64 *top, u32 *flag, i64 fall) {
  const i64 *row = table + RANKED_CELLS * relation;
  const Ranked ranked = {(const u32 *)row[0], (const u32 *)row[1], (const u32 *)row[2], (const int *)row[3]};
  const int warps = gridDim.x * (blockDim.x / WARP);
  u64 greatest = 0;
  for (int x = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP; x < vertices; x += warps) {
    u64 sum = 0;
    double size = 0;
    if ((!filter || bit(filter, x)) && (!before || before[x])) {
      const List all = list<0>(ranked, x);
      if (!child_bits && !child) {
        sum = all.count;
      } else {
        for (u32 k = LANE; k < all.count; k += WARP) {
          const int y = __ldg(all.ids + k);
          const u64 value = child_bits ? bit(child_bits, y) : child[y];
          sum += value;
          size += (double)value;
        }
        sum = warp_sum(sum);
        size = warp_sum(size);
      }
      if (fall > 1) {
        u64 ways = 1;
        size = 1;
        for (i64 i = 0; i < fall; ++i) {
          const u64 left = sum > (u64)i ? sum - (u64)i : 0;
          ways *= left;
          size *= (double)left;
        }
        sum = ways;
      }
      if (before) {
        size = (size == 0 ? (double)sum : size) * (double)before[x];
        sum *= before[x];
      }
    }
    if (size > 4e18 && LANE == 0) *flag = 1;
    if (LANE == 0) out[x] = sum;
    greatest = sum > greatest ? sum : greatest;
  }
  if (LANE == 0 && greatest) atomicMax(top, greatest);
}

// The sum of all values, and roughly.
extern "C" __global__ void __launch_bounds__(256)
add_up(const u64 *values, i64 vertices, u64 *sums, double *sizes) {
  u64 own = 0;
  double size = 0;
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < vertices; i += gridDim.x * (i64)blockDim.x) {
    own += values[i];
    size += (double)values[i];
  }
  own = warp_sum(own);
  size = warp_sum(size);
  if (LANE == 0 && own) atomicAdd(sums, own);
  if (LANE == 0 && size != 0) atomicAdd(sizes, size);
}

// Add a part's numbers by vertex to those of all parts.
extern "C" __global__ void __launch_bounds__(256)
add_scaled(const u64 *values, i64 factor, i64 vertices, i64 *out) {
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i < vertices) out[i] += factor * (i64)values[i];
}

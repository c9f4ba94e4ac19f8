// What rows of the join's tables stand for: how many matches each, by the row that they came from.

#include "sets.cuh"

// Add numbers to the rows that matches came from.  Those of one row stand side by side: a warp adds each row's sum once,
// or a few rows with all the matches would have every thread wait for every other.  All lanes call it; -1 is no row.
__device__ __forceinline__ void add_to(u64 *matches, i64 origin, u64 number) {
  u32 lane = threadIdx.x % 32;
  u64 sum = number;
  for (int by = 1; by < 32; by *= 2) {
    u64 other = __shfl_up_sync(~0u, sum, by);
    if (lane >= by) sum += other;
  }
  i64 next = __shfl_down_sync(~0u, origin, 1);
  bool last = lane == 31 || next != origin;
  u32 before = __ballot_sync(~0u, last) & ((1u << lane) - 1);
  u64 others = __shfl_sync(~0u, sum, before ? 31 - __clz(before) : 0);
  if (before) sum -= others;
  if (last && origin >= 0 && sum) atomicAdd(matches + origin, sum);
}

// Add up how many matches each row stands for: rows of the last table, by the row they came from.
extern "C" __global__ void add_matches(const ID *origins, i64 rows, i64 *matches) {
  i64 row = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  add_to((u64 *)matches, row < rows ? (i64)origins[row] : -1, row < rows);
}

// The same where a row has as many matches as it has elements; without `origins`, it is its own.
extern "C" __global__ void add_list_lengths(const i64 *offsets, i64 rows, const ID *origins, i64 *matches) {
  i64 row = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  bool there = row < rows;
  u64 found = there ? offsets[row + 1] - offsets[row] : 0;
  add_to((u64 *)matches, !there ? -1 : origins ? (i64)origins[row] : row, found);
}

// 1 for each row that stands for some match.
extern "C" __global__ void matched(const i64 *matches, i64 rows, i64 *out) {
  i64 row = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (row < rows) out[row] = matches[row] > 0;
}

// Those rows, with their numbers: columns are (column of the table or CONSTANT, slot).
extern "C" __global__ void keep_rows(const ID *table, i64 stride, i64 rows, const i64 *columns, i64 count,
                                     const i64 *constants, const i64 *matches, const i64 *positions, ID *out,
                                     i64 out_stride, i64 *out_matches) {
  i64 row = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (row >= rows || !matches[row]) return;
  i64 position = positions[row];
  for (i64 c = 0; c < count; ++c)
    out[c * out_stride + position] = columns[2 * c] >= 0 ? table[columns[2 * c] * stride + row]
                                                         : (ID)constants[columns[2 * c + 1]];
  out_matches[position] = matches[row];
}

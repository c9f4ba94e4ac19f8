// Compression of an embedding table after a filter: marks as bits, prefix sums over them, and what stays in its new place
// (GAMMA §5.2), a thread for each row.  VALUE is the type of a column's values.
//
// Row r of a column stays where bit r is set; starts[w] is how many rows stay before the w-th word of 32.

#include "teams.cuh"

__device__ __forceinline__ bool is_set(const u32 *bits, i64 row) { return bits[row >> 5] >> (row & 31) & 1; }

__device__ __forceinline__ i64 place_of(const u32 *bits, const i64 *starts, i64 row) {
  return starts[row >> 5] + __popc(bits[row >> 5] & ((1u << (row & 31)) - 1));
}

extern "C" __global__ void __launch_bounds__(256) count_bits(const u32 *bits, i64 words, i64 *counts) {
  for (i64 w = blockIdx.x * (i64)blockDim.x + threadIdx.x; w < words; w += gridDim.x * (i64)blockDim.x)
    counts[w] = __popc(bits[w]);
}

// The parents of rows that stay, stay too.  parents are those of count rows from `first` on.
extern "C" __global__ void __launch_bounds__(256)
mark_parents(const i64 *parents, i64 first, i64 count, const u32 *bits, u32 *parent_bits) {
  for (i64 r = blockIdx.x * (i64)blockDim.x + threadIdx.x; r < count; r += gridDim.x * (i64)blockDim.x) {
    if (!is_set(bits, first + r)) continue;
    const i64 parent = parents[r];
    const u32 bit = 1u << (parent & 31);
    if (!(*(volatile u32 *)(parent_bits + (parent >> 5)) & bit)) atomicOr(parent_bits + (parent >> 5), bit);
  }
}

// Of count rows from `first` on, before which `before` stay: values, and, but for a first column, where their parents go.
extern "C" __global__ void __launch_bounds__(256)
compress(const VALUE *values, const i64 *parents, i64 first, i64 count, i64 before, const u32 *bits, const i64 *starts,
         const u32 *parent_bits, const i64 *parent_starts, VALUE *out_values, i64 *out_parents) {
  for (i64 r = blockIdx.x * (i64)blockDim.x + threadIdx.x; r < count; r += gridDim.x * (i64)blockDim.x) {
    if (!is_set(bits, first + r)) continue;
    const i64 at = place_of(bits, starts, first + r) - before;
    out_values[at] = values[r];
    if (parents) out_parents[at] = place_of(parent_bits, parent_starts, parents[r]);
  }
}

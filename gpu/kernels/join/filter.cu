// Partitions narrowed to a candidate set: the neighbours that are no candidates are left out (SGSI §3.1).

#include "sets.cuh"

#ifndef THREADS
#define THREADS 256
#endif

const int ITEMS = 8;
const int TILE = THREADS * ITEMS;
const int WARPS = THREADS / 32;
const int WORDS = TILE / 32;

// One bit per entry that is a candidate, and how many there are in each tile.
extern "C" __global__ void mark_candidates(const ID *neighbours, i64 entries, const unsigned char *candidates,
                                           u32 *bits, i64 *counts) {
  __shared__ u32 found[WARPS];
  u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, mine = 0;
  for (int i = 0; i < ITEMS; ++i) {
    i64 at = blockIdx.x * (i64)TILE + i * THREADS + threadIdx.x;
    u32 word = __ballot_sync(~0u, at < entries && bit(candidates, neighbours[at]));
    if (lane == 0) bits[blockIdx.x * (i64)WORDS + i * WARPS + warp] = word;
    mine += __popc(word);
  }
  if (lane == 0) found[warp] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    i64 sum = 0;
    for (int i = 0; i < WARPS; ++i) sum += found[i];
    counts[blockIdx.x] = sum;
  }
}

// How many candidates stand before an entry.
__device__ __forceinline__ i64 rank(i64 at, const u32 *bits, const i64 *positions) {
  i64 tile = at / TILE, sum = positions[tile];
  for (i64 word = tile * WORDS; word < at / 32; ++word) sum += __popc(bits[word]);
  if (at % 32) sum += __popc(bits[at / 32] & ((1u << at % 32) - 1));
  return sum;
}

extern "C" __global__ void keep_candidates(const ID *neighbours, i64 entries, const u32 *bits, const i64 *positions,
                                           ID *out) {
  i64 at = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (at < entries && bits[at / 32] >> at % 32 & 1) out[rank(at, bits, positions)] = neighbours[at];
}

// The offset layer over what is left; of a hashed one, every other cell is a vertex or the number of a group.
extern "C" __global__ void move_offsets(const i64 *offsets, i64 cells, i64 hashed, const u32 *bits,
                                        const i64 *positions, i64 *out) {
  i64 cell = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (cell < cells) out[cell] = hashed && cell % 2 == 0 ? offsets[cell] : rank(offsets[cell], bits, positions);
}

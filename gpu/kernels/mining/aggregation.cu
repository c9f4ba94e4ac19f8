// Quick patterns of embeddings, and which rows have the same: aggregation by hashing, a thread for each row.
//
// A quick pattern is the labels of an embedding's vertices and what joins each pair of them, as
// graphdb/mining/aggregation.py has it.  Rows look for their pattern in an open-addressing table whose slots name the row that came first there; what
// they compare are whole patterns, so that two that collide stay two.

#include "teams.cuh"

const int PLACES = 6;

// The pair of the places i < j.
__device__ __forceinline__ int pair_of(int i, int j) { return j * (j - 1) / 2 + i; }

// The place of a vertex among those of a row of edges, which come in the order in which they are met.
__device__ __forceinline__ int place_in(int *vertices, int &found, int vertex) {
  int place = 0;
  while (place < found && vertices[place] != vertex) ++place;
  if (place == found) vertices[found++] = vertex;
  return place;
}

// A cell with one more code among its digits to the base, which never rise; codes are above 0.
__device__ __forceinline__ i64 with_code(i64 cell, i64 code, i64 base) {
  i64 below = 0, scale = 1;
  while (cell != 0 && cell % base < code) {
    below += cell % base * scale;
    scale *= base;
    cell /= base;
  }
  return (cell * base + code) * scale + below;
}

// Quick patterns of rows of vertices: 1 more than their labels, then 1 more than the state of each pair, or 0.
extern "C" __global__ void __launch_bounds__(256)
quick_of_vertices(const i64 *offsets, const int *ids, const i64 *states, const i64 *labels, const int *rows, i64 count,
                  i64 size, i64 width, i64 *quick) {
  for (i64 r = blockIdx.x * (i64)blockDim.x + threadIdx.x; r < count; r += gridDim.x * (i64)blockDim.x) {
    i64 *own = quick + r * width;
    for (int j = 0; j < size; ++j) {
      const int v = rows[r * size + j];
      own[j] = labels[v] + 1;
      for (int i = 0; i < j; ++i) {
        const int u = rows[r * size + i];
        i64 begin = __ldg(offsets + u), end = __ldg(offsets + u + 1);
        const i64 last = end;
        while (begin < end) {
          const i64 middle = (begin + end) >> 1;
          if (__ldg(ids + middle) < v) begin = middle + 1;
          else end = middle;
        }
        own[size + pair_of(i, j)] = begin < last && __ldg(ids + begin) == v ? __ldg(states + begin) + 1 : 0;
      }
    }
  }
}

// Of rows of edges: their vertices as they come, and what the row's edges make of all pairs of them.
extern "C" __global__ void __launch_bounds__(256)
quick_of_edges(const int *source, const int *target, const i64 *kinds, const i64 *labels, i64 directed, i64 base,
               const int *rows, i64 count, i64 size, i64 width, i64 *quick) {
  const int places = (int)size + 1;
  for (i64 r = blockIdx.x * (i64)blockDim.x + threadIdx.x; r < count; r += gridDim.x * (i64)blockDim.x) {
    i64 *own = quick + r * width;
    int vertices[PLACES];
    int found = 0;
    for (int k = 0; k < width; ++k) own[k] = 0;
    for (int k = 0; k < size; ++k) {
      const int edge = rows[r * size + k];
      const int first = place_in(vertices, found, source[edge]), second = place_in(vertices, found, target[edge]);
      const int low = first < second ? first : second, high = first < second ? second : first;
      i64 *cell = own + places + pair_of(low, high);
      *cell = with_code(*cell, 1 + 2 * kinds[edge] + (directed && first > second), base);
    }
    for (int v = 0; v < found; ++v) own[v] = labels[vertices[v]] + 1;
  }
}

__device__ __forceinline__ u64 hashed(const i64 *own, i64 width) {
  u64 mixed = 0x9e3779b97f4a7c15ull;
  for (int k = 0; k < width; ++k) {
    mixed = (mixed ^ (u64)own[k]) * 0xbf58476d1ce4e5b9ull;
    mixed ^= mixed >> 29;
  }
  return mixed ^ mixed >> 32;
}

// Find each row's slot: slots are 1 more than the row that came first, 0 as yet; there are 2^bits.
extern "C" __global__ void __launch_bounds__(256)
find_slots(const i64 *quick, i64 count, i64 width, u32 *slots, i64 bits, u32 *firsts, int *slot_of) {
  const u32 mask = (u32)((1ull << bits) - 1);
  for (i64 r = blockIdx.x * (i64)blockDim.x + threadIdx.x; r < count; r += gridDim.x * (i64)blockDim.x) {
    const i64 *own = quick + r * width;
    u32 at = (u32)hashed(own, width) & mask;
    for (;; at = (at + 1) & mask) {
      u32 there = *(volatile u32 *)(slots + at);
      if (there == 0) there = atomicCAS(slots + at, 0u, (u32)r + 1);
      if (there == 0) break;  // it is ours
      const i64 *other = quick + (i64)(there - 1) * width;
      bool same = true;
      for (int k = 0; k < width && same; ++k) same = own[k] == other[k];
      if (same) break;
    }
    slot_of[r] = (int)at;
    // Many rows have the same pattern, and most of them come after one that is known.
    if (*(volatile u32 *)(firsts + at) > (u32)r) atomicMin(firsts + at, (u32)r);
  }
}

// The first row of each row's pattern.
extern "C" __global__ void __launch_bounds__(256)
name_firsts(const u32 *firsts, const int *slot_of, i64 count, int *out) {
  for (i64 r = blockIdx.x * (i64)blockDim.x + threadIdx.x; r < count; r += gridDim.x * (i64)blockDim.x)
    out[r] = (int)firsts[slot_of[r]];
}

// Some patterns, one after the other.
extern "C" __global__ void __launch_bounds__(256)
gather_patterns(const i64 *quick, const i64 *which, i64 count, i64 width, i64 *out) {
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < count * width; i += gridDim.x * (i64)blockDim.x)
    out[i] = quick[which[i / width] * width + i % width];
}

// Set the bit of each vertex at the slot that it takes: slots [quick patterns, width] are by place, negative for none.  Rows
// are of vertices, or, where source and target are given, of edges.
extern "C" __global__ void __launch_bounds__(256)
mark_images(const int *source, const int *target, const int *rows, const int *quick_of_row, i64 count, i64 size,
            const int *slots, i64 width, i64 words, u32 *bits) {
  for (i64 r = blockIdx.x * (i64)blockDim.x + threadIdx.x; r < count; r += gridDim.x * (i64)blockDim.x) {
    int vertices[PLACES];
    int found = 0;
    for (int k = 0; k < size; ++k) {
      const int id = rows[r * size + k];
      if (source) {
        place_in(vertices, found, source[id]);
        place_in(vertices, found, target[id]);
      } else {
        vertices[found++] = id;
      }
    }
    const int *own = slots + quick_of_row[r] * width;
    for (int k = 0; k < found; ++k) {
      if (own[k] < 0) continue;
      u32 *word = bits + own[k] * words + (vertices[k] >> 5);
      const u32 bit = 1u << (vertices[k] & 31);
      if (!(*(volatile u32 *)word & bit)) atomicOr(word, bit);  // most are there already
    }
  }
}

// The bits of each slot, a warp for each.
extern "C" __global__ void __launch_bounds__(256) count_images(const u32 *bits, i64 slots, i64 words, i64 *counts) {
  const i64 warps = gridDim.x * (i64)blockDim.x / WARP;
  for (i64 slot = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / WARP; slot < slots; slot += warps) {
    i64 sum = 0;
    for (i64 word = LANE; word < words; word += WARP) sum += __popc(bits[slot * words + word]);
    sum = warp_sum(sum);
    if (LANE == 0) counts[slot] = sum;
  }
}

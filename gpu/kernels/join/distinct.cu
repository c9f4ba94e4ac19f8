// Rows made one: a hash table of 64-bit keys, and how often each came (gpu/join/distinct.py).

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;

// Put rows [outputs][stride] of one or two vertices into a table of `slots` (a power of two) that has room for all.  A key
// is one more than its row; 0 is a free slot.  Equal rows often stand side by side: one thread puts such a run.
extern "C" __global__ void __launch_bounds__(256)
put_rows(const ID *cells, i64 stride, i64 rows, i64 outputs, u64 *keys, u64 *numbers, i64 slots, u64 *used) {
  const i64 row = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  const u32 lane = threadIdx.x % 32;
  u64 key = 0;
  if (row < rows) key = (outputs == 1 ? (u64)cells[row] : (u64)cells[row] << 32 | (u32)cells[stride + row]) + 1;
  const u64 before = __shfl_up_sync(~0u, key, 1);
  const bool first = lane == 0 || before != key;
  const u32 later = __ballot_sync(~0u, first) & ~((2u << lane) - 1);
  if (!first || row >= rows) return;
  u64 slot = key * 0x9e3779b97f4a7c15ull >> 32 & (slots - 1);
  for (;; slot = slot + 1 & (slots - 1)) {
    u64 present = keys[slot];
    if (present == 0) {
      present = atomicCAS(keys + slot, 0ull, key);
      if (present == 0) atomicAdd(used, 1ull);
    }
    if (present == 0 || present == key) break;
  }
  atomicAdd(numbers + slot, (u64)((later ? __ffs(later) - 1 : 32) - lane));
}

// 1 for each slot that is taken.
extern "C" __global__ void __launch_bounds__(256) taken(const u64 *keys, i64 slots, i64 *out) {
  const i64 slot = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (slot < slots) out[slot] = keys[slot] != 0;
}

// The rows of those, with their numbers; all slots are free again.
extern "C" __global__ void __launch_bounds__(256)
take_rows(u64 *keys, u64 *numbers, i64 slots, const i64 *positions, i64 outputs, ID *out, i64 stride, i64 *out_numbers) {
  const i64 slot = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (slot >= slots || keys[slot] == 0) return;
  const i64 at = positions[slot];
  const u64 key = keys[slot] - 1;
  out[at] = (ID)(outputs == 1 ? key : key >> 32);
  if (outputs == 2) out[stride + at] = (ID)(key & 0xffffffffu);
  out_numbers[at] = (i64)numbers[slot];
  keys[slot] = 0;
  numbers[slot] = 0;
}

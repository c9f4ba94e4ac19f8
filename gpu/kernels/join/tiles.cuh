// Tiles: the elements of the lists of all rows, one list after the other, TILE of them to a block.

#ifndef THREADS
#define THREADS 256
#endif
#ifndef ITEMS
#define ITEMS 8
#endif

const int TILE = THREADS * ITEMS;
const int WARPS = THREADS / 32;
const int WORDS = TILE / 32;

// The row that an element belongs to: the last one in [low, high] that begins at it or before.
__device__ __forceinline__ i64 row_of(const i64 *__restrict__ offsets, i64 low, i64 high, i64 at) {
  while (low < high) {
    i64 middle = (low + high + 1) >> 1;
    if (__ldg(offsets + middle) <= at)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

// Where a tile keeps the row of its element i, counted from the tile's first row: a word in 32 is left out, so that
// threads that go through eight elements each meet no bank of another's.
const int ROWS = TILE + TILE / 32;
__device__ __forceinline__ int slot_of(int i) { return i + i / 32; }

// The rows of all elements of a tile: each row is written down at its first element, and holds until the next.
__device__ void rows_of_tile(const i64 *__restrict__ offsets, i64 low, i64 high, i64 tile, u32 *rows) {
  __shared__ u32 greatest[WARPS];
  for (int i = threadIdx.x; i < ROWS; i += THREADS) rows[i] = 0;
  __syncthreads();
  for (i64 row = low + 1 + threadIdx.x; row <= high; row += THREADS) {
    i64 at = __ldg(offsets + row);
    if (at >= tile && at < tile + TILE && __ldg(offsets + row + 1) > at) rows[slot_of(at - tile)] = (u32)(row - low);
  }
  __syncthreads();
  int first = threadIdx.x * ITEMS;
  u32 most = 0;
  for (int i = first; i < first + ITEMS; ++i) {
    u32 row = rows[slot_of(i)];
    most = row > most ? row : most;
  }
  u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int by = 1; by < 32; by *= 2) {
    u32 other = __shfl_up_sync(~0u, most, by);
    if (lane >= by && other > most) most = other;
  }
  if (lane == 31) greatest[warp] = most;
  u32 before = __shfl_up_sync(~0u, most, 1);
  if (lane == 0) before = 0;
  __syncthreads();
  for (u32 i = 0; i < warp; ++i) before = greatest[i] > before ? greatest[i] : before;
  for (int i = first; i < first + ITEMS; ++i) {
    u32 row = rows[slot_of(i)];
    before = row > before ? row : before;
    rows[slot_of(i)] = before;
  }
  __syncthreads();
}

// A Bloom filter of what is adjacent to a prefix, for extension by any neighbour: in place of prefix.cuh.
//
// A neighbour of the last vertex extends a row unless it is one of an earlier vertex: those that the filter does not know
// are none, and are not searched (GAMMA §6.1, optimisation 3; nothing is collected, as what is not found is taken).

const int BITS = 4096, ROOM = BITS / 32;

struct Prefix {
  int *ids;   // the filter
  int count;  // more than MERGED: it would know too many
};

__device__ __forceinline__ bool same_prefix(const int *rows, i64 row, int size) {
  for (int i = 0; i < size - 1; ++i)
    if (__ldg(rows + row * size + i) != __ldg(rows + (row - 1) * size + i)) return false;
  return true;
}

__device__ __forceinline__ bool is_head(const int *rows, i64 row, int size) {
  return row % LARGEST == 0 || !same_prefix(rows, row, size);
}

__device__ __forceinline__ int first_bit(int u) { return (int)((u32)u * 0x9e3779b1u >> 20); }
__device__ __forceinline__ int second_bit(int u) { return (int)((u32)u * 0x85ebca77u >> 20); }

__device__ void merge(const Lists &lists, const int *row, int size, Prefix &prefix) {
  i64 count = 0;
  for (int i = 0; i < size - 1; ++i) count += __ldg(lists.offsets + row[i] + 1) - __ldg(lists.offsets + row[i]);
  prefix.count = count > MERGED ? MERGED + 1 : (int)count;
  if (count > MERGED) return;
  u32 *bits = (u32 *)prefix.ids;
  __syncwarp();
  for (int word = LANE; word < ROOM; word += WARP) bits[word] = 0;
  __syncwarp();
  for (int i = 0; i < size - 1; ++i)
    for (i64 at = __ldg(lists.offsets + row[i]) + LANE; at < __ldg(lists.offsets + row[i] + 1); at += WARP) {
      set_bit(bits, first_bit(__ldg(lists.ids + at)));
      set_bit(bits, second_bit(__ldg(lists.ids + at)));
    }
  __syncwarp();
}

template <typename Take>
__device__ void any_of_filtered(const Lists &lists, const Prefix &prefix, const int *row, int size, Take take) {
  const u32 *bits = (const u32 *)prefix.ids;
  for (int i = 0; i < size; ++i) {
    const i64 end = __ldg(lists.offsets + row[i] + 1);
    const i64 begin = lower_bound(lists.ids, __ldg(lists.offsets + row[i]), end, least_after(row, size, i));
    for (i64 at = begin; at < end; at += WARP) {
      const int u = at + LANE < end ? __ldg(lists.ids + at + LANE) : -1;
      bool on = u >= 0;
      const bool search = i < size - 1 || (on && bit(bits, first_bit(u)) && bit(bits, second_bit(u)));
      for (int j = 0; j < i; ++j) on = on && row[j] != u && (!search || place_of(lists, row[j], u) < 0);
      take(u, on);
    }
  }
}

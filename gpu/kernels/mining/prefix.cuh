// What rows of an embedding table with the same prefix have in common: intersected once, in shared memory, and searched for
// each row (GAMMA §6.1, optimisation 2).  A layout by banks and a filter in front (optimisation 3) gain nothing:
// tests/benchmarks/prefix_layouts.cuh.

const int ROOM = MERGED;  // ints of shared memory for a warp

// What a group of rows has in common: the higher common neighbours of all vertices but the last.
struct Prefix {
  int *ids;
  int count;  // more than MERGED: they did not fit
};

__device__ __forceinline__ bool same_prefix(const int *rows, i64 row, int size) {
  for (int i = 0; i < size - 1; ++i)
    if (__ldg(rows + row * size + i) != __ldg(rows + (row - 1) * size + i)) return false;
  return true;
}

// Whether a group begins here: groups are cut where there are LARGEST rows or more.
__device__ __forceinline__ bool is_head(const int *rows, i64 row, int size) {
  return row % LARGEST == 0 || !same_prefix(rows, row, size);
}

// `row` is the first of the group, whose last vertex is the lowest.
__device__ void merge(const Lists &lists, const int *row, int size, Prefix &prefix) {
  int best = 0;
  i64 shortest = (i64)1 << 62;
  for (int i = 0; i < size - 1; ++i) {
    const i64 count = __ldg(lists.offsets + row[i] + 1) - __ldg(lists.offsets + row[i]);
    if (count < shortest) best = i, shortest = count;
  }
  const i64 end = __ldg(lists.offsets + row[best] + 1);
  prefix.count = 0;
  __syncwarp();  // nobody reads what the group before had in common any more
  for (i64 at = lower_bound(lists.ids, __ldg(lists.offsets + row[best]), end, row[size - 1] + 1);
       at < end && prefix.count <= MERGED; at += WARP) {
    const int u = at + LANE < end ? __ldg(lists.ids + at + LANE) : -1;
    bool on = u >= 0;
    for (int j = 0; j < size - 1; ++j) on = on && (j == best || place_of(lists, row[j], u) >= 0);
    const u32 all = __ballot_sync(FULL, on);
    const int place = prefix.count + __popc(all & ((1u << LANE) - 1));
    if (on && place < MERGED) prefix.ids[place] = u;
    prefix.count += __popc(all);
  }
  __syncwarp();
}

__device__ __forceinline__ int first_at_least(const int *ids, int begin, int end, int least) {
  while (begin < end) {
    const int middle = (begin + end) >> 1;
    if (ids[middle] < least) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

// As all_of, for a row whose prefix is merged: the shorter of that and the last vertex's list is scanned.
template <typename Take>
__device__ void all_of_merged(const Lists &lists, const Prefix &prefix, int last, Take take) {
  const i64 end = __ldg(lists.offsets + last + 1);
  const i64 begin = lower_bound(lists.ids, __ldg(lists.offsets + last), end, last + 1);
  const int from = first_at_least(prefix.ids, 0, prefix.count, last + 1);
  if (end - begin < prefix.count - from) {
    for (i64 at = begin; at < end; at += WARP) {
      const int u = at + LANE < end ? __ldg(lists.ids + at + LANE) : -1;
      const int place = u < 0 ? prefix.count : first_at_least(prefix.ids, from, prefix.count, u);
      take(u, place < prefix.count && prefix.ids[place] == u);
    }
  } else {
    for (int at = from; at < prefix.count; at += WARP) {
      const int u = at + LANE < prefix.count ? prefix.ids[at + LANE] : -1;
      const i64 place = u < 0 ? end : lower_bound(lists.ids, begin, end, u);
      take(u, place < end && __ldg(lists.ids + place) == u);
    }
  }
}

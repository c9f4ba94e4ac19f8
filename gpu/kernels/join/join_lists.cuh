// What a step of the join reads of a row: its bindings, its lists, and the checks that the elements of these must pass.
//
// What a step does stands in its descriptor, an array of 64-bit cells (gpu/code/layout.py says which; descriptor.cuh has them
// as enumerations); a table is [columns][stride] of ID.

#include "checks.cuh"

#include "descriptor.cuh"

const int CACHED_CELLS = 384;

// The bound slots of a row, and the value that is tested for the next.
struct Bindings {
  const i64 *step;
  const ID *table;
  i64 stride, row, value;

  __device__ __forceinline__ i64 at(i64 place, i64 slot) const {
    if (place >= 0) return (i64)table[place * stride + row];  // which may stand in shared memory
    if (place == VALUE) return value;
    return place == ROW ? row : ((const i64 *)step[CONSTANTS])[slot];
  }
  __device__ __forceinline__ i64 operator()(i64 slot) const { return at(step[step[LAYOUT_AT] + slot], slot); }
};

__device__ __forceinline__ const i64 *list_of(const i64 *step, i64 number) {
  return step + step[LISTS_AT] + number * LIST_CELLS;
}

// Element `at` of a step's list.
__device__ __forceinline__ i64 element(const i64 *step, i64 number, i64 at) {
  if (step[KIND] == EDGES) return ((const Partition *)step[PARTITIONS])[step[EDGE_PARTITION]].codes[at] ^ step[FLIP];
  const i64 *list = list_of(step, number);
  return list[LIST_KIND] == RANGE ? at : (i64)__ldg((const ID *)list[ELEMENTS] + at);
}

__device__ __forceinline__ Span span_of(const i64 *step, const i64 *list, const Bindings &values) {
  if (list[LIST_KIND] == NEIGHBOURS) return neighbours_of(((const Partition *)step[PARTITIONS])[list[PARTITION]], values(list[SLOT]));
  if (list[LIST_KIND] == SHARE) {
    const i64 *offsets = (const i64 *)list[OFFSETS] + values(list[SLOT]);
    return {offsets[0], offsets[1]};
  }
  return {0, list[LENGTH]};
}

// The part of a list that the restrictions, and the view's range of values, leave to a row.
__device__ __forceinline__ Span narrowed(const i64 *step, const i64 *list, Span span, const Bindings &values) {
  const ID *elements = (const ID *)list[ELEMENTS];
  i64 least = step[LOW];
  for (i64 i = 0; i < step[ABOVES]; ++i) {
    i64 lower = values.at(step[step[ABOVES_AT] + i], 0) + 1;
    least = lower > least ? lower : least;
  }
  if (least > 0) span.begin = list[LIST_KIND] == RANGE ? least : find(elements, span.begin, span.end, least);
  if (step[HIGH] >= 0) {
    if (list[LIST_KIND] != RANGE)
      span.end = find(elements, span.begin, span.end, step[HIGH]);
    else if (step[HIGH] < span.end)
      span.end = step[HIGH];
  }
  return span;
}

// The descriptor, in shared memory where it fits.
__device__ __forceinline__ const i64 *fetch(const i64 *step, i64 cells, i64 *cached) {
  if (cells > CACHED_CELLS) return step;
  for (int i = threadIdx.x; i < cells; i += blockDim.x) cached[i] = step[i];
  __syncthreads();
  return cached;
}

// Whether a short sorted list holds a value: no branch but the loop's, and no 64-bit arithmetic in it.
__device__ __forceinline__ bool among(const ID *__restrict__ list, u32 length, ID value) {
  if (length == 0) return false;
  while (length > 1) {
    u32 half = length >> 1;
    if (__ldg(list + half - 1) < value) list += half;
    length -= half;
  }
  return __ldg(list) == value;
}

// What every value is asked first, since it is one read: whether it is a candidate, and other than the values that it
// must differ from.
struct Cheap {
  const unsigned char *bits;
  const i64 *columns;
  i64 differs;

  __device__ Cheap(const i64 *step)
      : bits((const unsigned char *)step[BITS]), columns(step + step[DIFFERS_AT]), differs(step[DIFFERS]) {}

  __device__ __forceinline__ bool passes(const ID *table, i64 stride, i64 row, ID value) const {
    if (bits && !bit(bits, value)) return false;
    for (i64 i = 0; i < differs; ++i)
      if (table[columns[i] * stride + row] == value) return false;
    return true;
  }
};

// Whether an element of its row's shortest list is in all others, and passes the checks.  Those that are one read come
// before the lists, which are searched, and those that search a partition after them.
__device__ __forceinline__ bool keeps(const i64 *step, const Bindings &values, i64 rows, i64 chosen,
                                      const i64 *__restrict__ begins, const u32 *__restrict__ lengths) {
  Graph graph = {(const Partition *)step[PARTITIONS], (const i64 *)step[UNCERTAIN], step[RESOURCES], step[TYPE_LABEL]};
  const i64 *check = step + step[CHECKS_AT], *last = check + step[CHECKS] * CHECK_COLUMNS;
  for (; check < last && check[0] <= SIGNATURE; check += CHECK_COLUMNS)
    if (!passes(check, graph, values)) return false;
  for (i64 i = 0; i < step[LISTS]; ++i) {
    if (i == chosen) continue;
    const i64 *list = list_of(step, i);
    const ID *elements = (const ID *)list[ELEMENTS] + __ldg(begins + i * rows + values.row);
    if (!among(elements, __ldg(lengths + i * rows + values.row), (ID)values.value)) return false;
  }
  for (; check < last; check += CHECK_COLUMNS)
    if (!passes(check, graph, values)) return false;
  return true;
}

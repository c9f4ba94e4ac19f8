// The lists of standing patterns on a device, as graphdb/incremental/lists.py has them on the host: a list is a segment of
// one pool, sorted, with free space behind it, and every entry's code says in which versions of the graph it is.
//
// Vertices, entries and places are 32 bits wide.  delta_layout.cuh has the constants of graphdb/incremental/frame.py.

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;

#ifndef WARP
#define WARP 32
#define FULL 0xffffffffu
#endif
#define LANE ((int)(threadIdx.x % WARP))

// A list: where it begins and what it has room for, in units of entries and in entries; how many it has, and how many of
// them are in the old version, in the new one, and in both; the first word of its bitmap, or 0; and one more than which of
// the batch's changed lists it is, or 0.
struct Row {
  int begin, size, room, before, after, both, marks, group;
};

// An entry that a batch changes.
struct Change {
  int relation, near, far, key, versions;
};

// An edge that a batch inserts, or deletes.
struct Update {
  int label, source, target, inserted;
};

// Rows of vertices that are out of their relation's range are at late_base + their place in a hash table of (vertex,
// relation), of which there are late_mask + 1.
struct Lists {
  u64 *late;
  i64 late_base, late_mask;
  Row *rows;
  int *neighbours, *codes;
  const i64 *ranges;
  u64 *table;  // candidates: [patterns, stride], a bit for each pattern vertex
  i64 stride, vertices;
  const i64 *counter_starts, *counters, *pattern_vertices, *needs;
  // Bits of the relations that a vertex may be the near end of, and the far end of, [vertices, 2, words]; and of those that
  // take an edge label forwards, or backwards, [labels, words].
  const u64 *ends, *forwards, *backwards;
  i64 words;
  u64 *marks;  // bitmaps of long lists, over the far ends that their relation has in range
  i64 *parallel;  // by relation, how many entries more than pairs of vertices it has, in both versions together
};
#include "delta_layout.cuh"

const u64 NO_KEY = ~0ull;

__device__ __forceinline__ u64 late_key(int relation, int vertex) { return (u64)vertex << RELATION_BITS | (u64)relation; }

__device__ __forceinline__ i64 first_place(const Lists &lists, u64 key) {
  return (i64)(key * 0x2545F4914F6CDD1Dull >> 32) & lists.late_mask;
}

// A list's row among those that vertices in range have, or -1.
__device__ __forceinline__ i64 range_row(const Lists &lists, int relation, int vertex) {
  const i64 *range = lists.ranges + relation * RANGE_CELLS;
  const i64 offset = vertex - __ldg(range);
  return offset >= 0 && offset < __ldg(range + 1) ? __ldg(range + 2) + offset : -1;
}

// A list's row; row 0, which is empty, where it has none.
__device__ __forceinline__ i64 row_of(const Lists &lists, int relation, int vertex) {
  const i64 row = range_row(lists, relation, vertex);
  if (row >= 0) return row;
  const u64 key = late_key(relation, vertex);
  for (i64 place = first_place(lists, key);; place = (place + 1) & lists.late_mask) {
    const u64 found = lists.late[place];
    if (found == key) return lists.late_base + place;
    if (found == NO_KEY) return 0;
  }
}

// Say in a list's bitmap, if it has one, whether the list has a far end.
__device__ __forceinline__ void mark(const Lists &lists, int relation, int word, int far, bool there) {
  const i64 *range = lists.ranges + relation * RANGE_CELLS;
  const i64 offset = far - __ldg(range + 3);
  if (!word || offset < 0 || offset >= __ldg(range + 4)) return;
  if (there)
    atomicOr(lists.marks + word + (offset >> 6), 1ull << (offset & 63));
  else
    atomicAnd(lists.marks + word + (offset >> 6), ~(1ull << (offset & 63)));
}

// The first place of [begin, end) of a sorted list that is not below a value.
__device__ __forceinline__ int lower(const int *list, int begin, int end, int value) {
#pragma unroll 1
  while (begin < end) {
    const int middle = begin + (end - begin) / 2;
    if (list[middle] < value)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

// Sorted lists on the device: where a vertex's neighbours are (PCSR, SGSI §4), and searching in them.
//
// ID is the vertex id type, int or long long.  Offsets and addresses are 64 bits wide.

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;

#ifndef ID
#define ID int
#endif

// A row of a plan's table of partitions.
struct Partition {
  // How many vertices, the first ones, have offsets; or -1: hashed groups, -2: spans of the first vertices, as many as
  // groups says, -3: their offsets of 32 bits, -4: the same of a range of vertices, which groups tells, and behind them
  // how far the lists of each TOGETHER vertices are from there; -5: the same vertices, of TOGETHER in a block
  // (elements.cuh), whose lists' elements have so many bits as code_offsets says, each less than the vertex by codes
  i64 direct;
  const i64 *offsets;
  i64 groups;
  const ID *neighbours;
  const i64 *code_offsets;
  const i64 *codes;
};
#include "partition_layout.cuh"

const int TOGETHER = 16;

struct Span {
  i64 begin, end;
};

// The first place in the sorted [begin, end) whose element is not below value.
template <typename T>
__device__ __forceinline__ i64 find(const T *__restrict__ list, i64 begin, i64 end, i64 value) {
  while (begin < end) {
    i64 middle = (begin + end) >> 1;
    if ((i64)__ldg(list + middle) < value)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

template <typename T>
__device__ __forceinline__ bool holds(const T *__restrict__ list, i64 begin, i64 end, i64 value) {
  i64 at = find(list, begin, end, value);
  return at < end && (i64)__ldg(list + at) == value;
}

// Where the neighbours of a vertex stand: one read of a pair of offsets, or of one group of 128 bytes.
__device__ __forceinline__ Span neighbours_of(const Partition &partition, i64 vertex) {
  if (vertex < partition.direct) return {__ldg(partition.offsets + vertex), __ldg(partition.offsets + vertex + 1)};
  if (partition.direct >= 0) return {0, 0};
  if (partition.direct == -2) {
    if (vertex >= partition.groups) return {0, 0};
    return {__ldg(partition.offsets + 2 * vertex), __ldg(partition.offsets + 2 * vertex + 1)};
  }
  if (partition.direct == -3) {
    if (vertex >= partition.groups) return {0, 0};
    const u32 *offsets = (const u32 *)partition.offsets + vertex;
    return {__ldg(offsets), __ldg(offsets + 1)};
  }
  if (partition.direct == -4) {
    const u64 at = (u64)(vertex - (partition.groups & 0xffffffffll)), count = (u64)partition.groups >> 32;
    if (at >= count) return {0, 0};
    const u32 *offsets = (const u32 *)partition.offsets;
    const i64 away = __ldg((const i64 *)(offsets + (count + 2) / 2 * 2) + at / TOGETHER);
    return {(i64)__ldg(offsets + at) + away, (i64)__ldg(offsets + at + 1) + away};
  }
  if (partition.groups == 0) return {0, 0};
  i64 group = (i64)((((u64)vertex * 0x9E3779B97F4A7C15ull) >> 20) % (u64)partition.groups);
  while (group >= 0) {
    const i64 *pairs = partition.offsets + group * 16;
    for (int i = 0; i < 14; i += 2) {
      i64 key = __ldg(pairs + i);
      if (key == vertex) return {__ldg(pairs + i + 1), __ldg(pairs + i + 3)};
      if (key < 0) break;
    }
    group = __ldg(pairs + 14);
  }
  return {0, 0};
}

// The place of other among the neighbours of vertex, or -1; of lists that are not divided, whose places may be negative.
__device__ __forceinline__ i64 neighbour_at(const Partition &partition, i64 vertex, i64 other) {
  Span span = neighbours_of(partition, vertex);
  i64 at = find(partition.neighbours, span.begin, span.end, other);
  return at < span.end && (i64)__ldg(partition.neighbours + at) == other ? at : -1;
}

__device__ __forceinline__ bool bit(const unsigned char *bits, i64 value) {
  return __ldg(bits + (value >> 3)) >> (value & 7) & 1;
}

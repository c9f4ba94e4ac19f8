// Lists as a search, and checks, read them: where one begins, and its elements.
//
// Where not all lists fit the device, BIT_PACKED says that some may stand there, and in host memory, in as many bits an
// element as the lists of a partition need (gpu/data/bit_packed.py).

#include "sets.cuh"

#ifdef BIT_PACKED
const u32 WHOLE = 8 * sizeof(ID);

// The word with the first bit; how many bits an element has, WHOLE for vertex ids as they are, and above 8 bits where in
// that word the first one begins; what was taken away from each element.
struct Begin {
  const u32 *words = nullptr;
  u32 how = WHOLE;
  ID least = 0;

  __device__ __forceinline__ u32 bits() const { return how & 255; }
  __device__ __forceinline__ u32 most() const { return ~0u >> (32 - bits()); }
  __device__ __forceinline__ bool wide() const { return sizeof(ID) > 4 && bits() > 32; }

  // An element of at most 32 bits, less the least: no list has so many that its bits were not told by 32.
  __device__ __forceinline__ u32 stored(u32 i) const {
    const u32 bit = (how >> 8) + i * bits(), shift = bit & 31, *word = words + (bit >> 5);
    u64 found = __ldg(word);
    if (shift + bits() > 32) found |= (u64)__ldg(word + 1) << 32;
    return (u32)(found >> shift) & most();
  }
};

// From a bit on that an address tells.
__device__ __forceinline__ Begin packed_at(u64 bit, u32 bits, ID least) {
  return {(const u32 *)(bit >> 5 << 2), bits | (u32)(bit & 31) << 8, least};
}

__device__ __forceinline__ Begin begin_of(const ID *ids) { return {(const u32 *)ids, WHOLE, 0}; }

__device__ __forceinline__ Begin behind(const Begin &list, u64 count) {
  return packed_at(8 * (u64)list.words + (list.how >> 8) + count * list.bits(), list.bits(), list.least);
}

__device__ __forceinline__ ID element(const Begin &list, i64 i) {
  if (list.wide()) return __ldg((const ID *)list.words + i);
  return list.least + (ID)list.stored((u32)i);
}

__device__ __forceinline__ i64 find(const Begin &list, i64 begin, i64 end, i64 value) {
  if (list.wide()) return find((const ID *)list.words, begin, end, value);
  const i64 away = value - (i64)list.least;
  if (away <= 0) return begin;
  if (away > (i64)list.most()) return end;
  u32 low = (u32)begin, high = (u32)end;
  while (low < high) {
    const u32 middle = (low + high) >> 1;
    if (list.stored(middle) < (u32)away)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

__device__ __forceinline__ bool holds(const Begin &list, i64 begin, i64 end, i64 value) {
  const i64 at = find(list, begin, end, value);
  return at < end && (i64)element(list, at) == value;
}
#else
typedef const ID *Begin;

__device__ __forceinline__ Begin begin_of(const ID *ids) { return ids; }

__device__ __forceinline__ Begin behind(Begin list, u64 count) { return list + count; }

__device__ __forceinline__ ID element(Begin list, i64 i) { return __ldg(list + i); }
#endif

struct Elements {
  Begin ids = {};
  u32 count = 0;
};

// Of TOGETHER vertices, whose lists in few bits stand one behind the other: 64 bits that tell the first bit of these, and
// how many elements there are up to the end of each list, in 16 bits; or, where the first one is set of the 64, in 32 bits
// elsewhere, where the next 64 tell.
const int BLOCK_WORDS = 2 + TOGETHER / 2;

// The neighbours of a vertex.
__device__ __forceinline__ Elements list_in(const Partition &partition, i64 vertex) {
#ifdef BIT_PACKED
  if (partition.direct == -5) {
    const u64 at = (u64)(vertex - (partition.groups & 0xffffffffll)), count = (u64)partition.groups >> 32;
    if (at >= count) return {};
    const u32 *block = (const u32 *)partition.offsets + at / TOGETHER * BLOCK_WORDS, own = at % TOGETHER;
    const u64 first = __ldg((const u64 *)block);
    u32 begin, end;
    if (first >> 63) {
      const u32 *ends = (const u32 *)__ldg((const u64 *)(block + 2));
      begin = own ? __ldg(ends + own - 1) : 0, end = __ldg(ends + own);
    } else {
      const unsigned short *ends = (const unsigned short *)(block + 2);
      begin = own ? __ldg(ends + own - 1) : 0, end = __ldg(ends + own);
    }
    const u32 bits = (u32)(u64)partition.code_offsets;
    return {packed_at((first & ~0ull >> 1) + (u64)begin * bits, bits, (ID)(i64)partition.codes), end - begin};
  }
#endif
  const Span span = neighbours_of(partition, vertex);
  return {begin_of(partition.neighbours + span.begin), (u32)(span.end - span.begin)};
}

// Whether other is among the neighbours of vertex.
__device__ __forceinline__ bool joined(const Partition &partition, i64 vertex, i64 other) {
  const Elements list = list_in(partition, vertex);
  return holds(list.ids, 0, list.count, other);
}

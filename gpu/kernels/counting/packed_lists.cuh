// The lists of an oriented graph in few bits (gpu/data/packed.py): those from one rank on stand on the device, the others
// in memory of the host.

// A list: the bit of neighbour i stands at i plus its high part; its low bits at i times so many.
struct Packed {
  const u32 *high, *low;
  int count, words, bits, base;

  __device__ __forceinline__ int low_of(int i) const {
    const u32 at = (u32)i * bits, *own = low + (at >> 5);
    return (int)((u32)(((u64)__ldg(own + 1) << 32 | __ldg(own)) >> (at & 31)) & ((1u << bits) - 1));
  }

  __device__ __forceinline__ int neighbour(int high_part, int i) const { return base + (high_part << bits | low_of(i)); }

  // `size` lanes of a warp, all of whose lanes call this, go through a list: each(word, k, i) for each word k that has
  // bits set, of which the first is neighbour i's.
  template <int size, typename Each>
  __device__ __forceinline__ void each_word(Each each) const {
    const int lane = LANE % size;
    int before = 0;
    for (int first = 0; __any_sync(FULL, first < words); first += size) {
      const int k = first + lane;
      const u32 word = k < words ? __ldg(high + k) : 0;
      const int own = __popc(word);
      int until = own;
#pragma unroll
      for (int step = 1; step < size; step <<= 1) {
        const int other = __shfl_up_sync(FULL, until, step, size);
        if (lane >= step) until += other;
      }
      const int i = before + until - own;
      before += __shfl_sync(FULL, until, size - 1, size);
      if (word) each(word, k, i);
    }
  }

  // The same: take(w) for each neighbour.  A lane's are consecutive, so it reads each word of their low bits once.
  template <int size, typename Take>
  __device__ __forceinline__ void each(Take take) const {
    each_word<size>([&](u32 word, int k, int i) {
      const u32 at = (u32)i * bits, mask = (1u << bits) - 1;
      const u32 *next = low + (at >> 5);
      u64 read = (u64)__ldg(next) >> (at & 31);
      int have = WARP - (int)(at & 31);
      for (int part = k * WARP - 1 - i; word; word &= word - 1, --part) {
        if (have < bits) read |= (u64)__ldg(++next) << have, have += WARP;
        take(base + ((part + __ffs(word)) << bits | (int)((u32)read & mask)));
        read >>= bits, have -= bits;
      }
    });
  }

  // Write the neighbours to where a team has room for them.
  template <typename Team>
  __device__ __forceinline__ void unpack(int *ids) const {
    if (Team::warp() == 0)
      each_word<WARP>([&](u32 word, int k, int i) {
        for (; word; word &= word - 1, ++i) ids[i] = k * WARP + __ffs(word) - 1 - i;
      });
    Team::sync();
    for (int i = Team::rank(); i < count; i += Team::size()) ids[i] = neighbour(ids[i], i);
    Team::sync();
  }

  // Whether a rank behind the list's own is in it.
  __device__ __forceinline__ bool has(int rank) const {
    const int wanted = rank - base, part = wanted >> bits;
    int k = 0, passed = 0;  // bits that are not set, of which `part` stand before the high part's neighbours
    u32 gaps = 0;
    for (; part; ++k) {
      if (k == words) return false;
      gaps = ~__ldg(high + k);
      if (passed + __popc(gaps) >= part) break;
      passed += __popc(gaps);
    }
    int at = 0;
    if (part) {
      for (; passed + 1 < part; ++passed) gaps &= gaps - 1;
      at = k * 32 + __ffs(gaps);
    }
    for (; at >> 5 < words && __ldg(high + (at >> 5)) >> (at & 31) & 1; ++at) {
      const int own = part << bits | low_of(at - part);
      if (own >= wanted) return own == wanted;
    }
    return false;
  }
};

// All lists: those from rank `first` on have words of their own, by places among those of all.
struct Graph {
  const u32 *near_begins, *near_words, *far_begins, *far_words;
  i64 first;

  __device__ __forceinline__ Packed list(i64 rank) const {
    const u32 *begins = (rank < first ? far_begins : near_begins) + rank;
    const u32 begin = __ldg(begins), end = __ldg(begins + 1);
    const u32 *words = (rank < first ? far_words : near_words) + begin;
    if (begin == end) return {words, words, 0, 0, 0, 0};
    const u32 header = __ldg(words);
    const int count = header & 0xffff, bits = header >> 16, all = (int)(end - begin);
    const int high = all - 1 - (count * bits + 31) / 32;
    return {words + 1, words + 1 + high, count, high, bits, (int)rank + 1};
  }
};

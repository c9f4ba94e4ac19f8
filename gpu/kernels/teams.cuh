// Teams of threads that go through lists together: a warp, or a block; and the ranked lists that counting reads.
//
// Vertices are *ranks*: the one with most neighbours is 0.  A program written for teams runs on either.

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;

#ifndef WARP
#define WARP 32
#define FULL 0xffffffffu
#endif

#define LANE ((int)(threadIdx.x % WARP))

// A relation by rank: the neighbours of x are ids[begin[x] ... begin[x + 1]), the smaller ones end at less[x], the
// greater ones begin at more[x].
struct Ranked {
  const u32 *begin, *less, *more;
  const int *ids;
};
#include "ranked_layout.cuh"

struct List {
  const int *ids;
  u32 count;
};

template <int ORDER>
__device__ __forceinline__ List list(const Ranked &relation, int x) {
  u32 first = __ldg((ORDER > 0 ? relation.more : relation.begin) + x);
  u32 last = ORDER < 0 ? __ldg(relation.less + x) : __ldg(relation.begin + x + 1);
  return {relation.ids + first, last - first};
}

template <typename T>
__device__ __forceinline__ T warp_sum(T value) {
  for (int step = WARP / 2; step; step >>= 1) value += __shfl_xor_sync(FULL, value, step);
  return value;
}

template <>
__device__ __forceinline__ u32 warp_sum<u32>(u32 value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(FULL, value);
#else
  for (int step = WARP / 2; step; step >>= 1) value += __shfl_xor_sync(FULL, value, step);
  return value;
#endif
}

struct Warp {
  static __device__ __forceinline__ int rank() { return LANE; }
  static __device__ __forceinline__ int size() { return WARP; }
  static __device__ __forceinline__ int warp() { return 0; }
  static __device__ __forceinline__ int warps() { return 1; }
  static __device__ __forceinline__ void sync() { __syncwarp(); }
  template <typename T>
  static __device__ __forceinline__ T sum(T value) {
    return warp_sum(value);
  }
};

struct Block {
  static __device__ __forceinline__ int rank() { return threadIdx.x; }
  static __device__ __forceinline__ int size() { return blockDim.x; }
  static __device__ __forceinline__ int warp() { return threadIdx.x / WARP; }
  static __device__ __forceinline__ int warps() { return blockDim.x / WARP; }
  static __device__ __forceinline__ void sync() { __syncthreads(); }
  template <typename T>
  static __device__ __forceinline__ T sum(T value) {
    __shared__ T parts[32];
    value = warp_sum(value);
    __syncthreads();
    if (LANE == 0) parts[warp()] = value;
    __syncthreads();
    T total = 0;
    for (int i = 0; i < warps(); ++i) total += parts[i];
    return total;
  }
};

// Entries that a warp of the team takes of a list at a time: few, where there are not enough for all warps.
template <typename Team>
__device__ __forceinline__ u32 share(u32 count) {
  u32 fair = (count + Team::warps() - 1) / Team::warps();
  return fair < 1 ? 1 : fair > WARP ? WARP : fair;
}

// Takes the next task for a team.  One thread of all asks the host's flag now and then (it lies in host memory, and many
// who ask wait for each other); when it is set, there are no more tasks for anybody.
template <typename Team>
struct TaskCounter {
  u64 *next;
  const volatile int *stop;
  i64 last = clock64();

  __device__ __forceinline__ u64 draw() {
    if (blockIdx.x == 0 && threadIdx.x == 0 && clock64() - last > 1 << 19) {
      last = clock64();
      if (*stop) atomicMax(next, 1ull << 62);
    }
    return atomicAdd(next, 1ull);
  }

  __device__ __forceinline__ u64 take() {
    if (Team::size() == WARP) {
      u64 task = 0;
      if (LANE == 0) task = draw();
      return __shfl_sync(FULL, task, 0);
    }
    __shared__ u64 taken;
    __syncthreads();
    if (threadIdx.x == 0) taken = draw();
    __syncthreads();
    return taken;
  }
};

__device__ __forceinline__ bool bit(const u32 *bits, int x) { return bits[x >> 5] >> (x & 31) & 1; }
__device__ __forceinline__ void set_bit(u32 *bits, int x) { atomicOr(bits + (x >> 5), 1u << (x & 31)); }

template <typename Team, typename T>
__device__ __forceinline__ void wipe(T *values, u32 count) {
  for (u32 i = Team::rank(); i < count; i += Team::size()) values[i] = 0;
}

// Numbers of 16 bits, two to a word.
struct Halves {
  u32 *words;
  __device__ __forceinline__ u32 operator[](int x) const { return words[x >> 1] >> (x & 1) * 16 & 0xffff; }
};

template <typename Team>
__device__ __forceinline__ void wipe(const Halves &halves, u32 count) {
  wipe<Team>(halves.words, (count + 1) / 2);
}

// Add to a vertex's number, and take it away; what was there before.
template <typename T>
__device__ __forceinline__ T add_to(T *numbers, int x, T value) {
  return atomicAdd(numbers + x, value);
}
__device__ __forceinline__ u32 add_to(const Halves &halves, int x, u32 value) {
  const int shift = (x & 1) * 16;
  return atomicAdd(halves.words + (x >> 1), value << shift) >> shift & 0xffff;
}
template <typename T>
__device__ __forceinline__ T take_from(T *numbers, int x) {
  return atomicExch(numbers + x, (T)0);
}
__device__ __forceinline__ u32 take_from(const Halves &halves, int x) {
  const int shift = (x & 1) * 16;
  return atomicAnd(halves.words + (x >> 1), 0xffff0000u >> shift) >> shift & 0xffff;
}

template <typename T>
__device__ __forceinline__ T raised(T value, int power) {
  T result = value;
  for (int i = 1; i < power; ++i) result *= value;
  return result;
}

// Every lane has a list; the warp goes through one after the other.  Returns the lane's own sum of look(x).
template <typename Sum, typename Look>
__device__ __forceinline__ Sum sum_lists(const int *ids, u32 count, bool on, Look look) {
  Sum own = 0;
  for (u32 left = __ballot_sync(FULL, on && count > 0); left; left &= left - 1) {
    int owner = __ffs(left) - 1;
    const int *list = (const int *)__shfl_sync(FULL, (u64)ids, owner);
    u32 n = __shfl_sync(FULL, count, owner);
    Sum sum = 0;
    u32 k = LANE;
    for (; k + 3 * WARP < n; k += 4 * WARP) {  // four reads on their way at a time
      const int a = __ldg(list + k), b = __ldg(list + k + WARP), c = __ldg(list + k + 2 * WARP);
      const int d = __ldg(list + k + 3 * WARP);
      sum += look(a) + look(b) + look(c) + look(d);
    }
    for (; k < n; k += WARP) sum += look(__ldg(list + k));
    sum = warp_sum(sum);
    if (LANE == owner) own = sum;
  }
  return own;
}

// Where the first entry of a sorted list stands that is not before `wanted`; all entries before `from` are.
__device__ __forceinline__ u32 first_from(const List &list, u32 from, int wanted) {
  u32 low = from;
  for (u32 high = list.count; low < high;) {
    const u32 middle = (low + high) >> 1;
    if (__ldg(list.ids + middle) < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// The entries of a sorted list from rank `low` on, before `end`; many lists end before the first of these.
__device__ __forceinline__ List within(const List &list, int low, int end) {
  if (!list.count || __ldg(list.ids + list.count - 1) < low) return {list.ids, 0};
  const u32 first = low ? first_from(list, 0, low) : 0;
  return {list.ids + first, first_from(list, first, end) - first};
}

// Every lane has a list and a value; the warp goes through one after the other: take(y, value) for each entry.
template <typename Value, typename Take>
__device__ __forceinline__ void each_of_lists(const int *ids, u32 count, Value value, Take take) {
  for (u32 left = __ballot_sync(FULL, value != 0 && count > 0); left; left &= left - 1) {
    int owner = __ffs(left) - 1;
    const int *list = (const int *)__shfl_sync(FULL, (u64)ids, owner);
    u32 n = __shfl_sync(FULL, count, owner);
    Value sent = __shfl_sync(FULL, value, owner);
    u32 k = LANE;
    for (; k + 3 * WARP < n; k += 4 * WARP) {
      const int a = __ldg(list + k), b = __ldg(list + k + WARP), c = __ldg(list + k + 2 * WARP);
      const int d = __ldg(list + k + 3 * WARP);
      take(a, sent), take(b, sent), take(c, sent), take(d, sent);
    }
    for (; k < n; k += WARP) take(__ldg(list + k), sent);
  }
}

// The same of sorted lists, for the entries up to `last`.
template <typename Value, typename Take>
__device__ __forceinline__ void each_of_lists_to(int last, const int *ids, u32 count, Value value, Take take) {
  for (u32 left = __ballot_sync(FULL, value != 0 && count > 0); left; left &= left - 1) {
    int owner = __ffs(left) - 1;
    const int *list = (const int *)__shfl_sync(FULL, (u64)ids, owner);
    u32 n = __shfl_sync(FULL, count, owner);
    Value sent = __shfl_sync(FULL, value, owner);
    for (u32 k = LANE, more = 1; more; k += 2 * WARP) {
      const int a = k < n ? __ldg(list + k) : last + 1, b = k + WARP < n ? __ldg(list + k + WARP) : last + 1;
      if (a <= last) take(a, sent);
      if (b <= last) take(b, sent);
      more = __all_sync(FULL, b <= last);
    }
  }
}

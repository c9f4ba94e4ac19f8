// Merging sorted lists that are cut at checkpoints (GAMMA §6.2, algorithm 3), a warp for each part.
//
// Lists stand one after the other in keys.  cuts [parts + 1][lists] says where each part of each list begins; keys of a
// part of any list are below those of the next part.  Where keys are equal, the earlier list's come first.

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;

#define WARP 32
#define FULL 0xffffffffu
#define LANE ((int)(threadIdx.x % WARP))

const int WARPS = 8;

__device__ __forceinline__ i64 below(const u64 *keys, i64 begin, i64 end, u64 key) {
  while (begin < end) {
    const i64 middle = (begin + end) >> 1;
    if (keys[middle] < key) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

__device__ __forceinline__ i64 not_above(const u64 *keys, i64 begin, i64 end, u64 key) {
  return key == ~0ull ? end : below(keys, begin, end, key + 1);
}

// The matched index of each checkpoint in each list: cuts but for the first and the last row.
extern "C" __global__ void __launch_bounds__(256)
cut(const u64 *keys, const i64 *starts, i64 lists, const u64 *checkpoints, i64 count, i64 *cuts) {
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < count * lists; i += gridDim.x * (i64)blockDim.x) {
    const i64 list = i % lists;
    cuts[i + lists] = below(keys, starts[list], starts[list + 1], checkpoints[i / lists]);
  }
}

// Where a part begins in what is merged.
__device__ __forceinline__ i64 begin_of(const i64 *starts, const i64 *cut, int lists) {
  i64 sum = 0;
  for (int i = 0; i < lists; ++i) sum += cut[i] - starts[i];
  return sum;
}

// Every key of a part is searched in all other lists.
__device__ void search_all(const u64 *keys, const i64 *begin, const i64 *end, int lists, i64 first, u64 *out) {
  for (int j = 0; j < lists; ++j)
    for (i64 p = begin[j] + LANE; p < end[j]; p += WARP) {
      const u64 key = keys[p];
      i64 place = first + p - begin[j];
      for (int k = 0; k < lists; ++k)
        if (k != j)
          place += (k < j ? not_above(keys, begin[k], end[k], key) : below(keys, begin[k], end[k], key)) - begin[k];
      out[place] = key;
    }
}

extern "C" __global__ void __launch_bounds__(256)
merge_all(const u64 *keys, const i64 *starts, i64 lists, const i64 *cuts, i64 parts, u64 *out) {
  const i64 warps = gridDim.x * (i64)WARPS;
  for (i64 part = blockIdx.x * (i64)WARPS + threadIdx.x / WARP; part < parts; part += warps) {
    const i64 *begin = cuts + part * lists, *end = begin + lists;
    search_all(keys, begin, end, (int)lists, begin_of(starts, begin, (int)lists), out);
  }
}

// Every key is searched in the lists before its own; prefix sums over how often each place was found say the same of
// theirs.  Of a part with more than ROOM keys (equal ones: checkpoints do not divide them) all are searched in all.
extern "C" __global__ void __launch_bounds__(256)
merge_half(const u64 *keys, const i64 *starts, i64 lists, const i64 *cuts, i64 parts, u64 *out) {
  extern __shared__ u64 shared_memory[];
  u32 *places = (u32 *)shared_memory + (threadIdx.x / WARP) * (2 * ROOM + 1), *found = places + ROOM;
  const i64 warps = gridDim.x * (i64)WARPS;
  for (i64 part = blockIdx.x * (i64)WARPS + threadIdx.x / WARP; part < parts; part += warps) {
    const i64 *begin = cuts + part * lists, *end = begin + lists;
    const i64 first = begin_of(starts, begin, (int)lists);
    if (begin_of(starts, end, (int)lists) - first > ROOM) {
      search_all(keys, begin, end, (int)lists, first, out);
      continue;
    }
    u32 *own = places;
    for (int j = 0; j < lists; ++j) {
      const int count = (int)(end[j] - begin[j]);
      for (int p = LANE; p < count; p += WARP) own[p] = p;
      __syncwarp();
      u32 *other = places;
      for (int k = 0; k < j; ++k) {
        const int there = (int)(end[k] - begin[k]);
        for (int i = LANE; i <= there; i += WARP) found[i] = 0;
        __syncwarp();
        for (int p = LANE; p < count; p += WARP) {
          const u32 at = (u32)(not_above(keys, begin[k], end[k], keys[begin[j] + p]) - begin[k]);
          own[p] += at;
          atomicAdd(found + at, 1u);
        }
        __syncwarp();
        u32 before = 0;
        for (int i = 0; i < there; i += WARP) {
          u32 sum = i + LANE < there ? found[i + LANE] : 0;
          for (int step = 1; step < WARP; step <<= 1) {
            const u32 left = __shfl_up_sync(FULL, sum, step);
            if (LANE >= step) sum += left;
          }
          if (i + LANE < there) other[i + LANE] += before + sum;
          before += __shfl_sync(FULL, sum, WARP - 1);
        }
        __syncwarp();
        other += there;
      }
      own += count;
    }
    own = places;
    for (int j = 0; j < lists; ++j) {
      const int count = (int)(end[j] - begin[j]);
      for (int p = LANE; p < count; p += WARP) out[first + own[p]] = keys[begin[j] + p];
      own += count;
    }
    __syncwarp();
  }
}

// Keys that differ from the one before, each once for its slot (key / vertices); `last` is the key before the first.
extern "C" __global__ void __launch_bounds__(256)
count_distinct(const u64 *keys, i64 count, u64 last, i64 any, i64 vertices, u64 *images) {
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x - LANE; i < count; i += gridDim.x * (i64)blockDim.x) {
    const i64 at = i + LANE;
    const u64 key = at < count ? keys[at] : 0;
    const bool fresh = at < count && (at ? keys[at - 1] != key : !any || key != last);
    const i64 slot = (i64)(key / (u64)vertices);
    for (u32 left = __ballot_sync(FULL, fresh); left;) {
      const int leader = __ffs(left) - 1;
      const i64 wanted = __shfl_sync(FULL, slot, leader);
      const u32 same = __ballot_sync(FULL, fresh && slot == wanted) & left;
      if (LANE == leader) atomicAdd(images + slot, (u64)__popc(same));
      left &= ~same;
    }
  }
}

// Keys without those that equal the one before; places are 1 more than how many are new up to each.
extern "C" __global__ void __launch_bounds__(256) mark_new(const u64 *keys, i64 count, i64 *marks) {
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (i64)blockDim.x)
    marks[i] = i == 0 || keys[i] != keys[i - 1];
}
extern "C" __global__ void __launch_bounds__(256)
take_new(const u64 *keys, i64 count, const i64 *places, u64 *out) {
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (i64)blockDim.x)
    if (i == 0 || keys[i] != keys[i - 1]) out[places[i]] = keys[i];
}

// The keys of the slots and vertices of rows of vertices.
extern "C" __global__ void __launch_bounds__(256)
image_keys(const int *rows, const int *quick_of_row, i64 count, i64 size, const int *slots, i64 width, i64 vertices,
           u64 *keys) {
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < count * size; i += gridDim.x * (i64)blockDim.x)
    keys[i] = (u64)slots[quick_of_row[i / size] * width + i % size] * (u64)vertices + (u64)rows[i];
}

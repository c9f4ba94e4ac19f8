// Reading neighbour lists, contiguous ones or (GAPS) ones with free slots, which repeat the entry before them with the
// highest bit set.  Entries that are repeated for their codes are not met here.
//
// A task is 32 slots of a vertex's list: int64 [tasks, 2], vertex and first slot.  Each warp adds up what its tasks give.

typedef long long i64;
typedef unsigned long long u64;

#define WARP 32
#define TEAM 8
#define FULL 0xffffffffu
#define FREE (1 << 31)
#define LANE ((int)(threadIdx.x % WARP))

struct Task {
  i64 vertex, begin;
};

struct Span {
  i64 begin, end;
};

// Where lists begin and end, of so many vertices; all others have none.
struct Lists {
  const i64 *table;
  i64 rows;
  const int *neighbours;

  __device__ __forceinline__ Span operator[](i64 vertex) const {
    if (vertex >= rows) return {0, 0};
    return {table[2 * vertex], table[2 * vertex + 1]};
  }
  __device__ __forceinline__ bool is_entry(int value) const { return !GAPS || value >= 0; }
};

template <typename Visit>
__device__ __forceinline__ void each_task(const Task *tasks, i64 count, u64 *sum, const Visit &visit) {
  const i64 warps = gridDim.x * (i64)blockDim.x / WARP;
  u64 own = 0;
  for (i64 t = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / WARP; t < count; t += warps) own += visit(tasks[t]);
  for (int by = WARP / 2; by; by /= 2) own += __shfl_down_sync(FULL, own, by);
  if (LANE == 0) atomicAdd(sum, own);
}

// Every neighbour among a task's slots, each by a team of lanes.
template <typename Visit>
__device__ __forceinline__ u64 each_neighbour(const Lists &lists, const Task &task, const Visit &visit) {
  const Span own = lists[task.vertex];
  u64 found = 0;
  for (i64 slot = task.begin + LANE / TEAM; slot < min(own.end, task.begin + WARP); slot += WARP / TEAM)
    if (const int value = lists.neighbours[slot]; lists.is_entry(value)) found += visit(value);
  return found;
}

// The sum of all entries.
extern "C" __global__ void scan(const Task *tasks, i64 count, const i64 *table, i64 rows, const int *neighbours, u64 *sum) {
  const Lists lists = {table, rows, neighbours};
  each_task(tasks, count, sum, [&](const Task &task) -> u64 {
    const i64 slot = task.begin + LANE;
    const Span own = lists[task.vertex];
    return slot < own.end && lists.is_entry(neighbours[slot]) ? neighbours[slot] : 0;
  });
}

// Paths of two edges whose ends differ.
extern "C" __global__ void two_hops(const Task *tasks, i64 count, const i64 *table, i64 rows, const int *neighbours,
                                    u64 *sum) {
  const Lists lists = {table, rows, neighbours};
  each_task(tasks, count, sum, [&](const Task &task) {
    return each_neighbour(lists, task, [&](i64 middle) {
      const Span next = lists[middle];
      u64 found = 0;
      for (i64 slot = next.begin + LANE % TEAM; slot < next.end; slot += TEAM)
        found += lists.is_entry(neighbours[slot]) && neighbours[slot] != task.vertex;
      return found;
    });
  });
}

// Common neighbours of the two ends of each edge: entries of the shorter list are searched for in the longer one.
extern "C" __global__ void triangles(const Task *tasks, i64 count, const i64 *table, i64 rows, const int *neighbours,
                                     u64 *sum) {
  const Lists lists = {table, rows, neighbours};
  each_task(tasks, count, sum, [&](const Task &task) {
    return each_neighbour(lists, task, [&](i64 middle) {
      Span small = lists[task.vertex], large = lists[middle];
      if (small.end - small.begin > large.end - large.begin) {
        const Span other = small;
        small = large, large = other;
      }
      u64 found = 0;
      for (i64 slot = small.begin + LANE % TEAM; slot < small.end; slot += TEAM) {
        const int value = neighbours[slot];
        if (!lists.is_entry(value)) continue;
        i64 low = large.begin;
        for (i64 high = large.end; low < high;) {
          const i64 middle = (low + high) >> 1;
          if ((neighbours[middle] & ~(GAPS ? FREE : 0)) < value) low = middle + 1;
          else high = middle;
        }
        found += low < large.end && (neighbours[low] & ~(GAPS ? FREE : 0)) == value;
      }
      return found;
    });
  });
}

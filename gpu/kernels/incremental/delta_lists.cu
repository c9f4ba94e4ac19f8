// Lists take batches of changes in place: GAMMA (Qiu et al., ICDE 2024) §V-C keeps free space in segments of one array;
// here each list is a segment.  A batch's changes, sorted by list, are merged into theirs by a warp for each list that it
// changes; one that outgrows its segment moves to one of at least twice the size.
//
// What a batch deletes stays until the batch ends, marked as gone from the new version.  `changes` are in no order, each
// entry once, and what is inserted is not there; `order` sorts them by `keys`, list and far end.

#include "delta.cuh"

const int RANKERS = 8;

// Visit the entries that an edge has in all relations that take it: relation, near end, far end and key.
template <typename Visit>
__device__ __forceinline__ void each_entry(const Lists &lists, const Update &update, const Visit &visit) {
  const u64 *source = lists.ends + update.source * lists.words * 2, *target = lists.ends + update.target * lists.words * 2;
  for (i64 w = 0; w < lists.words; ++w) {
    const u64 ways = lists.forwards[update.label * lists.words + w];
    for (u64 bits = ways & source[w] & target[lists.words + w]; bits; bits &= bits - 1)
      visit((int)w * 64 + __ffsll((i64)bits) - 1, update.source, update.target, 2 * update.label);
    u64 back = lists.backwards[update.label * lists.words + w] & target[w] & source[lists.words + w];
    if (update.source == update.target) back &= ~ways;  // a loop is one edge, also where the direction does not matter
    for (; back; back &= back - 1)
      visit((int)w * 64 + __ffsll((i64)back) - 1, update.target, update.source, 2 * update.label + 1);
  }
}

// How many entries each update has; in the upper half of the number, those of vertices out of range.
extern "C" __global__ void count_entries(const Lists *given, const Update *updates, i64 count, i64 *numbers) {
  const Lists &lists = *given;
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= count) return;
  i64 number = 0;
  each_entry(lists, updates[i], [&](int relation, int near, int far, int key) {
    number += 1 + ((i64)(range_row(lists, relation, near) < 0) << 32);
  });
  numbers[i] = number;
}

// The entries of updates, in order.
extern "C" __global__ void expand(const Lists *given, const Update *updates, i64 count, const i64 *numbers,
                                  Change *changes) {
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= count) return;
  const Update update = updates[i];
  Change *change = changes + (u32)numbers[i];
  each_entry(*given, update, [&](int relation, int near, int far, int key) {
    *change++ = {relation, near, far, key, update.inserted ? NEW : OLD};
  });
}

// Whether each sorted change is one: the last of its entry, and not as the list has it.
extern "C" __global__ void find_wanted(const Lists *given, const Change *changes, const i64 *keys, const i64 *order,
                                       i64 count, i64 *wanted) {
  const Lists &lists = *given;
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= count) return;
  const Change change = changes[order[i]];
  const i64 key = keys[order[i]];
  wanted[i] = 0;
  if (i + 1 < count && keys[order[i + 1]] == key && changes[order[i + 1]].key == change.key) return;
  const Row row = lists.rows[key >> 32];
  const int begin = row.begin * UNIT, end = begin + row.size;
  int at = lower(lists.neighbours, begin, end, change.far);
  while (at < end && lists.neighbours[at] == change.far && lists.codes[at] >> KEY_SHIFT < change.key) ++at;
  const bool there = at < end && lists.neighbours[at] == change.far && lists.codes[at] >> KEY_SHIFT == change.key;
  wanted[i] = there == (change.versions == OLD);
}

// The changes that are some, with their keys, sorted.
extern "C" __global__ void gather(const Change *changes, const i64 *keys, const i64 *order, i64 count, const i64 *places,
                                  Change *found, i64 *found_keys, i64 *found_order) {
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= count || places[i + 1] == places[i]) return;
  const i64 to = places[i];
  found[to] = changes[order[i]], found_keys[to] = keys[order[i]], found_order[to] = to;
}

// Give each changed list a row, and each change its key.
extern "C" __global__ void locate(const Lists *given, const Change *changes, i64 count, i64 *keys) {
  const Lists &lists = *given;
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= count) return;
  const Change change = changes[i];
  i64 row = range_row(lists, change.relation, change.near);
  if (row < 0) {
    const u64 key = late_key(change.relation, change.near);
    i64 place = first_place(lists, key);
    for (;; place = (place + 1) & lists.late_mask) {
      const u64 found = atomicCAS(lists.late + place, NO_KEY, key);
      if (found == NO_KEY || found == key) break;
    }
    row = lists.late_base + place;
  }
  keys[i] = row << 32 | (u32)change.far;
}

// Rows of vertices out of range that a smaller table had, or the host's, now that this one is empty.
extern "C" __global__ void adopt(const Lists *given, const u64 *keys, const Row *rows, i64 count) {
  const Lists &lists = *given;
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= count || keys[i] == NO_KEY) return;
  i64 place = first_place(lists, keys[i]);
  while (atomicCAS(lists.late + place, NO_KEY, keys[i]) != NO_KEY) place = (place + 1) & lists.late_mask;
  lists.rows[lists.late_base + place] = rows[i];
}

// Changes of one list and far end are ordered by their labels; those of one entry stay as they are.
extern "C" __global__ void untie(const Change *changes, const i64 *keys, i64 count, i64 *order) {
  const i64 first = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (first >= count) return;
  const i64 key = keys[order[first]];
  if (first > 0 && keys[order[first - 1]] == key) return;
  for (i64 at = first + 1; at < count && keys[order[at]] == key; ++at) {
    const i64 moved = order[at];
    i64 to = at;
    for (; to > first && changes[order[to - 1]].key > changes[moved].key; --to) order[to] = order[to - 1];
    order[to] = moved;
  }
}

// Sort some thousand changes by what argsort and untie() sort them by, each counting those before it: 8 lanes for each.
extern "C" __global__ void rank(const Change *changes, const i64 *keys, i64 count, i64 *order) {
  const i64 i = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / RANKERS;
  int before = 0;
  if (i < count) {
    const i64 key = keys[i];
    const int label = changes[i].key;
    for (i64 j = threadIdx.x % RANKERS; j < count; j += RANKERS) {
      const i64 other = keys[j];
      before += other < key;
      if (other == key && j != i) before += changes[j].key < label || (changes[j].key == label && j < i);
    }
  }
  for (int by = RANKERS / 2; by; by >>= 1) before += __shfl_xor_sync(FULL, before, by);
  if (i < count && threadIdx.x % RANKERS == 0) order[before] = i;
}

// Of sorted changes, those that are the first of their list, and in the lower half of the number insertions: summed up,
// they are the lists and the insertions before each.  There are `*left`, and space for `bound`: the host does not know yet.
extern "C" __global__ void group(const Change *changes, const i64 *keys, const i64 *order, const i64 *left, i64 bound, i64 *sums) {
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= bound) return;
  if (i >= *left) {
    sums[i] = 0;
    return;
  }
  const i64 first = i == 0 || keys[order[i]] >> 32 != keys[order[i - 1]] >> 32;
  sums[i] = first << 32 | (changes[order[i]].versions == NEW);
}

__device__ __forceinline__ i64 lists_before(const i64 *sums, i64 i) { return sums[i] >> 32; }
__device__ __forceinline__ int gained_before(const i64 *sums, i64 i) { return (int)(u32)sums[i]; }

// Where each change is in its list, or is to be; deletions leave the new version.  `starts` becomes where the changes of each
// list begin.  Those that are `there` already are only looked up.
extern "C" __global__ void place(const Lists *given, const Change *changes, const i64 *keys, const i64 *order, const i64 *left,
                                 const i64 *sums, i64 there, i64 *starts, int *places) {
  const Lists &lists = *given;
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x, count = *left;
  if (i >= count) return;
  const Change change = changes[order[i]];
  const Row &row = lists.rows[keys[order[i]] >> 32];
  const int begin = row.begin * UNIT, end = begin + row.size;
  int at = lower(lists.neighbours, begin, end, change.far);
  while (at < end && lists.neighbours[at] == change.far && lists.codes[at] >> KEY_SHIFT < change.key) ++at;
  places[i] = at - begin;
  if (!there && change.versions == OLD) lists.codes[at] &= ~NEW;
  if (!there && change.versions == NEW) {
    bool joined = (at > begin && lists.neighbours[at - 1] == change.far) || (at < end && lists.neighbours[at] == change.far);
    for (i64 j = i; !joined && j > 0 && keys[order[j - 1]] == keys[order[i]]; --j)
      joined = changes[order[j - 1]].versions == NEW;
    if (joined) atomicAdd((u64 *)lists.parallel + change.relation, 1ull);
  }
  const i64 group = lists_before(sums, i);
  if (lists_before(sums, i + 1) > group) {
    starts[group] = i;
    lists.rows[keys[order[i]] >> 32].group = (int)group + 1;
  }
  if (i == count - 1) starts[lists_before(sums, count)] = count;
}

// How many units each list needs that does not fit its segment.
extern "C" __global__ void space(const Lists *given, const i64 *keys, const i64 *order, const i64 *starts, const i64 *left,
                                 i64 bound, const i64 *sums, i64 *units) {
  const i64 g = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (g >= bound) return;
  units[g] = 0;
  if (g >= lists_before(sums, *left)) return;
  const Row row = given->rows[keys[order[starts[g]]] >> 32];
  const i64 size = row.size + gained_before(sums, starts[g + 1]) - gained_before(sums, starts[g]);
  i64 room = 1;
  while (room * UNIT < size) room *= 2;
  if (size > row.room) units[g] = room;
}

// What the host waits for: how many changes there are, and lists, how many units these need where that is asked for, and
// how many parallel edges the relations have.
extern "C" __global__ void tell(const Lists *given, const i64 *left, const i64 *sums, const i64 *units, i64 relations,
                                volatile i64 *found) {
  if (threadIdx.x == 0) found[0] = *left, found[1] = lists_before(sums, *left), found[2] = units ? *units : 0;
  for (i64 i = threadIdx.x; i < relations; i += blockDim.x) found[3 + i] = given->parallel[i];
  __threadfence_system();
}

// Merge the insertions into their lists, each by a warp: entries move up by the insertions before them, the last ones
// first.
extern "C" __global__ void merge(const Lists *given, const Change *changes, const i64 *keys, const i64 *order,
                                 const i64 *starts, const i64 *sums, const int *places, const i64 *units, i64 used,
                                 i64 groups) {
  const Lists &lists = *given;
  const i64 g = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / WARP;
  if (g >= groups) return;
  const i64 first = starts[g], last = starts[g + 1];
  Row &row = lists.rows[keys[order[first]] >> 32];
  const int before = gained_before(sums, first), inserted = gained_before(sums, last) - before, deleted = (int)(last - first) - inserted;
  const bool moved = units[g + 1] > units[g];
  const int from = row.begin * UNIT, begin = (int)(moved ? used + units[g] : row.begin), to = begin * UNIT;
  const int size = row.size, room = row.room;
  for (int end = size; inserted + moved && end > 0; end -= WARP) {
    const int at = end - 1 - LANE;
    int value = 0, code = 0, by = 0;
    if (at >= 0) {
      value = lists.neighbours[from + at], code = lists.codes[from + at];
      i64 low = first, high = last;  // the first change whose place is behind
      while (low < high) {
        const i64 middle = (low + high) / 2;
        if (places[middle] <= at)
          low = middle + 1;
        else
          high = middle;
      }
      by = gained_before(sums, low) - before;
    }
    if (!__any_sync(FULL, by + moved)) break;
    __syncwarp();
    if (at >= 0) lists.neighbours[to + at + by] = value, lists.codes[to + at + by] = code;
    __syncwarp();
  }
  for (i64 i = first + LANE; i < last; i += WARP) {
    const Change &change = changes[order[i]];
    if (change.versions != NEW) continue;
    const i64 at = to + places[i] + gained_before(sums, i) - before;
    lists.neighbours[at] = change.far;
    lists.codes[at] = change.key << KEY_SHIFT | NEW;
    mark(lists, change.relation, row.marks, change.far, true);
  }
  __syncwarp();
  if (LANE == 0) {
    row.begin = begin, row.size = size + inserted;
    row.room = moved ? (int)(units[g + 1] - units[g]) * UNIT : room;
    row.after += inserted - deleted;
    row.both -= deleted;
  }
}

// End a batch: what is in `version` is in both from now on, and the rest goes; a warp for each list.
extern "C" __global__ void finish(const Lists *given, const Change *changes, const i64 *keys, const i64 *order, const i64 *starts,
                                  const int *places, i64 groups, i64 version) {
  const Lists &lists = *given;
  const i64 g = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / WARP;
  if (g >= groups) return;
  Row &row = lists.rows[keys[order[starts[g]]] >> 32];
  const int size = row.size, begin = row.begin * UNIT;
  int left = places[starts[g]];
  for (int at = left; at < size; at += WARP) {
    const bool on = at + LANE < size;
    const int value = on ? lists.neighbours[begin + at + LANE] : 0, code = on ? lists.codes[begin + at + LANE] : 0;
    const bool stays = on && code & (int)version;
    const u32 mask = __ballot_sync(FULL, stays);
    const int to = begin + left + __popc(mask & ((1u << LANE) - 1));
    __syncwarp();
    if (stays) lists.neighbours[to] = value, lists.codes[to] = code >> KEY_SHIFT << KEY_SHIFT | BOTH;
    left += __popc(mask);
    __syncwarp();
  }
  __syncwarp();
  const bool parallel = lists.parallel[changes[order[starts[g]]].relation] > 0;
  for (i64 i = starts[g] + LANE; (row.marks || parallel) && i < starts[g + 1]; i += WARP) {
    const Change &change = changes[order[i]];
    int at = lower(lists.neighbours, begin, begin + left, change.far);
    const bool there = at < begin + left && lists.neighbours[at] == change.far;
    mark(lists, change.relation, row.marks, change.far, there);
    if (!parallel || (i > starts[g] && changes[order[i - 1]].far == change.far)) continue;
    int gone = 0, stay = 0;  // of the entries with this far end
    for (i64 j = i; j < starts[g + 1] && changes[order[j]].far == change.far; ++j) gone += !(changes[order[j]].versions & version);
    for (; at < begin + left && lists.neighbours[at] == change.far; ++at) ++stay;
    const int fewer = max(gone + stay - 1, 0) - max(stay - 1, 0);
    if (fewer) atomicAdd((u64 *)lists.parallel + change.relation, (u64)-(i64)fewer);
  }
  if (LANE == 0) row.size = row.before = row.after = row.both = left, row.group = 0;
}

// Encode the vertices of changed lists again (§IV-B): each for the pattern vertices to which their lengths matter.
extern "C" __global__ void encode(const Lists *given, const Change *changes, const i64 *order, const i64 *starts,
                                  i64 groups) {
  const Lists &lists = *given;
  const i64 g = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (g >= groups) return;
  const Change &change = changes[order[starts[g]]];
  for (i64 i = lists.counter_starts[change.relation]; i < lists.counter_starts[change.relation + 1]; ++i) {
    const i64 *vertex = lists.pattern_vertices + lists.counters[i * COUNTER_CELLS] * VERTEX_CELLS;
    bool fits = true;
    for (i64 n = vertex[2]; fits && n < vertex[3]; ++n) {
      const i64 *need = lists.needs + n * NEED_CELLS;
      fits = lists.rows[row_of(lists, (int)need[0], change.near)].size >= need[1];
    }
    u64 *word = lists.table + vertex[0] * lists.stride + change.near;
    if (fits)
      atomicOr(word, 1ull << vertex[1]);
    else
      atomicAnd(word, ~(1ull << vertex[1]));
  }
}

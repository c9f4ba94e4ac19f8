// Lists take batches of changes in place: GAMMA (Qiu et al., ICDE 2024) §V-C keeps free space in segments of one array;
// here each list is a segment.  A batch's changes, sorted by list, are merged into theirs by a warp for each list that it
// changes; one that outgrows its segment moves to one of at least twice the size.
//
// What a batch deletes stays until the batch ends, marked as gone from the new version.  Of the entries that updates have,
// each list counts its own, gets that many seats, and sorts them; lists come in any order.  No kernel waits for the host,
// which knows at most how many entries there are.

#include "delta.cuh"

const int RANKERS = 8;

// An entry that may change, as it is sorted in its list: by far end, key, and where it came from.
struct Dealt {
  int far, key, origin, entry;
};

// An entry, sorted, and its place in its list; -1: nothing changes by it.
struct Sorted {
  int entry, place;
};

// Where a list's entries are among those sorted.
struct Part {
  int start, count;
};

// A changed list: its row, and the unit that it is to move to once the pool has so many, or -1.
struct Group {
  int row, target;
};

// A batch: its updates, what may change by them, how that is sorted, and what changes: sorted by list and far end, with each
// change's place in its list and the insertions before it there, and where each list's changes begin.
struct Batch {
  const Update *updates;
  Change *entries;
  i64 *keys;       // by entry, the row of its list, and in the lower half its far end
  int *origins;    // by entry, its update
  int *seats;      // by entry, which of its list's it is
  Dealt *dealt;
  Sorted *sorted;
  Part *parts;
  Change *changes;
  int *places, *gained;
  i64 *starts;
  Group *groups;
  i64 count;       // of the updates, or of entries that are given
  i64 there;       // whether the lists have the changes already
  i64 late_room;   // entries of vertices out of range that may get rows
  i64 room;        // units of the pool
  u64 found, late, full;  // entries, those out of range, and whether these are too many
  u64 segments;    // how many lists have entries, and in the lower half seats
  u64 left;        // how many lists change, and in the lower half changes
  u64 units;       // that are used
  u64 waiting;     // whether lists wait for the pool to grow
};
#include "delta_batch_layout.cuh"

// The calling thread among all, and how many there are.
__device__ __forceinline__ i64 self() { return blockIdx.x * (i64)blockDim.x + threadIdx.x; }
__device__ __forceinline__ i64 all() { return gridDim.x * (i64)blockDim.x; }

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

// How many entries updates have, and how many of vertices out of range.
extern "C" __global__ void count_entries(const Lists *given, Batch *batch) {
  const Lists &lists = *given;
  i64 number = 0, late = 0;
  for (i64 i = self(); i < batch->count; i += all())
    each_entry(lists, batch->updates[i], [&](int relation, int near, int far, int key) {
      ++number, late += range_row(lists, relation, near) < 0;
    });
  if (number) atomicAdd(&batch->found, (u64)number);
  if (late) atomicAdd(&batch->late, (u64)late);
}

// Tell the host what count_entries() found, and begin again.
extern "C" __global__ void tell_entries(Batch *batch, volatile i64 *told) {
  told[0] = batch->found, told[1] = batch->late;
  batch->found = batch->late = 0;
  __threadfence_system();
}

// Give an entry a seat in its list, and the list a row.
__device__ __forceinline__ void seat(const Lists &lists, Batch &batch, i64 at, const Change &change, int origin) {
  i64 row = range_row(lists, change.relation, change.near);
  if (row < 0) {
    if ((i64)atomicAdd(&batch.late, 1ull) >= batch.late_room) {
      batch.full = 1, batch.keys[at] = -1;
      return;
    }
    const u64 key = late_key(change.relation, change.near);
    i64 place = first_place(lists, key);
    for (;; place = (place + 1) & lists.late_mask) {
      const u64 found = atomicCAS(lists.late + place, NO_KEY, key);
      if (found == NO_KEY || found == key) break;
    }
    row = lists.late_base + place;
  }
  batch.keys[at] = row << 32 | (u32)change.far;
  batch.origins[at] = origin;
  batch.seats[at] = atomicAdd(&lists.rows[row].group, 1);
}

// The entries of updates.
extern "C" __global__ void expand(const Lists *given, Batch *own) {
  Batch &batch = *own;
  for (i64 i = self(); i < batch.count; i += all()) {
    const Update update = batch.updates[i];
    each_entry(*given, update, [&](int relation, int near, int far, int key) {
      const i64 at = (i64)atomicAdd(&batch.found, 1ull);
      const Change change = {relation, near, far, key, update.inserted ? NEW : OLD};
      batch.entries[at] = change;
      seat(*given, batch, at, change, (int)i);
    });
  }
}

// The same of entries that are given.
extern "C" __global__ void locate(const Lists *given, Batch *own) {
  Batch &batch = *own;
  for (i64 i = self(); i < batch.count; i += all()) seat(*given, batch, i, batch.entries[i], (int)i);
  if (self() == 0) batch.found = (u64)batch.count;
}

// Take all seats back, where there are too few rows.
extern "C" __global__ void leave(const Lists *given, const Batch *batch) {
  for (i64 i = self(); i < (i64)batch->found; i += all())
    if (batch->keys[i] >= 0) given->rows[batch->keys[i] >> 32].group = 0;
}

__device__ __forceinline__ Row &row_at(const Lists &lists, const Batch &batch, i64 entry) {
  return lists.rows[batch.keys[entry] >> 32];
}

// Where the seats of each list begin.
extern "C" __global__ void divide(const Lists *given, Batch *own) {
  Batch &batch = *own;
  for (i64 i = self(); i < (i64)batch.found && !batch.full; i += all()) {
    if (batch.seats[i]) continue;
    Row &row = row_at(*given, batch, i);
    const u64 before = atomicAdd(&batch.segments, 1ull << 32 | (u32)row.group);
    batch.parts[before >> 32] = {(int)(u32)before, row.group};
    row.group = (int)(before >> 32) + 1;
  }
}

// Entries take their seats.
extern "C" __global__ void deal(const Lists *given, Batch *own) {
  const Batch &batch = *own;
  for (i64 i = self(); i < (i64)batch.found && !batch.full; i += all()) {
    const Part part = batch.parts[row_at(*given, batch, i).group - 1];
    batch.dealt[part.start + batch.seats[i]] = {batch.entries[i].far, batch.entries[i].key, batch.origins[i], (int)i};
  }
}

// Where an entry is in its list, or is to be; whether something changes by it: it is the last update of its entry, and not
// as the list has it.
__device__ __forceinline__ void settle(const Lists &lists, const Batch &batch, int entry, i64 to, bool last) {
  const Change change = batch.entries[entry];
  const Row row = row_at(lists, batch, entry);
  const int begin = row.begin * UNIT, end = begin + row.size;
  int at = lower(lists.neighbours, begin, end, change.far);
  while (at < end && lists.neighbours[at] == change.far && lists.codes[at] >> KEY_SHIFT < change.key) ++at;
  const bool there = at < end && lists.neighbours[at] == change.far && lists.codes[at] >> KEY_SHIFT == change.key;
  const bool wanted = batch.there || (last && there == (change.versions == OLD));
  batch.sorted[to] = {entry, wanted ? at - begin : -1};
}

// Sort the entries of each list by counting those before each: 8 lanes for each.
extern "C" __global__ void rank(const Lists *given, Batch *own) {
  const Batch &batch = *own;
  const i64 count = batch.full ? 0 : (i64)batch.found;
  const int lane = threadIdx.x % RANKERS;
  for (i64 first = self() / WARP * (WARP / RANKERS); first < count; first += all() / RANKERS) {
    const i64 i = first + LANE / RANKERS;
    int before = 0, later = 0, start = 0;
    if (i < count) {
      const Part part = batch.parts[row_at(*given, batch, i).group - 1];
      const int far = (int)batch.keys[i], key = batch.entries[i].key, origin = batch.origins[i];
      start = part.start;
      for (int j = lane; j < part.count; j += RANKERS) {
        const Dealt other = batch.dealt[start + j];
        const bool same = other.far == far && other.key == key;
        before += other.far < far || (other.far == far && other.key < key) || (same && other.origin < origin);
        later |= same && other.origin > origin;
      }
    }
    for (int by = RANKERS / 2; by; by >>= 1)
      before += __shfl_xor_sync(FULL, before, by), later |= __shfl_xor_sync(FULL, later, by);
    if (i < count && lane == 0) settle(*given, batch, (int)i, start + before, !later);
  }
}

// Entries of one list and far end are ordered by their keys; those of one entry as they came.
extern "C" __global__ void untie(const Batch *batch, i64 *order) {
  const i64 first = self(), count = (i64)batch->found;
  if (first >= count) return;
  const i64 key = batch->keys[order[first]];
  if (first > 0 && batch->keys[order[first - 1]] == key) return;
  for (i64 at = first + 1; at < count && batch->keys[order[at]] == key; ++at) {
    const i64 moved = order[at];
    const int label = batch->entries[moved].key, origin = batch->origins[moved];
    i64 to = at;
    for (; to > first; --to) {
      const i64 other = order[to - 1];
      if (batch->entries[other].key < label || (batch->entries[other].key == label && batch->origins[other] < origin)) break;
      order[to] = other;
    }
    order[to] = moved;
  }
}

// What divide(), deal() and rank() do, for entries that are sorted.
extern "C" __global__ void line_up(const Lists *given, Batch *own, const i64 *order) {
  Batch &batch = *own;
  const i64 i = self(), count = (i64)batch.found;
  if (i >= count) return;
  const i64 key = batch.keys[order[i]];
  if (i == 0 || batch.keys[order[i - 1]] >> 32 != key >> 32)
    batch.parts[atomicAdd(&batch.segments, 1ull << 32) >> 32] = {(int)i, row_at(*given, batch, order[i]).group};
  const bool last = i + 1 == count || batch.keys[order[i + 1]] != key ||
                    batch.entries[order[i + 1]].key != batch.entries[order[i]].key;
  settle(*given, batch, (int)order[i], i, last);
}

// Move a list's entries up by the insertions before them, the last ones first, and put these in.
__device__ __forceinline__ void insert(const Lists &lists, const Batch &batch, i64 group, Row &row, int unit, int inserted,
                                       int room) {
  const i64 first = batch.starts[group], last = batch.starts[group + 1];
  const bool moved = unit != row.begin;
  const int from = row.begin * UNIT, to = unit * UNIT, size = row.size, deleted = (int)(last - first) - inserted;
  for (int end = size; inserted + moved && end > 0; end -= WARP) {
    const int at = end - 1 - LANE;
    int value = 0, code = 0, by = 0;
    if (at >= 0) {
      value = lists.neighbours[from + at], code = lists.codes[from + at];
      i64 low = first, high = last;  // the first change whose place is behind
      while (low < high) {
        const i64 middle = (low + high) / 2;
        if (batch.places[middle] <= at)
          low = middle + 1;
        else
          high = middle;
      }
      by = low < last ? batch.gained[low] : inserted;
    }
    if (!__any_sync(FULL, by + moved)) break;
    __syncwarp();
    if (at >= 0) lists.neighbours[to + at + by] = value, lists.codes[to + at + by] = code;
    __syncwarp();
  }
  for (i64 i = first + LANE; i < last; i += WARP) {
    const Change change = batch.changes[i];
    if (change.versions != NEW) continue;
    const int at = to + batch.places[i] + batch.gained[i];
    lists.neighbours[at] = change.far;
    lists.codes[at] = change.key << KEY_SHIFT | NEW;
    mark(lists, change.relation, row.marks, change.far, true);
  }
  __syncwarp();
  if (LANE == 0) {
    row.begin = unit, row.size = size + inserted, row.room = room;
    row.after += inserted - deleted;
    row.both -= deleted;
  }
}

// Units that a list of some entries gets.
__device__ __forceinline__ int units_of(int size) {
  int units = 1;
  while (units * UNIT < size) units *= 2;
  return units;
}

// Whether an insertion, sorted, has a parallel entry: in its list, or before it in the batch.
__device__ __forceinline__ bool joins(const Lists &lists, const Batch &batch, const Row &row, const Sorted *first, int i) {
  const int far = batch.entries[first[i].entry].far, begin = row.begin * UNIT, at = begin + first[i].place;
  if (at > begin && lists.neighbours[at - 1] == far) return true;
  if (at < begin + row.size && lists.neighbours[at] == far) return true;
  for (int j = i - 1; j >= 0 && batch.entries[first[j].entry].far == far; --j)
    if (first[j].place >= 0 && batch.entries[first[j].entry].versions == NEW) return true;
  return false;
}

// Write what changes in a list, and merge it into the list: by a warp.
__device__ __forceinline__ void merge_part(const Lists &lists, Batch &batch, const Part &part) {
  const Sorted *sorted = batch.sorted + part.start;
  const i64 number = batch.keys[sorted[0].entry] >> 32;
  Row &row = lists.rows[number];
  int wanted = 0, inserted = 0, done = 0;
  for (int at = 0; at < part.count; at += WARP)
    wanted += __popc(__ballot_sync(FULL, at + LANE < part.count && sorted[at + LANE].place >= 0));
  u64 before = 0;
  if (LANE == 0 && wanted) before = atomicAdd(&batch.left, 1ull << 32 | (u32)wanted);
  before = __shfl_sync(FULL, before, 0);
  const i64 group = (i64)(before >> 32), first = (u32)before;
  if (LANE == 0) row.group = wanted ? (int)group + 1 : 0;
  if (!wanted) return;
  for (int at = 0; at < part.count; at += WARP) {
    const bool on = at + LANE < part.count && sorted[at + LANE].place >= 0;
    Change change = {};
    if (on) change = batch.entries[sorted[at + LANE].entry];
    const bool gains = on && change.versions == NEW;
    const u32 mask = __ballot_sync(FULL, on), gain = __ballot_sync(FULL, gains), below = (1u << LANE) - 1;
    if (on) {
      const i64 to = first + done + __popc(mask & below);
      const int place = sorted[at + LANE].place;
      batch.changes[to] = change, batch.places[to] = place, batch.gained[to] = inserted + __popc(gain & below);
      if (!batch.there && change.versions == OLD) lists.codes[row.begin * UNIT + place] &= ~NEW;
      if (!batch.there && gains && joins(lists, batch, row, sorted, at + LANE))
        atomicAdd((u64 *)lists.parallel + change.relation, 1ull);
    }
    done += __popc(mask), inserted += __popc(gain);
  }
  const int size = row.size + inserted;
  int unit = row.begin, room = row.room, target = -1;
  if (!batch.there && size > room) {
    const int units = units_of(size);
    if (LANE == 0) unit = (int)atomicAdd(&batch.units, (u64)units);
    unit = __shfl_sync(FULL, unit, 0), room = units * UNIT;
    if (unit + (i64)units > batch.room) target = unit;
  }
  if (LANE == 0) {
    batch.starts[group] = first, batch.starts[group + 1] = first + wanted;  // where the next one's begin, which writes the same
    batch.groups[group] = {(int)number, target};
    if (target >= 0) batch.waiting = 1;
  }
  __syncwarp();
  if (!batch.there && target < 0) insert(lists, batch, group, row, unit, inserted, room);
}

extern "C" __global__ void merge(const Lists *given, Batch *batch) {
  const i64 parts = batch->full ? 0 : (i64)(batch->segments >> 32);
  for (i64 g = self() / WARP; g < parts; g += all() / WARP) merge_part(*given, *batch, batch->parts[g]);
}

// Merge what had to wait for the pool to grow.
extern "C" __global__ void merge_rest(const Lists *given, Batch *own) {
  Batch &batch = *own;
  for (i64 g = self() / WARP; g < (i64)(batch.left >> 32); g += all() / WARP) {
    const Group group = batch.groups[g];
    if (group.target < 0) continue;
    Row &row = given->rows[group.row];
    const i64 last = batch.starts[g + 1] - 1;
    const int inserted = batch.gained[last] + (batch.changes[last].versions == NEW);
    insert(*given, batch, g, row, group.target, inserted, units_of(row.size + inserted) * UNIT);
  }
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

// End a batch: what is in `version` is in both from now on, and the rest goes; a warp for each list.
extern "C" __global__ void finish(const Lists *given, const Batch *own, i64 version) {
  const Lists &lists = *given;
  const Batch &batch = *own;
  const Change *changes = batch.changes;
  const i64 *starts = batch.starts, g = self() / WARP;
  if (g >= (i64)(batch.left >> 32)) return;
  Row &row = lists.rows[batch.groups[g].row];
  const int size = row.size, begin = row.begin * UNIT;
  int left = batch.places[starts[g]];
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
  const bool parallel = lists.parallel[changes[starts[g]].relation] > 0;
  for (i64 i = starts[g] + LANE; (row.marks || parallel) && i < starts[g + 1]; i += WARP) {
    const Change &change = changes[i];
    int at = lower(lists.neighbours, begin, begin + left, change.far);
    const bool there = at < begin + left && lists.neighbours[at] == change.far;
    mark(lists, change.relation, row.marks, change.far, there);
    if (!parallel || (i > starts[g] && changes[i - 1].far == change.far)) continue;
    int gone = 0, stay = 0;  // of the entries with this far end
    for (i64 j = i; j < starts[g + 1] && changes[j].far == change.far; ++j) gone += !(changes[j].versions & version);
    for (; at < begin + left && lists.neighbours[at] == change.far; ++at) ++stay;
    const int fewer = max(gone + stay - 1, 0) - max(stay - 1, 0);
    if (fewer) atomicAdd((u64 *)lists.parallel + change.relation, (u64)-(i64)fewer);
  }
  if (LANE == 0) row.size = row.before = row.after = row.both = left, row.group = 0;
}

// Encode the vertices of a changed list again (§IV-B): each for the pattern vertices to which its length matters.
__device__ __forceinline__ void encode_near(const Lists &lists, const Change &change) {
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

// Encode the vertices of all changed lists; if `told` is given, tell the host of the batch: its lists and changes, units
// used, whether there was no space for all rows or lists, the entries out of range, and how many parallel edges the
// relations have.
extern "C" __global__ void encode(const Lists *given, const Batch *batch, volatile i64 *told, i64 relations) {
  if (told && blockIdx.x == 0) {
    if (threadIdx.x == 0) {
      told[0] = (i64)batch->left, told[1] = (i64)batch->units, told[2] = (i64)batch->full;
      told[3] = (i64)batch->waiting, told[4] = (i64)batch->late;
    }
    for (i64 i = threadIdx.x; i < relations; i += blockDim.x) told[5 + i] = given->parallel[i];
    __threadfence_system();
  }
  for (i64 g = self(); g < (i64)(batch->left >> 32); g += all()) encode_near(*given, batch->changes[batch->starts[g]]);
}

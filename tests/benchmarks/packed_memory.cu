// A packed memory array of edges that takes sorted batches: GPMA (Sha et al., PVLDB 2017), as GAMMA §V-C adopts it.
//
// Entries (source, neighbour and, if CODED, code) stand sorted in leaves of LEAF slots, packed to the left of each;
// the free slots of a leaf repeat its last entry, marked as FREE, so that searching by halves needs no more than to
// leave out that bit.  A node of level h of the tree above consists of 2^h leaves.  A batch is merged into the lowest
// nodes that stay within the bounds of their level; each of these gets its entries spread evenly.  All nodes, whatever
// their size, are rebuilt together: every entry computes its rank, which the number of entries and the sum of effects
// before it give, and is written there, then from there to its slot.
//
// table [vertices, 2] says where the list of each vertex begins and ends; within it there are free slots.

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;

#define WARP 32
#define FULL 0xffffffffu
#define LANE ((int)(threadIdx.x % WARP))
#define FREE 0x80000000u
#define THREAD (blockIdx.x * (i64)blockDim.x + threadIdx.x)

struct Packed {
  i64 *table;
  int *sources, *neighbours, *codes;
  int *sizes;          // entries of each leaf
  int *tree;           // entries of each node once the batch is merged, level by level
  u32 *marks;          // the last batch that rebuilt the node
  const i64 *levels;   // where each level of the tree begins
  i64 leaves, height;  // the root is the node of this level
};

struct Change {
  int source, target, code, comes;
};

// A node that is rebuilt: its first leaf, how many it has, the number of the first among all leaves that are rebuilt, its
// level, its first group of changes, and where its entries are among those of all such nodes, and how many.
struct Segment {
  i64 leaf, leaves, at, level, group, from, count;
};

struct Key {
  u64 edge;
  int code;
};

__device__ __forceinline__ bool operator<(const Key &a, const Key &b) {
  return a.edge < b.edge || (CODED && a.edge == b.edge && a.code < b.code);
}

__device__ __forceinline__ Key key_of(const Change &change) {
  return {(u64)(u32)change.source << 32 | (u32)change.target, change.code};
}

__device__ __forceinline__ Key key_at(const Packed &packed, i64 slot) {
  return {(u64)(u32)packed.sources[slot] << 32 | (packed.neighbours[slot] & ~FREE), CODED ? packed.codes[slot] : 0};
}

// The first slot of a range whose entry is not below a key.
__device__ __forceinline__ i64 lower(const Packed &packed, i64 begin, i64 end, const Key &key) {
  while (begin < end) {
    const i64 middle = (begin + end) >> 1;
    if (key_at(packed, middle) < key) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

// The last segment that begins at or before a rebuilt leaf.
__device__ __forceinline__ i64 segment_of(const Segment *segments, i64 count, i64 leaf) {
  i64 low = 0, high = count;
  while (low + 1 < high) {
    const i64 middle = (low + high) >> 1;
    if (segments[middle].at <= leaf) low = middle;
    else high = middle;
  }
  return low;
}

__device__ __forceinline__ i64 leaves_of(const Packed &packed, i64 level, i64 node) {
  return min(packed.leaves - (node << level), (i64)1 << level);
}

// Bounds of a level lie between those of leaves, which are full or have one entry, and those of the root: MOST and LEAST
// of 1024 slots.
__device__ __forceinline__ bool fits(const Packed &packed, i64 level, i64 node) {
  const i64 count = packed.tree[packed.levels[level] + node], leaves = leaves_of(packed, level, node), height = packed.height;
  if (height == 0) return count <= LEAF;
  const i64 scaled = count * 1024 * height, slots = leaves * LEAF;
  return count >= leaves && scaled <= slots * (1024 * height - (1024 - MOST) * level) && scaled >= slots * LEAST * level;
}

// For each change its leaf, its rank among the leaf's entries, and whether there is an entry more or one less.  A vertex's
// own list says where; a vertex without one is looked for by the first entries of leaves.
extern "C" __global__ void locate(const Packed *given, const Change *changes, i64 count, int *leaf_of, int *rank_of,
                                  i64 *effects) {
  const Packed &packed = *given;
  const i64 i = THREAD;
  if (i >= count) return;
  const Change change = changes[i];
  const Key key = key_of(change);
  const i64 begin = packed.table[2 * change.source], end = packed.table[2 * change.source + 1];
  i64 leaf = 0, at;
  bool there = false;
  if (begin < end) {
    at = lower(packed, begin, end, key);
    there = at < end && !(key < key_at(packed, at));
    leaf = (at < end ? at : end - 1) / LEAF;
  } else {
    for (i64 high = packed.leaves; leaf + 1 < high;) {
      const i64 middle = (leaf + high) >> 1;
      if (key < key_at(packed, middle * LEAF)) high = middle;
      else leaf = middle;
    }
    at = lower(packed, leaf * LEAF, leaf * LEAF + packed.sizes[leaf], key);
  }
  leaf_of[i] = (int)leaf, rank_of[i] = (int)(at - leaf * LEAF);
  effects[i] = there == (change.comes != 0) ? 0 : change.comes ? 1 : -1;
}

// Whether a change is the first of its leaf.
extern "C" __global__ void group(const int *leaf_of, i64 count, i64 *firsts) {
  const i64 i = THREAD;
  if (i < count) firsts[i] = i == 0 || leaf_of[i] != leaf_of[i - 1];
}

// Where the changes of each leaf begin; `groups[i]` leaves have changes before change i.
extern "C" __global__ void begin_groups(const int *leaf_of, const i64 *groups, i64 count, i64 *starts, int *touched) {
  const i64 i = THREAD;
  if (i >= count) return;
  if (groups[i + 1] > groups[i]) starts[groups[i]] = i, touched[groups[i]] = leaf_of[i];
  if (i == count - 1) starts[groups[count]] = count;
}

// Add the effects of each leaf's changes to all nodes above it; a warp whose leaves are below one node adds once.
extern "C" __global__ void count_up(const Packed *given, const i64 *starts, const int *touched, const i64 *groups, i64 count,
                                    const i64 *sums) {
  const Packed &packed = *given;
  const i64 g = THREAD, number = groups[count];
  if (g - LANE >= number) return;
  const bool on = g < number;
  const int leaf = on ? touched[g] : 0, effect = on ? (int)(sums[starts[g + 1]] - sums[starts[g]]) : 0;
  int sum = effect;
  for (int by = WARP / 2; by; by /= 2) sum += __shfl_down_sync(FULL, sum, by);
  const int first = __shfl_sync(FULL, leaf, 0);
  for (i64 h = 0; h <= packed.height; ++h) {
    int *node = packed.tree + packed.levels[h] + (leaf >> h);
    if (__all_sync(FULL, !on || leaf >> h == first >> h)) {
      if (LANE == 0) atomicAdd(node, sum);
    } else if (effect) {
      atomicAdd(node, effect);
    }
  }
}

// The lowest node above each changed leaf that is within its bounds; the root where none is.
extern "C" __global__ void climb(const Packed *given, const int *touched, const i64 *groups, i64 count, i64 batch,
                                 int *level_of) {
  const Packed &packed = *given;
  const i64 g = THREAD;
  if (g >= groups[count]) return;
  i64 h = 0;
  while (h < packed.height && !fits(packed, h, touched[g] >> h)) ++h;
  packed.marks[packed.levels[h] + (touched[g] >> h)] = (u32)batch;
  level_of[g] = (int)h;
}

// The highest node above each changed leaf that some leaf has chosen: it is rebuilt, and all below it with it.
extern "C" __global__ void own(const Packed *given, const int *touched, const i64 *groups, i64 count, i64 batch,
                               int *level_of) {
  const Packed &packed = *given;
  const i64 g = THREAD;
  if (g >= groups[count]) return;
  i64 h = packed.height;
  while (h > level_of[g] && packed.marks[packed.levels[h] + (touched[g] >> h)] != (u32)batch) --h;
  level_of[g] = (int)h;
}

// A one in the upper half for the first changed leaf of each node that is rebuilt, and how many leaves it has.
extern "C" __global__ void begin_segments(const Packed *given, const int *touched, const i64 *groups, i64 count,
                                          const int *level_of, i64 *firsts) {
  const i64 g = THREAD;
  if (g >= count) return;
  firsts[g] = 0;
  if (g >= groups[count]) return;
  const int h = level_of[g];
  if (g == 0 || level_of[g - 1] != h || touched[g - 1] >> h != touched[g] >> h)
    firsts[g] = (i64)1 << 32 | leaves_of(*given, h, touched[g] >> h);
}

extern "C" __global__ void write_segments(const int *touched, const i64 *groups, i64 count, const int *level_of,
                                          const i64 *places, Segment *segments) {
  const i64 g = THREAD;
  if (g >= count) return;
  if (g == 0) segments[places[count] >> 32] = {0, 0, (u32)places[count], 0, groups[count], 0, 0};
  if (places[g + 1] == places[g]) return;
  const i64 h = level_of[g], at = (u32)places[g];
  segments[places[g] >> 32] = {(i64)(touched[g] >> h) << h, (u32)places[g + 1] - at, at, h, g, 0, 0};
}

// How many entries each leaf has that is rebuilt.
extern "C" __global__ void take_sizes(const Packed *given, const Segment *segments, i64 count, i64 rebuilt, i64 *sizes) {
  const i64 r = THREAD;
  if (r >= rebuilt) return;
  const Segment &segment = segments[segment_of(segments, count, r)];
  sizes[r] = given->sizes[segment.leaf + r - segment.at];
}

// Where the entries of each segment are, and how many there will be: those before, and the effects of changes.
extern "C" __global__ void sum_segments(const i64 *starts, const i64 *before, const i64 *sums, i64 count, Segment *segments) {
  const i64 s = THREAD;
  if (s >= count) return;
  const Segment &next = segments[s + 1];
  segments[s].from = before[segments[s].at] + sums[starts[segments[s].group]];
  segments[s].count = before[next.at] + sums[starts[next.group]] - segments[s].from;
}

// Entries that stay, to their ranks; a warp for each leaf.
extern "C" __global__ void gather(const Packed *given, const Segment *segments, i64 count, i64 rebuilt, const Change *changes,
                                  const i64 *starts, const int *touched, const i64 *before, const i64 *sums, int *sources,
                                  int *neighbours, int *codes) {
  const Packed &packed = *given;
  const i64 r = THREAD / WARP;
  if (r >= rebuilt) return;
  const i64 s = segment_of(segments, count, r), leaf = segments[s].leaf + r - segments[s].at, last = segments[s + 1].group;
  i64 g = segments[s].group;
  for (i64 high = last; g < high;) {
    const i64 middle = (g + high) >> 1;
    if (touched[middle] < leaf) g = middle + 1;
    else high = middle;
  }
  i64 low = starts[g];
  const i64 end = g < last && touched[g] == leaf ? starts[g + 1] : low;
  if (LANE >= packed.sizes[leaf]) return;
  const i64 slot = leaf * LEAF + LANE;
  const Key key = key_at(packed, slot);
  for (i64 high = end; low < high;) {
    const i64 middle = (low + high) >> 1;
    if (key_of(changes[middle]) < key) low = middle + 1;
    else high = middle;
  }
  if (low < end && !(key < key_of(changes[low])) && sums[low + 1] < sums[low]) return;
  const i64 to = before[r] + LANE + sums[low];
  sources[to] = packed.sources[slot], neighbours[to] = packed.neighbours[slot];
  if (CODED) codes[to] = packed.codes[slot];
}

// Entries that come, to their ranks.
extern "C" __global__ void put(const Segment *segments, const Change *changes, i64 count, const int *leaf_of,
                               const int *rank_of, const i64 *groups, const i64 *places, const i64 *before, const i64 *sums,
                               int *sources, int *neighbours, int *codes) {
  const i64 i = THREAD;
  if (i >= count || sums[i + 1] <= sums[i]) return;
  const Segment &segment = segments[(places[groups[i + 1]] >> 32) - 1];
  const i64 to = before[segment.at + leaf_of[i] - segment.leaf] + rank_of[i] + sums[i];
  sources[to] = changes[i].source, neighbours[to] = changes[i].target;
  if (CODED) codes[to] = changes[i].code;
}

__device__ __forceinline__ i64 share(i64 part, i64 count, i64 parts) { return (part * count + parts - 1) / parts; }

// Entries by rank, evenly to the leaves of their segment; a warp for each leaf, which counts the nodes that begin with it.
extern "C" __global__ void spread(const Packed *given, const Segment *segments, i64 count, i64 rebuilt, const int *sources,
                                  const int *neighbours, const int *codes) {
  const Packed &packed = *given;
  const i64 r = THREAD / WARP;
  if (r >= rebuilt) return;
  const Segment &segment = segments[segment_of(segments, count, r)];
  const i64 own = r - segment.at, leaf = segment.leaf + own, begin = share(own, segment.count, segment.leaves);
  const i64 end = share(own + 1, segment.count, segment.leaves), slot = leaf * LEAF + LANE;
  if (LANE < LEAF && begin < end) {
    const i64 from = segment.from + min(begin + LANE, end - 1);
    packed.sources[slot] = sources[from], packed.neighbours[slot] = neighbours[from] | (begin + LANE < end ? 0 : FREE);
    if (CODED) packed.codes[slot] = codes[from];
  } else if (LANE < LEAF) {
    packed.sources[slot] = -1;  // the array is empty
  }
  if (LANE == 0) packed.sizes[leaf] = (int)(end - begin);
  const i64 leaves = (i64)1 << LANE;
  if (LANE <= segment.level && leaf % leaves == 0)
    packed.tree[packed.levels[LANE] + (leaf >> LANE)] =
        (int)(share(min(own + leaves, segment.leaves), segment.count, segment.leaves) - begin);
}

// Where lists begin and end in leaves that were rebuilt, or just before and behind them; a warp for each leaf.
extern "C" __global__ void mark(const Packed *given, const Segment *segments, i64 count, i64 rebuilt) {
  const Packed &packed = *given;
  const i64 r = THREAD / WARP;
  if (r >= rebuilt) return;
  const Segment &segment = segments[segment_of(segments, count, r)];
  const i64 leaf = segment.leaf + r - segment.at, slot = leaf * LEAF + LANE;
  const int size = packed.sizes[leaf];
  if (LANE >= size) return;
  const i64 source = packed.sources[slot];
  const i64 left = LANE ? slot - 1 : (leaf - 1) * LEAF + (leaf ? packed.sizes[leaf - 1] : 0) - 1;
  if (slot == 0) {
    packed.table[2 * source] = 0;
  } else if (packed.sources[left] != source) {
    packed.table[2 * packed.sources[left] + 1] = left + 1;
    packed.table[2 * source] = slot;
  }
  if (LANE + 1 < size) return;
  const i64 right = (leaf + 1) * LEAF;
  if (leaf + 1 == packed.leaves) {
    packed.table[2 * source + 1] = slot + 1;
  } else if (packed.sources[right] != source) {
    packed.table[2 * source + 1] = slot + 1;
    packed.table[2 * packed.sources[right]] = right;
  }
}

// Vertices that have lost their last neighbour: no slot has an entry of theirs.
extern "C" __global__ void clear(const Packed *given, const Change *changes, i64 count, const i64 *sums) {
  const Packed &packed = *given;
  const i64 i = THREAD;
  if (i >= count || sums[i + 1] >= sums[i]) return;
  i64 *row = packed.table + 2 * (i64)changes[i].source;
  if (row[0] >= packed.leaves * LEAF || packed.sources[row[0]] != changes[i].source) row[0] = row[1] = 0;
}

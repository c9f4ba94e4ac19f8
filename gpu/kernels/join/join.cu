// The vertex-oriented join (SGSI §5): from a table of partial matches to the next, one bound slot at a time.
//
// A row's bindings are found among the elements of its shortest list.  The elements of all rows stand one after the
// other, and threads are assigned to elements, not to rows: TILE elements to a block, whatever the lists they belong to.
// So hubs and short lists need no treatment of their own.  `bounds` finds each row's lists, `mark` keeps one bit per
// element, and `combine` writes the next table where a prefix sum of the bits says.  Nothing is joined twice, and no
// more is allocated than is found.
//
// What a step reads is in join_lists.cuh, what finds the row of an element in tiles.cuh.

#include "join_counts.cuh"
#include "join_lists.cuh"
#include "tiles.cuh"

// Per row: its lists (where there are several), which one is the shortest, and where in it the search begins and how
// far it goes once the restrictions have narrowed it.
extern "C" __global__ void bounds(const i64 *step, const ID *table, i64 stride, i64 rows, i64 *begins, u32 *lengths,
                                  unsigned char *which, i64 *first, i64 *counts) {
  i64 row = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (row >= rows) return;
  Bindings values = {step, table, stride, row, -1};
  if (step[KIND] == EDGES) {
    const Partition &partition = ((const Partition *)step[PARTITIONS])[step[EDGE_PARTITION]];
    i64 at = neighbour_at(partition, values(step[EDGE_VERTEX]), values(step[EDGE_OTHER]));
    first[row] = at < 0 ? 0 : partition.code_offsets[at];
    counts[row] = at < 0 ? 0 : partition.code_offsets[at + 1] - partition.code_offsets[at];
    return;
  }
  i64 lists = step[LISTS], shortest = 0;
  Span best = {0, 0};
  for (i64 i = 0; i < lists; ++i) {
    Span span = span_of(step, list_of(step, i), values);
    if (lists > 1) {
      begins[i * rows + row] = span.begin;
      lengths[i * rows + row] = (u32)(span.end - span.begin);
    }
    if (i == 0 || span.end - span.begin < best.end - best.begin) {
      best = span;
      shortest = i;
    }
  }
  best = narrowed(step, list_of(step, shortest), best, values);
  if (lists > 1) which[row] = (unsigned char)shortest;
  first[row] = best.begin;
  counts[row] = best.end > best.begin ? best.end - best.begin : 0;
}

// Counting through one list whose only checks are inequalities: take the values away that the row excludes.
extern "C" __global__ void discount(const i64 *step, const ID *table, i64 stride, i64 rows, const i64 *first,
                                    i64 *counts) {
  i64 row = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const ID *list = (const ID *)list_of(step, 0)[ELEMENTS];
  const i64 *columns = step + step[DIFFERS_AT];
  i64 begin = first[row], end = begin + counts[row], left = counts[row];
  for (i64 i = 0; i < step[DIFFERS]; ++i) {
    ID other = table[columns[i] * stride + row];
    bool repeated = false;
    for (i64 j = 0; j < i; ++j) repeated = repeated || table[columns[j] * stride + row] == other;
    left -= !repeated && holds(list, begin, end, other);
  }
  counts[row] = left;
}

// The rows that the elements from, from + step … belong to, and behind them that of the last one before `to`.
extern "C" __global__ void starts(const i64 *offsets, i64 rows, i64 from, i64 to, i64 step, i64 count, i64 *out) {
  i64 number = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (number >= count) return;
  i64 at = from + number * step;
  out[number] = row_of(offsets, 0, rows - 1, at < to ? at : to - 1);
}

// One bit per element of the tiles of [from, to), and how many are set in each tile; without `bits` only that.  Most of
// the time is spent in steps of one list or two without further checks, and those have kernels of their own: N is how
// many lists there are (0 for all other steps), CHEAP says whether values are asked anything but whether they are listed.
template <int N, bool CHEAP>
__device__ __forceinline__ void mark_tile(const i64 *step, const ID *table, i64 stride, i64 rows, const i64 *begins,
                                          const u32 *lengths, const unsigned char *which, const i64 *first,
                                          const i64 *offsets, const i64 *starts, i64 from, i64 to, u32 *bits,
                                          i64 *counts) {
  __shared__ u32 tile_rows[ROWS];
  __shared__ u32 found[WARPS];
  bool several = step[LISTS] > 1;
  const ID *one = N > 0 ? (const ID *)list_of(step, 0)[ELEMENTS] : 0, *two = N > 1 ? (const ID *)list_of(step, 1)[ELEMENTS] : one;
  Cheap cheap(step);
  i64 low = starts[blockIdx.x];
  i64 tile = from + blockIdx.x * (i64)TILE;
  rows_of_tile(offsets, low, starts[blockIdx.x + 1], tile, tile_rows);
  u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, mine = 0;
  for (int i = 0; i < ITEMS; ++i) {
    i64 at = tile + i * THREADS + threadIdx.x;
    bool keep = false;
    if (at < to) {
      i64 row = low + tile_rows[slot_of(i * THREADS + threadIdx.x)];
      i64 place = __ldg(first + row) + at - __ldg(offsets + row);
      if (N == 0) {
        i64 chosen = several ? which[row] : 0;
        Bindings values = {step, table, stride, row, element(step, chosen, place)};
        keep = cheap.passes(table, stride, row, (ID)values.value) && keeps(step, values, rows, chosen, begins, lengths);
      } else {
        bool second = N == 2 && __ldg(which + row);
        ID value = __ldg((second ? two : one) + place);
        keep = !CHEAP || cheap.passes(table, stride, row, value);
        if (N == 2 && keep) {
          i64 other = (second ? 0 : rows) + row;
          keep = among((second ? one : two) + __ldg(begins + other), __ldg(lengths + other), value);
        }
      }
    }
    u32 word = __ballot_sync(~0u, keep);
    if (lane == 0) {
      if (bits) bits[blockIdx.x * (i64)WORDS + i * WARPS + warp] = word;
      mine += __popc(word);
    }
  }
  if (lane == 0) found[warp] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    i64 sum = 0;
    for (int i = 0; i < WARPS; ++i) sum += found[i];
    counts[blockIdx.x] = sum;
  }
}

#define MARK(NAME, N, CHEAP)                                                                                           \
  extern "C" __global__ void __launch_bounds__(THREADS)                                                                \
      NAME(const i64 *descriptor, i64 cells, const ID *table, i64 stride, i64 rows, const i64 *begins,                 \
           const u32 *lengths, const unsigned char *which, const i64 *first, const i64 *offsets, const i64 *starts,    \
           i64 from, i64 to, u32 *bits, i64 *counts) {                                                                 \
    __shared__ i64 cached[CHEAP ? CACHED_CELLS : 1];                                                                   \
    const i64 *step = CHEAP ? fetch(descriptor, cells, cached) : descriptor;                                           \
    mark_tile<N, CHEAP>(step, table, stride, rows, begins, lengths, which, first, offsets, starts, from, to, bits,     \
                        counts);                                                                                       \
  }
MARK(mark, 0, true)
MARK(mark_one, 1, true)
MARK(mark_two, 2, true)
MARK(intersect_two, 2, false)

#define COUNT(NAME, CHEAP)                                                                                             \
  extern "C" __global__ void __launch_bounds__(THREADS)                                                                \
      NAME(const i64 *descriptor, i64 cells, const ID *table, i64 stride, i64 rows, u64 *sum, u64 *next,               \
           const volatile int *stop) {                                                                                 \
    __shared__ i64 cached[CACHED_CELLS];                                                                               \
    Stored stored = {table, stride, rows};                                                                             \
    count_rows<CHEAP>(fetch(descriptor, cells, cached), stored, sum, next, stop);                                      \
  }
COUNT(count_two, false)
COUNT(count_two_others, true)

// The same of the bindings that the level before finds, `sum[1]` of them, from what `bounds` found of its rows: through two
// lists, or one.
#define COUNT_MADE(NAME, COUNT_BINDINGS)                                                                               \
  extern "C" __global__ void __launch_bounds__(THREADS)                                                                \
      NAME(const i64 *descriptor, i64 cells, const i64 *before, i64 before_cells, const ID *table, i64 stride,         \
           i64 rows, const i64 *begins, const u32 *lengths, const unsigned char *which, const i64 *first,              \
           const i64 *offsets, u64 *sum, u64 *next, const volatile int *stop) {                                        \
    __shared__ i64 cached[CACHED_CELLS];                                                                               \
    __shared__ i64 cached_before[CACHED_CELLS];                                                                        \
    __shared__ ID tables[WARPS][MADE_COLUMNS * Made::stride];                                                          \
    const i64 *step = fetch(before, before_cells, cached_before);                                                      \
    ID *own = tables[threadIdx.x / 32];                                                                                \
    Made made = {step, table, stride, rows, begins, lengths, which, first, offsets, own, Cheap(step), 0};              \
    COUNT_BINDINGS(fetch(descriptor, cells, cached), made, sum, next, stop);                                           \
    add_of_warp(sum + 1, made.passed);                                                                                 \
  }
COUNT_MADE(count_pairs, count_rows<true>)
COUNT_MADE(count_lists, count_elements)

// The next table: for each element whose bit is set (without bits: for each), one row, in the order of the elements.
extern "C" __global__ void __launch_bounds__(THREADS)
    combine(const i64 *descriptor, i64 cells, const ID *table, i64 stride, const unsigned char *which, const i64 *first,
            const i64 *offsets, const i64 *starts, i64 from, i64 to, const u32 *bits, const i64 *positions,
            i64 first_tile, ID *out, i64 out_stride) {
  __shared__ i64 cached[CACHED_CELLS];
  __shared__ u32 words[WORDS];
  __shared__ u32 before[WORDS + 1];
  __shared__ u32 tile_rows[ROWS];
  const i64 *step = fetch(descriptor, cells, cached);
  bool several = step[LISTS] > 1;
  i64 number = first_tile + blockIdx.x;
  i64 low = starts[number], high = starts[number + 1];
  i64 tile = from + number * TILE;
  for (int i = threadIdx.x; i < WORDS; i += THREADS) words[i] = bits ? bits[number * WORDS + i] : ~0u;
  __syncthreads();
  if (threadIdx.x < 32) {  // a warp adds up, each lane some words
    const int each = (WORDS + 31) / 32, begin = threadIdx.x * each;
    u32 own = 0;
    for (int i = begin; i < begin + each && i < WORDS; ++i) own += __popc(words[i]);
    u32 sum = own;
    for (int by = 1; by < 32; by *= 2) {
      u32 other = __shfl_up_sync(~0u, sum, by);
      if (threadIdx.x >= by) sum += other;
    }
    if (threadIdx.x == 31) before[WORDS] = sum;
    sum -= own;
    for (int i = begin; i < begin + each && i < WORDS; ++i) {
      before[i] = sum;
      sum += __popc(words[i]);
    }
  }
  __syncthreads();
  if (before[WORDS] == 0) return;
  bool sparse = before[WORDS] < TILE / 8;
  if (!sparse) rows_of_tile(offsets, low, high, tile, tile_rows);
  i64 base = bits ? positions[number] - positions[first_tile] : tile - from - first_tile * TILE;
  u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int i = 0; i < ITEMS; ++i) {
    u32 word = words[i * WARPS + warp];
    i64 at = tile + i * THREADS + threadIdx.x;
    if (!(word >> lane & 1) || at >= to) continue;
    i64 row = sparse ? row_of(offsets, low, high, at) : low + tile_rows[slot_of(i * THREADS + threadIdx.x)];
    i64 chosen = several ? which[row] : 0;
    Bindings values = {step, table, stride, row, element(step, chosen, first[row] + at - offsets[row])};
    i64 position = base + before[i * WARPS + warp] + __popc(word & ((1u << lane) - 1));
    const i64 *column = step + step[COLUMNS_AT];
    for (i64 c = 0; c < step[COLUMNS]; ++c, column += 2)
      out[c * out_stride + position] = (ID)values.at(column[0], column[1]);
  }
}

// Where the elements of each row that passed begin among all that did: [rows + 1].
extern "C" __global__ void row_offsets(const i64 *offsets, i64 rows, const u32 *bits, const i64 *positions, i64 *out) {
  i64 row = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (row > rows) return;
  i64 at = offsets[row], tile = at / TILE, sum = positions[tile];
  for (i64 word = tile * WORDS; word < at / 32; ++word) sum += __popc(bits[word]);
  if (at % 32) sum += __popc(bits[at / 32] & ((1u << at % 32) - 1));
  out[row] = sum;
}

#include "join_matches.cuh"

// The automorphic images of matches, one after the other: out[c][match * images + i] = table[moved[i][c]][match].
extern "C" __global__ void images(const ID *table, i64 stride, i64 matches, const i64 *moved, i64 images, i64 columns,
                                  ID *out) {
  i64 at = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (at >= matches * images) return;
  i64 match = at / images, image = at % images;
  for (i64 c = 0; c < columns; ++c) out[c * matches * images + at] = table[moved[image * columns + c] * stride + match];
}

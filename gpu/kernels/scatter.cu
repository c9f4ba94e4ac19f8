// Rows of a table of two cells each, written by their numbers: what a batch of changes moves of an offset layer of spans.

#include "sets.cuh"

extern "C" __global__ void scatter(i64 *table, const i64 *rows, const i64 *values, i64 count) {
  i64 at = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (at >= count) return;
  i64 *row = table + 2 * rows[at];
  row[0] = values[2 * at];
  row[1] = values[2 * at + 1];
}

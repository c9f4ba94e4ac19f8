// Conditions on bound slots: the checks of plan/physical.py, whose Op and CHECK_COLUMNS op.cuh holds.

#include "elements.cuh"

#include "op.cuh"

// What checks read besides the bindings.
struct Graph {
  const Partition *partitions;
  const i64 *uncertain;
  i64 resources;
  i64 type_label;
};

// Whether two bound pattern edges (slot, source, target) bind different data edges.
template <typename Values>
__device__ bool edges_differ(const i64 *check, const Values &value) {
  i64 first = value(check[1]), second = value(check[4]);
  if (first >> 1 != second >> 1) return true;
  i64 a = value(check[2]), b = value(check[3]), c = value(check[5]), d = value(check[6]);
  i64 from = first & 1 ? b : a, to = first & 1 ? a : b;
  return from != (second & 1 ? d : c) || to != (second & 1 ? c : d);
}

// INDUCED: whether just the expected number of data edges joins two bound vertices.
template <typename Values>
__device__ bool joined_by(const i64 *check, const Graph &graph, const Values &value) {
  i64 u = value(check[2]), w = value(check[3]);
  if (u >= graph.resources || w >= graph.resources) return true;
  i64 expected = check[4];
  for (i64 i = check[5]; i < check[6]; ++i) expected += value(graph.uncertain[i]) >> 1 != graph.type_label;
  const Partition &partition = graph.partitions[check[1]];
  i64 at = neighbour_at(partition, u, w);
  i64 found = at < 0 ? 0 : partition.code_offsets[at + 1] - partition.code_offsets[at];
  return found == expected;
}

// Whether the bound values pass a check; value(slot) is what a slot is bound to.
template <typename Values>
__device__ bool passes(const i64 *check, const Graph &graph, const Values &value) {
  switch (check[0]) {
    case ABOVE:
      return value(check[1]) > value(check[2]);
    case UNEQUAL:
      return value(check[1]) != value(check[2]);
    case NOT_BOTH_EQUAL:
      return value(check[1]) != value(check[2]) || value(check[3]) != value(check[4]);
    case EDGES_DIFFER:
      return edges_differ(check, value);
    case CANDIDATE_BIT:
      return bit((const unsigned char *)check[2], value(check[1]));
    case SIGNATURE:
      return (__ldg((const u32 *)check[2] + value(check[1])) & (u32)check[3]) == (u32)check[3];
    case EDGE:
    case NO_EDGE:
      return joined(graph.partitions[check[1]], value(check[2]), value(check[3])) == (check[0] == EDGE);
    case EDGE_COUNT:
      return joined_by(check, graph, value);
    default:
      return false;  // NEVER
  }
}

// Nested loops over sparse vectors, one kernel per shape of program (gpu/nested.py writes it).

#include "teams.cuh"
#include "plan.cuh"

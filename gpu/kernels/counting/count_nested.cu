// Nested loops over sparse vectors, one kernel per shape of program (gpu/counting/code_generation.py writes it).

#include "teams.cuh"
#include "plan.cuh"

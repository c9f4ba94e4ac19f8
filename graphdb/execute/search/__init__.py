"""The depth-first search on the CPU: Numba kernels that run a physical plan from its tables."""

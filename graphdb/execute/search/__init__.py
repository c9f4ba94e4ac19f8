"""The depth-first search on the CPU: kernels that run a physical plan from its tables."""

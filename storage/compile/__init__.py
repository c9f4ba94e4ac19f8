"""Compiling kernels with Numba, and calling their machine code without it."""

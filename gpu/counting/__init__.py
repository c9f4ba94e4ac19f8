"""Counting plans on a device: weights, loops, trees and cliques, as kernels written per plan."""

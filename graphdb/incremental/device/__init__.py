"""Incremental matches on a device: GAMMA (Qiu et al., ICDE 2024) on one GPU.

The host stages a batch in its own lists, as ever: what several updates do to one edge is settled there, numbers are
given to new vertices, and candidate sets change.  The records of changed entries are what the device gets.

1. :mod:`.lists` merges them into copies of the lists in the device's memory, which stay there from batch to batch, and
   encodes the vertices again whose counters changed (``kernels/delta_lists.cu``; §IV-B, §V-C).
2. :mod:`.search` has a warp search each record by the delta plans, with stealing (``kernels/delta_search.cu``; §IV-C,
   §V-A).  Plans and orbits (§V-B) are the host's (:mod:`..program`).
3. :mod:`.engine` says which batches are worth it, and follows those that the host searched.
"""

"""Incremental matches on a device: GAMMA (Qiu et al., ICDE 2024) on one GPU.

1. A batch that is to be searched there is staged there alone, as its updates: each is expanded into the entries of the
   relations that take it, and sorted; the last update of an entry counts, and what changes nothing is left out.  The
   host follows when its lists are needed.  A batch that changes vertices is staged there, and its entries are copied.
2. :mod:`.lists` merges them into copies of the lists in the device's memory, which stay there from batch to batch, and
   encodes the vertices again whose counters changed (``delta_lists.cu``; §IV-B, §V-C).
3. :mod:`.search` has a warp search each changed entry by the delta plans, with stealing (``delta_search.cu``;
   §IV-C, §V-A).  Plans and orbits (§V-B) are the host's (:mod:`..program`).
4. :mod:`.engine` says which batches are worth it, and has whoever did not search a batch follow it.
"""

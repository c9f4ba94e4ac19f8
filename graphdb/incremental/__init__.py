"""Incremental matches: which matches of a pattern a batch of changed edges adds and takes away.

The story of one batch, as in GAMMA (Qiu et al., "GPU-Accelerated Batch-Dynamic Subgraph Matching", ICDE 2024, §IV):

1. :mod:`.relations` says which data edges a pattern edge can bind, by their label, direction and the candidates of both
   ends; :mod:`.lists` stores them as sorted neighbour lists that take changes in place.
2. *Staging* (:mod:`.kernels.list_kernels`, :mod:`.kernels.batch_kernels`) puts a batch into the lists.  Until the batch
   is committed or rolled back, every entry has two bits: it is in the old version of the graph, it is in the new one.
   What a batch inserts and deletes again so cancels out, and both versions are read in one list.
3. The counters that pattern vertices need are compared when they change, and only then is a vertex encoded again in the
   *candidate table*, one bit for each pattern vertex (§IV-B).
4. For every pattern edge there is a *delta plan* (:mod:`.delta_plan`), but one for those that automorphisms map to each
   other (:mod:`.orbits`, §V-B): it binds the edge to every changed data edge, then one vertex after the other, in an
   order of its own, by depth-first search (:mod:`.kernels.search_kernels`, §IV-C).  The other pattern edges bind edges
   that are in both versions, and changed ones that come after the first: so every match is found once, at the least of
   its changed edges, in the new version where it is gained, in the old one where it is lost.

Vertices whose candidates change (:mod:`.vertices`) gain or lose the entries of their edges: nothing else is different.
Several threads share a large batch (:mod:`.searches`).  INDUCED matches are chosen from what such searches find
(:mod:`.induced`).

Batches that would take long are searched on a device, where there is one (:mod:`.device`).

:mod:`.matcher` is what others call.
"""

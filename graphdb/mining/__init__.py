"""Mining: which patterns a graph has, and how often, without anybody naming the patterns first.

Three primitives build everything else (GAMMA, Hu et al., "Scaling GPU-based graph pattern mining", §4):

1. *Extension* (:mod:`.primitives.extension`) makes every embedding one vertex or one edge larger.  Embeddings stand in
   an :class:`~graphdb.mining.primitives.table.EmbeddingTable`, a column for each vertex or edge, in which rows share
   their prefixes.
2. *Aggregation* (:mod:`.primitives.aggregation`) maps each embedding to its pattern, by the pattern's canonical label
   (:mod:`.primitives.canonical`), and counts: embeddings, and the minimum image support.
3. *Filtering* (:mod:`.primitives.table`) drops rows, and what only they had as prefix.

What statements offer is built on these where that is fast, and elsewhere on counting without enumeration:
:mod:`.cliques` on the oriented graph, :mod:`.motifs` from counts of patterns by linear relations, :mod:`.frequent`
level by level.  All of them read a :class:`~graphdb.mining.graph.MiningGraph`, and take their threads, memory and
deadline from a :class:`~graphdb.mining.limits.Limits`.
"""

from graphdb.mining.graph import MiningGraph
from graphdb.mining.limits import Limits
from graphdb.mining.patterns import Pattern
from graphdb.mining.primitives.aggregation import PatternTable, aggregation
from graphdb.mining.primitives.extension import edge_extension, vertex_extension
from graphdb.mining.primitives.table import EmbeddingTable, filtering

__all__ = [
    "EmbeddingTable",
    "Limits",
    "MiningGraph",
    "Pattern",
    "PatternTable",
    "aggregation",
    "edge_extension",
    "filtering",
    "vertex_extension",
]

"""How the language is spelt: its keywords, and the regular expressions of quotes and IRIs that all readers share.

Nothing here imports Lark, so completion, highlighting and the cutting of scripts start at once.
"""

from __future__ import annotations

from collections.abc import Mapping

KEYWORDS = frozenset(
    """ACYCLIC ALL AMONG AND ANY AS ASC ASCENDING BASE BY CALL CASE CLIQUES COLUMNS CONTAINS CONTINUOUS COST COUNTING
    CREATE DELETE DESC DESCENDING DETACH DIFFERENT DIRECTED DISTINCT DROP EDGES ELEMENTS ELSE END ENDS ERROR EXISTS
    EXPLAIN FALSE FIRST FOREACH FORMAT FREQUENT GROUPS IF IN INDUCED IS LAST LIMIT LOAD MATCH MATCHES MAXIMAL MERGE
    MINE MOTIFS NODES NOT NULL NULLS OFFSET ON OPTIONAL OR ORDER OVER PATH PATHS PATTERNS PREFIX PROFILE QUERIES
    QUERY RELATIONSHIPS REMOVE REPEATABLE REPLACE RETURN SET SHORTEST SHOW SIMPLE SKIP STARTS STOP SUPPORT TABLE TEMP
    TEMPORARY THEN TRAIL TRUE UNDIRECTED UNION UNWIND VIEW WALK WHEN WHERE WITH XOR YIELD""".split()
)
"""The keywords of the pattern language, for completion and highlighting."""

RESERVED = frozenset(
    """AND AS CALL CASE CREATE DELETE DETACH DISTINCT ELSE END FALSE IN MATCH MERGE NOT NULL OPTIONAL OR REMOVE RETURN
    SET THEN TRUE UNION UNWIND WHEN WHERE WITH XOR""".split()
)
"""Words that cannot name a variable; as label, edge label, property key and alias they can."""

IRI = r"<[A-Za-z][A-Za-z0-9+.\-]*:[^<>\"{}|\\^`\x00-\x20]*>"
STRING = r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\""
QUOTED = r"`(?:[^`]|``)*`"
TRIVIA = r"\s+|//[^\n]*|/\*.*?\*/"

SAME_AS: Mapping[str, str] = {
    "cardinality": "size",
    "collect_list": "collect",
    "duration_between": "duration.between",
    "element_id": "elementId",
    "local_datetime": "localdatetime",
    "local_time": "localtime",
    "path_length": "length",
    "percentile_cont": "percentileCont",
    "percentile_disc": "percentileDisc",
    "stddev_pop": "stDevP",
    "stddev_samp": "stDev",
    "zoned_datetime": "datetime",
    "zoned_time": "time",
}
"""GQL's names, in lower case, of functions that openCypher calls otherwise."""

ARITIES: Mapping[str, tuple[int, int]] = {
    "all_different": (2, 99),
    "mod": (2, 2),
    "nullif": (2, 2),
    "power": (2, 2),
    "same": (2, 99),
}
"""Calls that are written out as other expressions (:mod:`graphdb.grammar.sugar`), by their names in lower case: how
many arguments they take at least and at most."""

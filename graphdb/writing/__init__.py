"""Writing by sets: CREATE, MERGE, SET, REMOVE and DELETE as SQL over the rows that the clauses before them made.

A statement is cut into stages (:mod:`.stages`): clauses that read, and one that writes.  What reads is lowered and run
as any query (:mod:`graphdb.relational`), over the graph as the stages before have left it; its rows, with the values
that the writing clause needs, are kept as a temporary table (:mod:`.kept`).  The writing clause (:mod:`.create`,
:mod:`.merge`, :mod:`.change`, :mod:`.delete`) makes relations of what comes and goes out of it, which
:class:`~graphdb.storage.updates.apply.Update` applies.  Python never sees a row.

What cannot go this way raises :class:`~graphdb.common.errors.NotSupportedError`, and is interpreted as a whole
(:mod:`graphdb.interpret.write`): EXPLAIN says which way a statement goes, and why.
"""

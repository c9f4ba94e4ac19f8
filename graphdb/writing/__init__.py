"""Writing: CREATE, MERGE, SET, REMOVE, DELETE and FOREACH over the rows that the clauses before them made.

A statement is cut into stages (:mod:`.stages`): clauses that read, and one that writes.  What reads is lowered and run
as any query (:mod:`graphdb.relational`), over the graph as the stages before have left it (:mod:`.reading`); its rows
are Python values where they are few, else a temporary table (:mod:`.rows`, :mod:`.materialized`).  The writing clause
is applied in one of two ways, which is decided when its rows are there and before anything of it is written
(:mod:`.run`):

- by sets (:mod:`.by_set.create`, :mod:`.by_set.merge`, :mod:`.by_set.change`, :mod:`.by_set.delete`): SQL makes
  relations of what comes and goes, with the values that the clause needs as columns of the rows;
- row by row (:mod:`.by_row.row_writer`): where there are few rows, and where sets cannot do it.  What was written waits
  (:mod:`.by_row.pending`) until something is read again.

Both change the file through :class:`~graphdb.storage.updates.apply.Update`, within one transaction.
"""

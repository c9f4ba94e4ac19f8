"""Continuous queries: answers that stand in the file, brought up to date with every batch of changes.

The story of one batch, which is a statement that writes, a load, or a transaction between BEGIN and COMMIT:

1. :mod:`graphdb.relational.session.observed` notes which triples it changes, while it changes them.
2. Before it is committed, :mod:`.maintenance` asks each continuous query of the file (:mod:`.definitions`) for the rows
   that its answer gains and loses: by delta plans (:mod:`.matches.delta`, :mod:`.matches.matching`, over
   :mod:`graphdb.incremental`) where its rows are those of patterns, as :mod:`.forms` writes
   them, or what :mod:`.aggregates.groups` makes of these; by its answer after less its answer before otherwise.
3. :mod:`.rows.answer_writer` writes them, in the same transaction, to the query's tables (:mod:`.answers`): its answer,
   and its changes with the number of the batch.  So a crash loses neither, and a rollback leaves neither.
4. :mod:`.watch` reads the table of changes for those who follow them, after the commit.
"""

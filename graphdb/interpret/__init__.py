"""The interpreter: every clause and expression of the language, over rows of Python values.

What SQL can type before it runs never comes here (see :mod:`graphdb.relational`).  The rest does: maps, lists of any
values, paths, temporal values, and writing of one row, or of what SQL does not hold (see :mod:`graphdb.writing`).
Patterns are still matched by plans and executors; what follows is evaluated row by row, and EXPLAIN says so.
"""

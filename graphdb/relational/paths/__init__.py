"""Pattern queries with paths of variable length, as steps of a plan: no row goes through Python.

``MATCH … RETURN …`` goes one of two ways.  Paths of bounded length are unrolled into plain patterns
(:mod:`graphdb.relational.paths.unrolled`), each planned, counted and run as any pattern.  A path with a selector is a
step of its own (:mod:`graphdb.relational.paths.selected`): what is around it is matched by a plan first, and DuckDB
joins the two.  Either way the rows have columns for paths beside those of vertices, and SQL goes on from them.  What
is more than that is one step of a program among others (:mod:`graphdb.relational.lowering.lower`).
"""

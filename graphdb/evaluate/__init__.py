"""The evaluator: expressions and paths over Python values, for what SQL does not express.

Queries run as matches and SQL (:mod:`graphdb.relational`).  Where an expression yields what SQL has no type for, or
needs a function that it lacks, its value is computed here, once for each distinct input; where no set-based search
finds a path, paths are searched for one by one; and clauses that write few rows write them one by one
(:mod:`graphdb.writing`).
"""

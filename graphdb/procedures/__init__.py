"""Procedures: Python functions with a typed signature, whose rows a query joins by ``CALL … YIELD``.

:mod:`.types` are the types of a signature, :mod:`.signature` reads one, :mod:`.answers` turns what a function returns
into columns of those types, :mod:`.registry` holds the procedures of a database and calls them, and :mod:`.catalog` are
those that every database has.
"""

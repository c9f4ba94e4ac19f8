"""How the compiler to SQL calls what compiles a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from graphdb.grammar import syntax as ast
from graphdb.sql.compiler import Compiler
from graphdb.sql.value import SqlValue

Compile = Callable[[Compiler, ast.FunctionCall], SqlValue]
"""How a function compiles: its call, by the compiler of what is around it."""
Forms = Mapping[str, Compile]
"""How functions compile, by their signatures' keys (:mod:`graphdb.functions.table`)."""

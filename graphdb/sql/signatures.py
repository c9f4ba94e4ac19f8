"""Functions of the language as the compiler to SQL calls them: how each compiles, and how many arguments it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from graphdb.common.errors import BindError
from graphdb.grammar import syntax as ast
from graphdb.sql.compiler import Compiler
from graphdb.sql.value import SqlValue

Compile = Callable[[Compiler, ast.FunctionCall], SqlValue]
"""How a function compiles: its call, by the compiler of what is around it."""
Functions = Mapping[str, tuple[Compile, int, int]]
"""Functions by their names: how each compiles, and how many arguments it takes at least and at most."""


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function that takes ``least`` to ``most`` arguments."""

    compile: Compile
    least: int = 1
    most: int = 1


def check_arguments(compiler: Compiler, node: ast.FunctionCall, least: int, most: int) -> None:
    """Raise :class:`BindError` if a call has the wrong number of arguments."""
    found = len(node.arguments)
    if not least <= found <= most:
        wanted = str(least) if least == most else f"{least} to {most}" if most < 99 else f"at least {least}"
        raise BindError(
            f"{node.name} takes {wanted} argument{'' if wanted == '1' else 's'}, found {found}",
            text=compiler.text,
            position=node.span.start,
        )

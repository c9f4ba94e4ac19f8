"""The expressions of a statement that runs again and again, compiled once: a run only hands over other arguments.

A small statement that writes evaluates each of its expressions once or twice, and to compile them took longer than
that.  What compiling asks of the arguments or of the data is anew with each run, so that only such expressions are
cached as ask neither for anything before they are evaluated (:func:`lasts`).
"""

from __future__ import annotations

from graphdb.common.caches import ByIdentity
from graphdb.evaluate.builtins import scalar
from graphdb.evaluate.context import Context
from graphdb.evaluate.evaluator import Evaluate
from graphdb.evaluate.expressions import Compiler
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk

_PLAIN = (
    ast.Literal,
    ast.Parameter,
    ast.Variable,
    ast.Property,
    ast.Subscript,
    ast.ListLiteral,
    ast.MapLiteral,
    ast.ListComprehension,
    ast.Case,
    ast.IsNull,
    ast.Boolean,
    ast.Unary,
    ast.Binary,
)
"""Expressions that ask for nothing but when they are evaluated."""

_MOST = 500
"""Pieces of syntax of an expression that is cached, at most."""


class CompiledValues:
    """Functions from rows to values, for one context: those of a run, and those that last."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._compiler = Compiler(context)
        self._of_run: dict[int, tuple[ast.Expression, Evaluate]] = {}
        self._lasting: dict[int, tuple[ast.Expression, Evaluate, tuple[ast.Parameter, ...]]] = {}

    def value(self, node: ast.Expression) -> Evaluate:
        """Return the function from a row to an expression's value.

        Raises
        ------
        ParameterError
            An argument that it names cannot be a value.
        """
        found = self._of_run.get(id(node))
        if found is None:
            found = self._of_run[id(node)] = node, self._compiled(node)
        return found[1]

    def reference(self, node: ast.Expression) -> Evaluate:
        """Return the function from a row to what an expression refers to; see :meth:`.Compiler.reference`."""
        return self._compiler.reference(node)

    def _compiled(self, node: ast.Expression) -> Evaluate:
        lasting = self._lasting.get(id(node))
        if lasting is not None:
            for parameter in lasting[2]:
                self.context.argument(parameter)
            return lasting[1]
        made = self._compiler.compile(node)
        if _LASTS.get_or_make(node, lambda: lasts(node)):
            parameters = tuple(part for part in walk(node) if isinstance(part, ast.Parameter))
            self._lasting[id(node)] = node, made, parameters
        return made

    def rest(self) -> None:
        """Let go of what belongs to the run that has ended."""
        self._of_run.clear()
        self.context.rest()


_LASTS: ByIdentity[bool] = ByIdentity(1024)
"""What :func:`lasts` says of expressions."""


def lasts(node: ast.Expression) -> bool:
    """Whether an expression compiles to the same whatever the arguments and the data are."""
    pieces = walk(node)
    return len(pieces) <= _MOST and all(_lasts(part) for part in pieces if isinstance(part, ast.Expression))


def _lasts(part: ast.Expression) -> bool:
    match part:
        case ast.FunctionCall(name, arguments):
            called = name.lower()
            faceted = called in scalar.FACETS or not arguments
            return called in scalar.FUNCTIONS and called not in scalar.OF_TERMS and not faceted
        case ast.Comparison(operands):  # points in time are compared by how they are written
            return not any(isinstance(each, ast.FunctionCall | ast.Parameter | ast.Binary) for each in operands)
    return isinstance(part, _PLAIN)

"""Standalone calls: the arguments and columns that a statement leaves to the procedure's signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphdb.common.errors import BindError, ParameterError
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import mapped
from graphdb.procedures.registry import Procedures


def expand_call(
    query: ast.Composite, procedures: Procedures, text: str, arguments: Mapping[str, object]
) -> ast.Composite:
    """Return a query whose call, where it is all there is, names its arguments and what it yields.

    Raises
    ------
    BindError
        There is no such procedure.
    ParameterError
        A parameter that stands for an argument has no value.
    """
    call = query.called
    if call is None or (call.arguments is not None and (call.yields is not None or len(query.parts[0]) > 1)):
        return query
    signature = procedures.find(call, text).signature
    given, items = call.arguments, call.yields
    if given is None:
        parameters = signature.parameters
        for field in parameters[: signature.required]:
            if field.name not in arguments:
                raise ParameterError.missing(field.name, arguments, text, call.named.start)
        count = next((i for i, field in enumerate(parameters) if field.name not in arguments), len(parameters))
        given = tuple(ast.Parameter(field.name, call.named) for field in parameters[:count])
    if items is not None:
        named: ast.Composite = _with(query, call, replace(call, arguments=given))
        return named
    items = tuple(ast.YieldItem(c.name, ast.Variable(c.name, call.named), call.named) for c in signature.columns)
    if call.star and not items:
        raise BindError(f"{signature.name} yields nothing", text=text, position=call.named.start)
    returned = tuple(ast.ReturnItem(item.variable, item.column, item.column, call.span) for item in items)
    clauses: list[ast.ClauseNode] = [replace(call, arguments=given, yields=items or None, star=False)]
    if items:
        clauses.append(ast.ReturnClause(returned, span=call.span))
    return replace(query, parts=(tuple(clauses),))


def parameters_of(statements: Sequence[ast.Statement], procedures: Procedures) -> set[str]:
    """Return the names of parameters that calls without brackets take."""
    found: set[str] = set()
    for statement in statements:
        query = statement.query if isinstance(statement, (ast.Explain, ast.CreateTable)) else statement
        call = query.called if isinstance(query, ast.Composite) else None
        if call is not None and call.arguments is None:
            known = [each.signature for each in procedures if each.signature.name == call.name]
            found.update(field.name for signature in known for field in signature.parameters)
    return found


def _with(node: Any, call: ast.ProcedureClause, other: ast.ProcedureClause) -> Any:
    """Return a piece of syntax with another call in the place of one."""
    return other if node is call else mapped(node, lambda part: _with(part, call, other))

"""Compiles arithmetic and the functions of numbers.

Integers have 64 bits and are divided without a rest; with a float everything is a float, and with a decimal an exact
one while its scale is small.  Of values whose types only the rows tell, integers make integers.
"""

from __future__ import annotations

from collections.abc import Callable

from graphdb.common.duckdb.out_of_range import OutOfRange
from graphdb.common.errors import NotSupportedError, TypeMismatchError, with_place
from graphdb.common.values.types import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    MEMBERS,
    NUMERIC,
    STRING,
    VALUE,
    WHOLE_AND_REAL,
    Base,
    Type,
)
from graphdb.grammar import syntax as ast
from graphdb.sql.compiler import Compile, Compiler, Forms
from graphdb.sql.equivalence import all_once, once
from graphdb.sql.types import text
from graphdb.sql.types.magnitudes import LARGEST, magnitude
from graphdb.sql.value import CAN_FAIL, NO_EFFECTS, VOLATILE, Effects, SqlValue, as_union, member, number


def arithmetic(c: Compiler, left: SqlValue, right: SqlValue, node: ast.Binary) -> SqlValue:
    """Return the sum, difference, product, quotient, rest or power of what must be numbers."""
    left, right = _operand(c, left, node), _operand(c, right, node)
    if Base.VALUE not in (left.type.base, right.type.base):
        return _computed(c, left, right, node)
    return _power(c, left, right, node) if node.operator == "^" else _mixed(c, left, right, node)


def signed(c: Compiler, value: SqlValue, node: ast.Unary) -> SqlValue:
    """Return what must be a number with a sign before it."""
    value = _operand(c, value, node)
    if value.type.base is Base.VALUE:  # without a sign for zeros
        return _mixed(c, SqlValue("0", INTEGER), value, ast.Binary("-", ast.Literal(0), node.operand, node.span))
    turned = f"({node.operator}({value.sql}))"
    # The least integer has no opposite, which a wider type of DuckDB's would have.
    turned = f"CAST({turned} AS BIGINT)" if value.type is INTEGER else turned
    return SqlValue(turned, value.type, effects=_overflow(c, value.type, node))


def _overflow(c: Compiler, type: Type, node: ast.Expression) -> Effects:
    """Return the effects of computing an expression of a type: one that is out of its range fails."""
    noted = c.rows.noted
    ventured = not noted.careful and noted.told is None
    if ventured or type.base is Base.FLOAT or (type is INTEGER and magnitude(node) <= LARGEST):
        return NO_EFFECTS
    return CAN_FAIL


def _operand(c: Compiler, value: SqlValue, node: ast.Expression) -> SqlValue:
    if value.type.base in NUMERIC or value.type.base in (Base.NULL, Base.VALUE):
        return value
    if value.type.base is Base.TERM:
        return _operand(c, c.value_of(value), node)
    raise c.mismatch(f"expected a number, found {value.type}", node)


def _computed(c: Compiler, left: SqlValue, right: SqlValue, node: ast.Binary) -> SqlValue:
    """Return the arithmetic of two numbers of known types."""
    a, b, op = left.type.base, right.type.base, node.operator
    if op == "^":
        return SqlValue(f"power(CAST({left.sql} AS DOUBLE), CAST({right.sql} AS DOUBLE))", FLOAT)
    if Base.FLOAT in (a, b) or (op == "/" and Base.DECIMAL in (a, b)):
        return SqlValue(f"(CAST({left.sql} AS DOUBLE) {op} CAST({right.sql} AS DOUBLE))", FLOAT)
    if a is b is Base.INTEGER:
        computed = f"({left.sql} {'//' if op == '/' else op} {right.sql})"
        if op in "/%" and not (isinstance(node.right, ast.Literal) and node.right.value):
            error = c.rows.error(with_place("division by zero", node.span.start))
            least = f"WHEN {right.sql} = -1 THEN {left.sql} * 0 " if op == "%" else ""  # of -2^63, too
            zero = (
                f"{right.sql} = 0"
                if isinstance(node.left, ast.Literal)
                else f"{right.sql} = 0 AND {left.sql} IS NOT NULL"
            )
            computed = f"CASE WHEN {zero} THEN {error} {least}ELSE {computed} END"
        told = c.rows.noted.told
        if told is not None and op in "+-*" and magnitude(node) > LARGEST:
            return _told(c, told, left, right, op)
        smaller = op == "%" or (op == "/" and isinstance(node.right, ast.Literal) and node.right.value != -1)
        return SqlValue(computed, INTEGER, effects=NO_EFFECTS if smaller else _overflow(c, INTEGER, node))
    scales = [v.type.scale if v.type.base is Base.DECIMAL else 0 for v in (left, right)]
    scale = sum(scales) if op == "*" else max(scales)
    if scale > 30:
        return SqlValue(f"(CAST({left.sql} AS DOUBLE) {op} CAST({right.sql} AS DOUBLE))", FLOAT)
    sql, type = f"CAST(({left.sql} {op} {right.sql}) AS DECIMAL(38, {scale}))", Type(Base.DECIMAL, scale=scale)
    return SqlValue(sql, type, effects=_overflow(c, type, node))


def _told(c: Compiler, told: OutOfRange, left: SqlValue, right: SqlValue, operator: str) -> SqlValue:
    """Return a sum, difference or product of integers of which somebody is told if it is out of range."""

    def made(a: str, b: str) -> str:
        return told.told([a, b], f"{a} {operator} {b}")

    if left.atomic and right.atomic:
        return SqlValue(f"({made(left.sql, right.sql)})", INTEGER)
    pair = c.fresh()
    values = f"[struct_pack(a := {left.sql}, b := {right.sql})]"
    return SqlValue(f"list_transform({values}, lambda {pair}: {made(f'{pair}.a', f'{pair}.b')})[1]", INTEGER)


def _mixed(c: Compiler, left: SqlValue, right: SqlValue, node: ast.Binary) -> SqlValue:
    """Return the arithmetic of values whose types the rows tell: of integers an integer, of texts a text.

    Where decimals are among them Python computes it: those of a union have 18 digits after the point, and their product
    has no type.
    """
    bases = [v.bases or frozenset(MEMBERS) if v.type.base is Base.VALUE else {v.type.base} for v in (left, right)]
    if any(v.type.base is Base.DECIMAL or (v.bases is not None and Base.DECIMAL in v.bases) for v in (left, right)):
        raise NotSupportedError("decimals among other values are not supported in SQL")
    numbers = all(each <= WHOLE_AND_REAL for each in bases)
    if numbers and {Base.FLOAT} in bases:
        one, other = (SqlValue(number(v), FLOAT) if v.type.base is Base.VALUE else v for v in (left, right))
        return _computed(c, one, other, node)

    def made(left: SqlValue, right: SqlValue) -> str:
        return _mixed_by_row(c, (left, right), node, numbers)

    found = all_once(c, (left, right), made)
    return SqlValue(found, VALUE, bases=WHOLE_AND_REAL if numbers else None)


def _power(c: Compiler, left: SqlValue, right: SqlValue, node: ast.Binary) -> SqlValue:
    """Return a power of values whose types the rows tell, which is a float whatever numbers they are."""
    both = [value.bases if value.type.base is Base.VALUE else {value.type.base} for value in (left, right)]

    def made(left: SqlValue, right: SqlValue) -> str:
        one, other = (SqlValue(number(v), FLOAT) if v.type.base is Base.VALUE else v for v in (left, right))
        found = _computed(c, one, other, node).sql
        if all(each is not None and each <= NUMERIC for each in both):
            return found
        refused = c.rows.error(with_place(f"{node.operator} needs numbers", node.span.start, TypeMismatchError))
        absent, none = (f"{a.sql} IS NULL OR {b.sql} IS NULL" for a, b in ((left, right), (one, other)))
        return f"CASE WHEN {absent} THEN NULL WHEN {none} THEN {refused} ELSE {found} END"

    return SqlValue(all_once(c, (left, right), made), FLOAT)


def _mixed_by_row(c: Compiler, both: tuple[SqlValue, SqlValue], node: ast.Binary, numbers: bool) -> str:
    """Return SQL of the arithmetic of values whose types the rows tell, of ``numbers`` alone or of any types."""
    whole = [SqlValue(member(value, Base.INTEGER), INTEGER) for value in both]
    real = [SqlValue(number(v) if v.type.base is Base.VALUE else f"CAST({v.sql} AS DOUBLE)", FLOAT) for v in both]
    cases = [] if numbers else [f"WHEN {value.sql} IS NULL THEN NULL" for value in both]
    for a, b in (whole, real):
        both_known = f"{a.sql} IS NOT NULL AND {b.sql} IS NOT NULL"
        cases.append(f"WHEN {both_known} THEN {as_union(_computed(c, a, b, node)).sql}")
    if numbers:
        return f"CASE {' '.join(cases)} END"
    if node.operator == "+":
        texts = [f"{value.sql} IS NOT NULL" for value in (SqlValue(member(v, Base.STRING), STRING) for v in both)]
        cases.append(f"WHEN {' OR '.join(texts)} THEN {as_union(text.joined(c, both[0], both[1], node)).sql}")
    refused = with_place(f"{node.operator} needs numbers", node.span.start, TypeMismatchError)
    return f"CASE {' '.join(cases)} ELSE {c.rows.error(refused)} END"


# --- functions -------------------------------------------------------------------------------------------------


def numeric(c: Compiler, node: ast.FunctionCall, argument: ast.Expression) -> SqlValue:
    """Compile an argument that must be a single number or null."""
    value = c.value_of(c.one(argument))
    if value.type.base in NUMERIC:
        return value
    if value.type.base is Base.NULL:
        return SqlValue("CAST(NULL AS BIGINT)", INTEGER)
    if value.type.base is Base.VALUE:
        return SqlValue(
            _named(c, value, argument, lambda v: text.or_refused(c, node, number(v), v, "a number", argument)), FLOAT
        )
    raise c.mismatch(f"{node.name} needs a number, found {value.type}", argument)


def _float(template: str) -> Compile:
    def compile(c: Compiler, node: ast.FunctionCall) -> SqlValue:
        value = numeric(c, node, node.arguments[0])
        return SqlValue(template.format(f"CAST({value.sql} AS DOUBLE)"), FLOAT)

    return compile


def _logarithm(function: str) -> Compile:
    nan, least = "CAST('nan' AS DOUBLE)", "CAST('-infinity' AS DOUBLE)"
    return _float(f"CASE WHEN {{0}} = 0 THEN {least} WHEN {{0}} < 0 THEN {nan} ELSE {function}({{0}}) END")


def _same(template: str) -> Compile:
    """Return a function that yields a number of the type it is given."""

    def compile(c: Compiler, node: ast.FunctionCall) -> SqlValue:
        (argument,) = node.arguments
        mixed = c.value_of(c.one(argument))
        if mixed.type.base is not Base.VALUE:
            value = numeric(c, node, argument)
            return SqlValue(template.format(value.sql), value.type, effects=_overflow(c, value.type, argument))

        def made(mixed: SqlValue) -> str:
            whole = member(mixed, Base.INTEGER)
            exact = as_union(SqlValue(template.format(whole), INTEGER))
            found = text.or_refused(c, node, number(mixed), mixed, "a number", argument)
            real = as_union(SqlValue(template.format(found), FLOAT))
            return f"CASE WHEN {whole} IS NOT NULL THEN {exact.sql} ELSE {real.sql} END"

        c.rows.note(_overflow(c, INTEGER, argument))
        return SqlValue(_named(c, mixed, argument, made), VALUE, bases=WHOLE_AND_REAL)

    return compile


def _named(c: Compiler, value: SqlValue, node: ast.Expression, make: Callable[[SqlValue], str]) -> str:
    """Return SQL that names a value several times: calls in calls would be longer by a factor each."""
    return make(value) if isinstance(node, (ast.Property, ast.Variable)) else once(c, value, make)


def _sign(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    return SqlValue(f"CAST(sign({numeric(c, node, node.arguments[0]).sql}) AS BIGINT)", INTEGER)


def _round(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    value = numeric(c, node, node.arguments[0])
    digits = numeric(c, node, node.arguments[1]).sql if len(node.arguments) == 2 else "0"
    # openCypher rounds halves up; DuckDB would round them away from zero.
    shift = f"power(10.0, {digits})"
    return SqlValue(f"(floor(CAST({value.sql} AS DOUBLE) * {shift} + 0.5) / {shift})", FLOAT)


def _is_nan(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    return SqlValue(f"isnan(CAST({numeric(c, node, node.arguments[0]).sql} AS DOUBLE))", BOOLEAN)


def _atan2(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    y, x = (numeric(c, node, argument).sql for argument in node.arguments)
    return SqlValue(f"atan2(CAST({y} AS DOUBLE), CAST({x} AS DOUBLE))", FLOAT)


FORMS: Forms = {
    "abs": _same("abs({0})"),
    "sign": _sign,
    "ceil": _float("ceil({0})"),
    "floor": _float("floor({0})"),
    "round": _round,
    "sqrt": _float("CASE WHEN {0} < 0 THEN CAST('nan' AS DOUBLE) ELSE sqrt({0}) END"),
    "exp": _float("exp({0})"),
    "log": _logarithm("ln"),
    "log10": _logarithm("log10"),
    "cot": _float("(1 / tan({0}))"),
    "sin": _float("sin({0})"),
    "cos": _float("cos({0})"),
    "tan": _float("tan({0})"),
    "cosh": _float("cosh({0})"),
    "sinh": _float("sinh({0})"),
    "tanh": _float("tanh({0})"),
    "coth": _float("CASE WHEN {0} = 0 THEN CAST('nan' AS DOUBLE) ELSE 1 / tanh({0}) END"),
    "asin": _float("CASE WHEN abs({0}) > 1 THEN CAST('nan' AS DOUBLE) ELSE asin({0}) END"),
    "acos": _float("CASE WHEN abs({0}) > 1 THEN CAST('nan' AS DOUBLE) ELSE acos({0}) END"),
    "atan": _float("atan({0})"),
    "degrees": _float("degrees({0})"),
    "radians": _float("radians({0})"),
    "haversin": _float("power(sin({0} / 2), 2)"),
    "isnan": _is_nan,
    "atan2": _atan2,
    "rand": lambda c, node: SqlValue("random()", FLOAT, effects=VOLATILE),
    "pi": lambda c, node: SqlValue("pi()", FLOAT),
    "e": lambda c, node: SqlValue("exp(1.0)", FLOAT),
}

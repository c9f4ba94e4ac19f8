"""The functions of the language: each compiles to SQL, with the type of what it yields.

:data:`FUNCTIONS` holds the scalar ones, :data:`AGGREGATES` the aggregates; names are looked up in lower case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphdb import durations, lists, maps, times
from graphdb.computed import compute
from graphdb.errors import BindError, NotSupportedError, TypeMismatchError, nearest, with_place
from graphdb.grammar import syntax as ast
from graphdb.typed import Typed, as_union, member, number
from graphdb.values import (
    BOOLEAN,
    CODE_BITS,
    DURATION,
    EDGE,
    FLOAT,
    INTEGER,
    LABEL_OF,
    MEMBERS,
    NODE,
    NULL,
    NUMERIC,
    STRING,
    VALUE,
    Base,
    Type,
    edge_number_sql,
    list_of,
    sql_type,
)

if TYPE_CHECKING:
    from graphdb.expressions import Compiler

Compile = Callable[["Compiler", ast.FunctionCall], Typed]


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


def unknown(text: str, node: ast.FunctionCall) -> BindError | NotSupportedError:
    """Return the error for a function that is not there."""
    name = node.name.lower()
    if name in _COMPUTED or name.partition(".")[0] in times.CLOCKS:
        return NotSupportedError(f"the function {node.name} is not supported yet", text=text, position=node.span.start)
    near = nearest(name, [*FUNCTIONS, *AGGREGATES])
    hint = f"did you mean {near[0]}()?" if near else None
    return BindError(f"unknown function '{node.name}'", text=text, position=node.span.start, hint=hint)


# --- strings and numbers ---------------------------------------------------------------------------------------


def _string(template: str, result: Type = STRING, arguments: tuple[Type, ...] = (STRING,)) -> Compile:
    """Return a function over strings (and numbers) that fills ``template`` with its arguments' SQL."""

    def compile(c: Compiler, node: ast.FunctionCall) -> Typed:
        parts = []
        for wanted, argument in zip(arguments, node.arguments, strict=False):
            value = c.value_of(c.one(argument))
            if value.type.base is Base.VALUE and wanted is STRING:
                value = Typed(f"({value.sql}).string", STRING)
            fits = value.type.base is wanted.base or value.type.base is Base.NULL
            if not fits:
                raise c.mismatch(f"{node.name} needs {wanted}, found {value.type}", argument)
            sql = value.sql if value.type.base is not Base.NULL else f"CAST(NULL AS {sql_type(wanted)})"
            if wanted is INTEGER:
                told = c.rows.parameters.add(
                    with_place(f"{node.name} does not take a negative number", argument.span.start)
                )
                sql = f"CASE WHEN {sql} < 0 THEN error({told}) ELSE {sql} END"
            parts.append(sql)
        return Typed(template.format(*parts), result)

    return compile


def _float(template: str) -> Compile:
    def compile(c: Compiler, node: ast.FunctionCall) -> Typed:
        value = _numeric(c, node, node.arguments[0])
        return Typed(template.format(f"CAST({value.sql} AS DOUBLE)"), FLOAT)

    return compile


def _logarithm(function: str) -> Compile:
    nan, least = "CAST('nan' AS DOUBLE)", "CAST('-infinity' AS DOUBLE)"
    return _float(f"CASE WHEN {{0}} = 0 THEN {least} WHEN {{0}} < 0 THEN {nan} ELSE {function}({{0}}) END")


def _same(template: str) -> Compile:
    """Return a function that yields a number of the type it is given."""

    def compile(c: Compiler, node: ast.FunctionCall) -> Typed:
        mixed = c.value_of(c.one(node.arguments[0]))
        value = _numeric(c, node, node.arguments[0])
        real = Typed(template.format(value.sql), value.type)
        if mixed.type.base is not Base.VALUE:
            return real
        whole = member(mixed, Base.INTEGER)
        exact = as_union(Typed(template.format(whole), INTEGER))
        return Typed(f"CASE WHEN {whole} IS NOT NULL THEN {exact.sql} ELSE {as_union(real).sql} END", VALUE)

    return compile


def _sign(c: Compiler, node: ast.FunctionCall) -> Typed:
    return Typed(f"CAST(sign({_numeric(c, node, node.arguments[0]).sql}) AS BIGINT)", INTEGER)


def _substring(c: Compiler, node: ast.FunctionCall) -> Typed:
    template = "substring({0}, {1} + 1, {2})" if len(node.arguments) == 3 else "substring({0}, {1} + 1)"
    return _string(template, STRING, (STRING, INTEGER, INTEGER))(c, node)


def _reverse(c: Compiler, node: ast.FunctionCall) -> Typed:
    value = c.compile(node.arguments[0])
    if value.type.base is Base.LIST and not value.many:
        return Typed(f"list_reverse({value.sql})", value.type)
    return _string("reverse({0})")(c, node)


def _exists(c: Compiler, node: ast.FunctionCall) -> Typed:
    return Typed(f"({c.anything(node.arguments[0]).sql} IS NOT NULL)", BOOLEAN)


def _size(c: Compiler, node: ast.FunctionCall) -> Typed:
    value = c.compile(node.arguments[0])
    if value.type.base is Base.PATH and node.name.lower() == "length":
        return Typed(f"len(({value.sql}).codes)", INTEGER)
    if value.many and value.type.element is STRING:  # one value is that value, several are a list
        return Typed(f"CASE WHEN len({value.sql}) = 1 THEN length(({value.sql})[1]) ELSE len({value.sql}) END", INTEGER)
    if value.type.base is Base.LIST:
        return Typed(f"len({value.sql})", INTEGER)
    return _string("length({0})", INTEGER)(c, node)


def _round(c: Compiler, node: ast.FunctionCall) -> Typed:
    value = _numeric(c, node, node.arguments[0])
    digits = _numeric(c, node, node.arguments[1]).sql if len(node.arguments) == 2 else "0"
    # openCypher rounds halves up; DuckDB would round them away from zero.
    shift = f"power(10.0, {digits})"
    return Typed(f"(floor(CAST({value.sql} AS DOUBLE) * {shift} + 0.5) / {shift})", FLOAT)


_CONVERTED: Mapping[Type, frozenset[Base]] = {
    INTEGER: frozenset({Base.STRING} | NUMERIC),
    FLOAT: frozenset({Base.STRING} | NUMERIC),
    BOOLEAN: frozenset({Base.STRING, Base.BOOLEAN, Base.INTEGER}),
}
"""What each conversion takes."""


def _to(target: Type) -> Compile:
    """Return ``toInteger`` and its kin: null for text that says something else, an error for values that it refuses."""

    def compile(c: Compiler, node: ast.FunctionCall) -> Typed:
        value, argument = c.value_of(c.one(node.arguments[0])), node.arguments[0]
        if value.type.base is Base.VALUE:
            whens = []
            for base, (member, _) in MEMBERS.items():
                if base in _CONVERTED[target]:
                    item = f"union_extract({value.sql}, '{member}')"
                    whens.append(f"WHEN '{member}' THEN {_converted(item, base)}")
            refused = with_place(f"{node.name} does not take every value here", argument.span.start, TypeMismatchError)
            whens.append(f"ELSE error({c.rows.parameters.add(refused)})")
            chosen = f"CASE union_tag({value.sql}) {' '.join(whens)} END"
            return Typed(f"CASE WHEN {value.sql} IS NOT NULL THEN {chosen} END", target)
        if value.type.base is not Base.NULL and value.type.base not in _CONVERTED[target]:
            raise c.mismatch(f"{node.name} does not take {value.type}", argument)
        return Typed(_converted(value.sql, value.type.base), target)

    def _converted(sql: str, base: Base) -> str:
        if target is INTEGER and base is Base.STRING:  # as a float it would lose digits
            whole = f"regexp_full_match({sql}, '\\s*[+-]?[0-9]+\\s*')"
            rounded = f"TRY_CAST(trunc(TRY_CAST({sql} AS DOUBLE)) AS BIGINT)"
            return f"CASE WHEN {whole} THEN TRY_CAST({sql} AS BIGINT) ELSE {rounded} END"
        if target is INTEGER and base in (Base.FLOAT, Base.DECIMAL):
            return f"TRY_CAST(trunc({sql}) AS BIGINT)"
        if target is BOOLEAN and base is Base.STRING:
            return f"CASE lower(trim({sql})) WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END"
        return f"TRY_CAST({sql} AS {sql_type(target)})"

    return compile


def float_text(sql: str) -> str:
    """Return SQL for a float as text."""
    return (
        f"CASE WHEN isnan({sql}) THEN 'NaN' WHEN {sql} = CAST('inf' AS DOUBLE) THEN 'Infinity' "
        f"WHEN {sql} = CAST('-inf' AS DOUBLE) THEN '-Infinity' "
        f"ELSE replace(replace(replace(CAST({sql} AS VARCHAR), 'e+', 'E'), 'e-0', 'E-'), 'e', 'E') END"
    )


def _to_string(c: Compiler, node: ast.FunctionCall) -> Typed:
    return Typed(c.text_of(c.one(node.arguments[0]), node), STRING)


def _coalesce(c: Compiler, node: ast.FunctionCall) -> Typed:
    values = [c.value_of(c.one(argument)) for argument in node.arguments]
    types = {value.type for value in values if value.type.base is not Base.NULL}
    if not types:
        return Typed("NULL", NULL)
    if len(types) == 1:
        (only,) = types
        return Typed(f"coalesce({', '.join(value.sql for value in values)})", only)
    if not all(t.base in MEMBERS or t.base is Base.VALUE for t in types):
        raise NotSupportedError(
            "coalesce over vertices and values together is not supported yet",
            text=c.text,
            position=node.span.start,
        )
    return Typed(f"coalesce({', '.join(as_union(value).sql for value in values)})", VALUE)


# --- vertices, edges, terms ------------------------------------------------------------------------------------


def _id(c: Compiler, node: ast.FunctionCall) -> Typed:
    value = c.compile(node.arguments[0])
    if value.type.base is Base.EDGE:
        number = edge_number_sql(value.sql)
    elif value.type.base in (Base.NODE, Base.TERM):
        number = f"CAST({value.sql} AS BIGINT)"
    else:
        raise c.mismatch(f"{node.name} needs a vertex or an edge, found {value.type}", node.arguments[0])
    if node.name.lower() == "elementid":
        return Typed(f"CAST({number} AS VARCHAR)", STRING)
    return Typed(number, INTEGER)


def _iri(c: Compiler, node: ast.FunctionCall) -> Typed:
    """``iri(vertex)`` is its IRI, ``iri(edge)`` that of its label; ``iri('http://…')`` is the vertex."""
    argument = node.arguments[0]
    value = c.compile(argument)
    if value.type.base is Base.EDGE:
        return c.rows.iri(f"({value.sql}).label")
    if value.type.base in (Base.NODE, Base.TERM):
        return c.rows.iri(value.sql)
    if value.type.base is Base.STRING and not value.many:
        return Typed(f"(SELECT id FROM _graphdb.resource WHERE iri = {value.sql})", NODE, constant=True)
    raise c.mismatch(f"iri needs a vertex, an edge or the text of an IRI, found {value.type}", argument)


def _labels(c: Compiler, node: ast.FunctionCall) -> Typed:
    value = c.compile(node.arguments[0])
    if value.type.base not in (Base.NODE, Base.TERM):
        raise c.mismatch(f"labels needs a vertex, found {value.type}", node.arguments[0])
    return c.rows.labels(value.sql)


def _type(c: Compiler, node: ast.FunctionCall) -> Typed:
    return c.rows.written(f"({_edge(c, node).sql}).label")


def _predicate(c: Compiler, node: ast.FunctionCall) -> Typed:
    """Return an edge's label as the vertex that it is."""
    return Typed(f"({_edge(c, node).sql}).label", NODE)


def _end(field: str) -> Compile:
    def compile(c: Compiler, node: ast.FunctionCall) -> Typed:
        return Typed(f'({_edge(c, node).sql})."{field}"', NODE)

    return compile


def _edge(c: Compiler, node: ast.FunctionCall) -> Typed:
    value = c.compile(node.arguments[0])
    if value.type.base is not Base.EDGE:
        raise c.mismatch(f"{node.name} needs an edge, found {value.type}", node.arguments[0])
    return value


def _nodes(c: Compiler, node: ast.FunctionCall) -> Typed:
    return Typed(f"({_path(c, node).sql}).vertices", list_of(NODE))


def _relationships(c: Compiler, node: ast.FunctionCall) -> Typed:
    return edges_of(_path(c, node).sql)


def edges_of(path: str) -> Typed:
    """Return the list of a path's edges."""
    ends = f"(({path}).vertices)[i]", f"(({path}).vertices)[i + 1]"
    start, end = (f"CASE WHEN code & 1 = 0 THEN {a} ELSE {b} END" for a, b in (ends, ends[::-1]))
    label, ordinal = f"(code >> 1) & {LABEL_OF}::BIGINT", f"code >> {CODE_BITS}"
    edge = f'struct_pack(label := {label}, "start" := {start}, "end" := {end}, ordinal := {ordinal})'
    return Typed(f"list_transform(({path}).codes, lambda code, i: {edge})", list_of(EDGE))


def _path(c: Compiler, node: ast.FunctionCall) -> Typed:
    value = c.compile(node.arguments[0])
    if value.type.base is not Base.PATH:
        raise c.mismatch(f"{node.name} needs a path, found {value.type}", node.arguments[0])
    return value


def _is_nan(c: Compiler, node: ast.FunctionCall) -> Typed:
    return Typed(f"isnan(CAST({_numeric(c, node, node.arguments[0]).sql} AS DOUBLE))", BOOLEAN)


def _atan2(c: Compiler, node: ast.FunctionCall) -> Typed:
    y, x = (_numeric(c, node, argument).sql for argument in node.arguments)
    return Typed(f"atan2(CAST({y} AS DOUBLE), CAST({x} AS DOUBLE))", FLOAT)


def _facet(column: str) -> Compile:
    """Return ``lang`` or ``datatype``: what the literal behind a property or a literal vertex says of itself."""

    def compile(c: Compiler, node: ast.FunctionCall) -> Typed:
        argument = node.arguments[0]
        if isinstance(argument, ast.Property):
            base = c.compile(argument.base)
            if base.type.base in (Base.NODE, Base.TERM):
                return c.rows.facet(base.sql, c.names.property(argument.key.words, c.text), column)
        value = c.compile(argument)
        if value.type.base is Base.TERM:
            return c.rows.literal_facet(value.sql, column)
        raise c.mismatch(f"{node.name} needs a property or a vertex that is a literal", argument)

    return compile


# --- aggregates ------------------------------------------------------------------------------------------------


def number_of_matches(c: Compiler, where: str = "") -> Typed:
    """Return ``count(*)``, or how many of the rows fulfil a condition, where a row may stand for several matches."""
    chosen = f" FILTER (WHERE {where})" if where else ""
    if c.scope.matches is None:
        return Typed(f"count(*){chosen}", INTEGER)
    return Typed(f"CAST(coalesce(sum({c.scope.matches}){chosen}, 0) AS BIGINT)", INTEGER)


def _count(c: Compiler, node: ast.FunctionCall) -> Typed:
    value = c.anything(node.arguments[0])
    if c.scope.matches is not None and not node.distinct:
        return number_of_matches(c, f"{value.sql} IS NOT NULL")
    return Typed(f"count({'DISTINCT ' if node.distinct else ''}{value.sql})", INTEGER)


def _collect(c: Compiler, node: ast.FunctionCall) -> Typed:
    value = c.anything(node.arguments[0])
    distinct = "DISTINCT " if node.distinct else ""
    order = f" ORDER BY {c.scope.order} ASC" if c.scope.order is not None and not node.distinct else ""
    gathered = f"list({distinct}{value.sql}{order}) FILTER (WHERE {value.sql} IS NOT NULL)"
    if value.many:
        flat = f"flatten({gathered})"
        return Typed(f"coalesce({f'list_distinct({flat})' if node.distinct else flat}, [])", value.type)
    return Typed(f"coalesce({gathered}, [])", list_of(value.type))


def _sum(c: Compiler, node: ast.FunctionCall) -> Typed:
    distinct = "DISTINCT " if node.distinct else ""
    value = _addends(c, node)
    if value.type == DURATION:
        return durations.total(c, node, value)
    if value.type.base is Base.VALUE:  # of integers an integer
        whole, real = member(value, Base.INTEGER), number(value)
        exact = as_union(Typed(f"CAST(coalesce(sum({distinct}{whole}), 0) AS BIGINT)", INTEGER))
        inexact = as_union(Typed(f"sum({distinct}{real})", FLOAT))
        refused = c.rows.parameters.add(with_place("sum needs numbers", node.span.start, TypeMismatchError))
        cases = f"WHEN count({value.sql}) > count({real}) THEN error({refused}) WHEN count({real}) = count({whole})"
        return Typed(f"CASE {cases} THEN {exact.sql} ELSE {inexact.sql} END", VALUE)
    type = value.type if value.type.base in NUMERIC else INTEGER
    total = f"sum({distinct}{value.sql})"
    return Typed(f"CAST(coalesce({total}, 0) AS {sql_type(type)})", type)


def _addends(c: Compiler, node: ast.FunctionCall) -> Typed:
    """Compile what is added up: numbers, durations, or values whose types the rows tell."""
    try:
        value = c.value_of(c.one(node.arguments[0]))
    except NotSupportedError:
        return compute(c, node.arguments[0], DURATION)
    as_it_is = value.type == DURATION or value.type.base is Base.VALUE
    return value if as_it_is else _numeric(c, node, node.arguments[0])


def _avg(c: Compiler, node: ast.FunctionCall) -> Typed:
    value = _addends(c, node)
    if value.type == DURATION:
        return durations.total(c, node, value)
    real = number(value) if value.type.base is Base.VALUE else f"CAST({value.sql} AS DOUBLE)"
    return Typed(f"avg({'DISTINCT ' if node.distinct else ''}{real})", FLOAT)


def _deviation(function: str) -> Compile:
    def compile(c: Compiler, node: ast.FunctionCall) -> Typed:
        value = _numeric(c, node, node.arguments[0])
        found = f"{function}({'DISTINCT ' if node.distinct else ''}CAST({value.sql} AS DOUBLE))"
        return Typed(f"coalesce({found}, 0.0::DOUBLE)", FLOAT)

    return compile


def _percentile(c: Compiler, node: ast.FunctionCall) -> Typed:
    value, share = _numeric(c, node, node.arguments[0]), node.arguments[1]
    given = c.argument(share) if isinstance(share, ast.Parameter) else getattr(share, "value", None)
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= 1 or value.type == VALUE:
        raise NotSupportedError("such a percentile is not supported in SQL", position=node.span.start)
    distinct = "DISTINCT " if node.distinct else ""
    if node.name.lower() == "percentiledisc":
        return Typed(f"quantile_disc({distinct}{value.sql}, {float(given)!r})", value.type)
    return Typed(f"quantile_cont({distinct}CAST({value.sql} AS DOUBLE), {float(given)!r})", FLOAT)


def _extreme(function: str) -> Compile:
    def compile(c: Compiler, node: ast.FunctionCall) -> Typed:
        value = c.value_of(c.one_of_any(node.arguments[0]))
        if value.type.base in (Base.NODE, Base.EDGE, Base.TERM, Base.PATH):
            raise c.mismatch(f"{node.name} needs values, found {value.type}", node.arguments[0])
        if value.type.base in (Base.VALUE, Base.MAP, Base.DURATION):
            keys = ", ".join(c.sort_keys(value))
            there = f" FILTER (WHERE {value.sql} IS NOT NULL)"
            return Typed(f"{function}_by({value.sql}, row({keys})){there}", value.type)
        return Typed(f"{function}({value.sql})", value.type)

    return compile


def _numeric(c: Compiler, node: ast.FunctionCall, argument: ast.Expression) -> Typed:
    value = c.value_of(c.one(argument))
    if value.type.base in NUMERIC:
        return value
    if value.type.base is Base.NULL:
        return Typed("CAST(NULL AS BIGINT)", INTEGER)
    if value.type.base is Base.VALUE:
        return Typed(number(value), FLOAT)
    raise c.mismatch(f"{node.name} needs a number, found {value.type}", argument)


_BLANKS = "E' \\t\\n\\r\\f'"

FUNCTIONS: dict[str, Function] = {
    "toupper": Function(_string("upper({0})")),
    "upper": Function(_string("upper({0})")),
    "tolower": Function(_string("lower({0})")),
    "lower": Function(_string("lower({0})")),
    "trim": Function(_string(f"trim({{0}}, {_BLANKS})")),
    "btrim": Function(_string(f"trim({{0}}, {_BLANKS})")),
    "ltrim": Function(_string(f"ltrim({{0}}, {_BLANKS})")),
    "rtrim": Function(_string(f"rtrim({{0}}, {_BLANKS})")),
    "reverse": Function(_reverse),
    "replace": Function(_string("replace({0}, {1}, {2})", STRING, (STRING, STRING, STRING)), 3, 3),
    "split": Function(
        # DuckDB splits by null into one part
        _string("CASE WHEN {1} IS NOT NULL THEN string_split({0}, {1}) END", list_of(STRING), (STRING, STRING)),
        2,
        2,
    ),
    "left": Function(_string("left({0}, {1})", STRING, (STRING, INTEGER)), 2, 2),
    "right": Function(_string("right({0}, {1})", STRING, (STRING, INTEGER)), 2, 2),
    "substring": Function(_substring, 2, 3),
    "size": Function(_size),
    "length": Function(_size),
    "charlength": Function(_string("length({0})", INTEGER)),
    "char_length": Function(_string("length({0})", INTEGER)),
    "character_length": Function(_string("length({0})", INTEGER)),
    "abs": Function(_same("abs({0})")),
    "sign": Function(_sign),
    "ceil": Function(_float("ceil({0})")),
    "ceiling": Function(_float("ceil({0})")),
    "floor": Function(_float("floor({0})")),
    "round": Function(_round, 1, 2),
    "sqrt": Function(_float("CASE WHEN {0} < 0 THEN CAST('nan' AS DOUBLE) ELSE sqrt({0}) END")),
    "exp": Function(_float("exp({0})")),
    "log": Function(_logarithm("ln")),
    "ln": Function(_logarithm("ln")),
    "log10": Function(_logarithm("log10")),
    "cot": Function(_float("(1 / tan({0}))")),
    "sin": Function(_float("sin({0})")),
    "cos": Function(_float("cos({0})")),
    "tan": Function(_float("tan({0})")),
    "asin": Function(_float("CASE WHEN abs({0}) > 1 THEN CAST('nan' AS DOUBLE) ELSE asin({0}) END")),
    "acos": Function(_float("CASE WHEN abs({0}) > 1 THEN CAST('nan' AS DOUBLE) ELSE acos({0}) END")),
    "atan": Function(_float("atan({0})")),
    "degrees": Function(_float("degrees({0})")),
    "radians": Function(_float("radians({0})")),
    "haversin": Function(_float("power(sin({0} / 2), 2)")),
    "isnan": Function(
        lambda c, node: Typed(f"isnan(CAST({_numeric(c, node, node.arguments[0]).sql} AS DOUBLE))", BOOLEAN)
    ),
    "atan2": Function(_atan2, 2, 2),
    "rand": Function(lambda c, node: Typed("random()", FLOAT), 0, 0),
    "pi": Function(lambda c, node: Typed("pi()", FLOAT), 0, 0),
    "e": Function(lambda c, node: Typed("exp(1.0)", FLOAT), 0, 0),
    "tointeger": Function(_to(INTEGER)),
    "tofloat": Function(_to(FLOAT)),
    "toboolean": Function(_to(BOOLEAN)),
    "tostring": Function(_to_string),
    "coalesce": Function(_coalesce, 1, 99),
    "exists": Function(_exists),
    "id": Function(_id),
    "elementid": Function(_id),
    "iri": Function(_iri),
    "labels": Function(_labels),
    "type": Function(_type),
    "predicate": Function(_predicate),
    "startnode": Function(_end("start")),
    "endnode": Function(_end("end")),
    "nodes": Function(_nodes),
    "relationships": Function(_relationships),
    "rels": Function(_relationships),
    "lang": Function(_facet("language")),
    "datatype": Function(_facet("datatype")),
}

for _room in (lists, maps, times, durations):
    FUNCTIONS |= {name: Function(*known) for name, known in _room.FUNCTIONS.items()}

AGGREGATES: dict[str, Compile] = {
    "count": _count,
    "collect": _collect,
    "sum": _sum,
    "avg": _avg,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "stdev": _deviation("stddev_samp"),
    "stdevp": _deviation("stddev_pop"),
    "percentilecont": _percentile,
    "percentiledisc": _percentile,
}

_COMPUTED = frozenset(
    "timestamp shortestpath allshortestpaths tointegerornull tofloatornull tobooleanornull tostringornull "
    "tointegerlist tofloatlist tobooleanlist tostringlist".split()
)
"""Functions that Python computes, and those of the clocks."""

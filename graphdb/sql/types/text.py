"""Compiles strings: the text of a value, string predicates, and the functions of strings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from graphdb.common import regex
from graphdb.common.errors import ExecutionError, MemoryLimitError, NotSupportedError, TypeMismatchError, with_place
from graphdb.common.values.decimals import shortest_sql
from graphdb.common.values.temporal import AT_OFFSETS, DATED
from graphdb.common.values.types import BOOLEAN, INTEGER, MEMBERS, STRING, VALUE, Base, Type, list_of, sql_type
from graphdb.functions.table import SIGNATURE_OF
from graphdb.functions.texts import MOST_PARTS
from graphdb.grammar import syntax as ast
from graphdb.sql import exact
from graphdb.sql.compiler import Compile, Compiler, Forms
from graphdb.sql.joined import options
from graphdb.sql.long_texts import LONG
from graphdb.sql.times import durations, in_zones, temporal
from graphdb.sql.value import SqlValue, member

_TIME = r"regexp_replace(CAST({0} AS VARCHAR), '^(\d+:\d+):00$', '\1')"
_FAR = (
    "(CASE WHEN year({0}) < 0 THEN '-' WHEN year({0}) > 9999 THEN '+' ELSE '' END "
    "|| format('{{:04d}}', abs(year({0}))) || strftime({0}, '-%m-%d'))"
)
_NEAR = "year({0}) BETWEEN 1 AND 9999"
_SPELT: Mapping[Base, str] = {
    Base.DECIMAL: shortest_sql("{0}"),
    Base.DATE: f"CASE WHEN {_NEAR} THEN CAST({{0}} AS VARCHAR) ELSE {_FAR} END",
    Base.TIME: _TIME,
    Base.DATETIME: f"CASE WHEN {_NEAR} THEN "
    r"regexp_replace(replace(CAST({0} AS VARCHAR), ' ', 'T'), '(T\d+:\d+):00$', '\1') "
    f"ELSE {_FAR} || 'T' || {_TIME.format('CAST({0} AS TIME)')} END",
    Base.ZONED: r"regexp_replace(replace(CAST({0} AT TIME ZONE 'UTC' AS VARCHAR), ' ', 'T'), '(T\d+:\d+):00$', '\1')"
    " || 'Z'",
}
"""Types that openCypher writes otherwise than SQL does: times as ISO 8601, without seconds that are zero; decimals
without zeros that say nothing.
"""


def text_of(c: Compiler, value: SqlValue, node: ast.Expression) -> str:
    """Return SQL for ``toString(value)``."""
    base = value.type.base
    if base is Base.STRING:
        return value.sql
    if base is Base.TERM:
        literal = c.value_of(value)
        text = f"CAST({literal.sql} AS VARCHAR)" if literal.type == VALUE else text_of(c, literal, node)
        return f"coalesce({c.rows.iri(value).sql}, {text})"
    if base in (Base.NODE, Base.LIST, Base.EDGE, Base.PATH, Base.MAP, Base.CHOICE):
        raise c.mismatch(f"expected a string, found {value.type}", node)
    if base is Base.DURATION:
        return durations.text_of(c, value)
    if base is Base.EXACT:
        return in_zones.named_once(c, [value], lambda value: SqlValue(exact_text(value), STRING)).sql
    if base in (Base.ZONED, Base.MOMENT):
        return f"({_text(temporal.local(value).sql, Base.DATETIME)} || {temporal.offset_text(value)})"
    if base is not Base.VALUE:
        return _text(value.sql, base)
    names = {member: MEMBERS[member][0] for member in (Base.FLOAT, *_SPELT)}
    texts = {member: _text(f"union_extract({value.sql}, '{name}')", member) for member, name in names.items()}
    whens = [f"WHEN '{names[member]}' THEN {text}" for member, text in texts.items()]
    return f"CASE union_tag({value.sql}) {' '.join(whens)} ELSE CAST({value.sql} AS VARCHAR) END"


def concatenated(c: Compiler, left: SqlValue, right: SqlValue, node: ast.Binary) -> SqlValue:
    """Return ``left || right`` of what must be texts."""
    texts: list[SqlValue] = []
    for value, side in ((left, node.left), (right, node.right)):
        value = c.value_of(value)
        if value.type.base not in (Base.STRING, Base.VALUE):
            raise c.mismatch(f"|| needs two strings or two lists, found {value.type}", side)
        if value.type.base is Base.VALUE:
            error = c.rows.error(with_place("|| needs two strings or two lists", side.span.start, TypeMismatchError))
            refused = f"CASE WHEN {value.sql} IS NOT NULL THEN {error} END"
            value = SqlValue(f"coalesce({member(value, Base.STRING)}, {refused})", STRING)
        texts.append(replace(value, type=STRING))
    return _joined(c, *texts)


def joined(c: Compiler, left: SqlValue, right: SqlValue, node: ast.Expression) -> SqlValue:
    """Return the texts of two values, one behind the other."""
    return _joined(c, *(SqlValue(text_of(c, value, node), STRING, texts=value.texts) for value in (left, right)))


def _joined(c: Compiler, left: SqlValue, right: SqlValue) -> SqlValue:
    made_of, sql = _made_of([left, right]), f"({left.sql} || {right.sql})"
    return SqlValue(_guarded(c, "||", made_of, [left.sql, right.sql], STRING, sql, None), STRING, texts=made_of)


def _text(sql: str, base: Base) -> str:
    """Return SQL for the text of a value of a type."""
    if base is Base.FLOAT:
        return _float_text(sql)
    return f"({_SPELT[base].format(sql)})" if base in _SPELT else f"CAST({sql} AS VARCHAR)"


def exact_text(value: SqlValue, *, seconds: bool = False) -> str:
    """Return SQL for the text of an exact time with all digits of a fraction; ``seconds`` that are zero, too."""
    clock, of = exact.clock_of(value), value.type.of
    day = f"{_text(f'CAST({clock} AS DATE)', Base.DATE)} || 'T' || " if of in DATED else ""
    fraction = f"(microsecond({clock}) % 1000000 * 1000 + {exact.nanoseconds_of(value)})"
    digits = f"CASE WHEN {fraction} = 0 THEN '' ELSE '.' || rtrim(format('{{:09d}}', {fraction}), '0') END"
    last = f"strftime({clock}, ':%S') || {digits}"
    if not seconds:
        last = f"CASE WHEN {fraction} = 0 AND second({clock}) = 0 THEN '' ELSE {last} END"
    offset = f" || {temporal.offset_text(value)}" if of in AT_OFFSETS else ""
    zone = f" || coalesce('[' || {exact.zone_of(value)} || ']', '')" if value.type.by_name else ""
    return f"({day}strftime({clock}, '%H:%M') || {last}{offset}{zone})"


def _float_text(sql: str) -> str:
    """Return SQL for a float as text."""
    return (
        f"CASE WHEN isnan({sql}) THEN 'NaN' WHEN {sql} = CAST('inf' AS DOUBLE) THEN 'Infinity' "
        f"WHEN {sql} = CAST('-inf' AS DOUBLE) THEN '-Infinity' "
        f"ELSE replace(replace(replace(CAST({sql} AS VARCHAR), 'e+', 'E'), 'e-0', 'E-'), 'e', 'E') END"
    )


def _predicate(c: Compiler, node: ast.StringPredicate) -> SqlValue:
    function = {
        "STARTS WITH": "starts_with",
        "ENDS WITH": "suffix",
        "CONTAINS": "contains",
        "=~": "regexp_full_match",
    }[node.operator]

    def test(left: SqlValue, right: SqlValue) -> SqlValue:
        texts = [_text_member(c, value) for value in (left, right)]
        sql = f"{function}({texts[0]}, {texts[1]})"
        made_of = _made_of(replace(value, sql=text) for value, text in zip((left, right), texts, strict=True))
        return SqlValue(_guarded(c, node.operator, made_of, texts, BOOLEAN, sql, sql), BOOLEAN)

    if node.operator == "=~":
        _check_pattern(c, node)
    return c.any_of(test, c.compile(node.left), c.compile(node.right))


def _check_pattern(c: Compiler, node: ast.StringPredicate) -> None:
    """Refuse what is no regular expression, where it is written out or given: DuckDB tells no place."""
    pattern = _known(c, node.right)
    if isinstance(pattern, str):
        try:
            regex.compiled(pattern)
        except ExecutionError as fault:
            raise ExecutionError(fault.message, text=c.text, position=node.span.start, hint=fault.hint) from None


_TEXTS = (Base.STRING, Base.VALUE)


def _text_member(c: Compiler, value: SqlValue) -> str:
    """Return the string in a value, NULL if it is something else (openCypher's string predicates)."""
    if value.type.base is Base.TERM:
        value = c.value_of(value)
    if value.type.base is Base.VALUE:
        return member(value, Base.STRING)
    if value.type.base is Base.CHOICE:
        return next((_text_member(c, each) for _, each in options(value) if each.type.base in _TEXTS), "NULL::VARCHAR")
    return value.sql if value.type.base is Base.STRING else "CAST(NULL AS VARCHAR)"


COMPILED: Mapping[type, Callable[[Compiler, Any], SqlValue]] = {ast.StringPredicate: _predicate}


# --- functions -------------------------------------------------------------------------------------------------


def or_refused(
    c: Compiler, node: ast.FunctionCall, member: str, value: SqlValue, wanted: str, argument: ast.Expression
) -> str:
    """Return SQL for the member that a function needs of a value of any type: an error where that is another's."""
    error = c.rows.error(with_place(f"{node.name} needs {wanted}", argument.span.start, TypeMismatchError))
    return f"coalesce({member}, CASE WHEN {value.sql} IS NOT NULL THEN {error} END)"


def _made_of(texts: Iterable[SqlValue]) -> tuple[str, ...]:
    """Return the texts that some are made of, whose lengths bound theirs."""
    return tuple(dict.fromkeys(chain.from_iterable(text.texts or (text.sql,) for text in texts)))


def _guarded(
    c: Compiler, name: str, texts: Sequence[str], operands: Sequence[str], type: Type, sql: str, otherwise: str | None
) -> str:
    """Return SQL of a function that hands long texts to Python, if there may be any; see :class:`LongTexts`."""
    found = c.rows.long_texts() if name in LONG else None
    return sql if found is None else found.guarded(name, texts, operands, type, sql, otherwise)


def string(
    template: str, result: Type = STRING, arguments: tuple[Type, ...] = (STRING,), *, otherwise: str | None = None
) -> Compile:
    """Return a function over strings (and numbers) that fills ``template`` with its arguments' SQL.

    ``otherwise`` is what long texts yield of which Python has nothing to say.
    """

    def compile(c: Compiler, node: ast.FunctionCall) -> SqlValue:
        parts: list[str] = []
        texts: list[SqlValue] = []
        negative: list[str] = []  # what is raised, where all arguments are there
        for wanted, argument in zip(arguments, node.arguments, strict=False):
            value = c.value_of(c.one(argument))
            if value.type.base is Base.VALUE and wanted is STRING:
                value = SqlValue(or_refused(c, node, f"({value.sql}).string", value, "a string", argument), STRING)
            fits = value.type.base is wanted.base or value.type.base is Base.NULL
            if not fits:
                raise c.mismatch(f"{node.name} needs {wanted}, found {value.type}", argument)
            sql = value.sql if value.type.base is not Base.NULL else f"CAST(NULL AS {sql_type(wanted)})"
            if wanted is INTEGER:
                error = c.rows.error(with_place(f"{node.name} does not take a negative number", argument.span.start))
                negative.append(f"WHEN {sql} < 0 THEN {error}")
            else:
                texts.append(value if value.type.base is not Base.NULL else SqlValue(sql, wanted))
            parts.append(sql)
        made_of, name = _made_of(texts), SIGNATURE_OF[node.name.lower()].key
        instead = None if otherwise is None else otherwise.format(*parts)
        found = _guarded(c, name, made_of, parts, result, template.format(*parts), instead)
        if negative:
            absent = " OR ".join(f"({sql}) IS NULL" for sql in parts)
            found = f"CASE WHEN {absent} THEN NULL {' '.join(negative)} ELSE {found} END"
        return SqlValue(found, result, texts=made_of)

    return compile


def _substring(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    template = "substring({0}, {1} + 1, {2})" if len(node.arguments) == 3 else "substring({0}, {1} + 1)"
    return string(template, STRING, (STRING, INTEGER, INTEGER))(c, node)


_BLANKS = "E' \\t\\n\\r\\f'"
"""What trimming takes away: DuckDB would take spaces only."""


def _trim(function: str) -> Compile:
    """Return what takes blanks away, or the characters of a second text."""

    def compile(c: Compiler, node: ast.FunctionCall) -> SqlValue:
        characters = "{1}" if len(node.arguments) == 2 else _BLANKS
        return string(f"{function}({{0}}, {characters})", STRING, (STRING, STRING))(c, node)

    return compile


def _normalize(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    if len(node.arguments) == 2 and node.arguments[1] != ast.Literal("NFC"):
        raise NotSupportedError("other normal forms than NFC are not supported in SQL", position=node.span.start)
    return string("nfc_normalize({0})")(c, node)


_GROWS = 8
"""How many times as long `replace` may make a text that is stored, or given, for SQL to do it."""


def _replace(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    """SQL replaces where the text grows little: DuckDB neither counts the bytes of a text nor stops while it makes one.

    Raises
    ------
    NotSupportedError
        It may grow: Python looks at the length before it makes the text.
    """
    text, *others = node.arguments
    known = [_known(c, each) for each in others]
    if None not in known:
        old, new = (len(each) if isinstance(each, str) else 0 for each in known)
        most = _GROWS if isinstance(text, (ast.Property, ast.Literal, ast.Parameter)) else 1
        if not old or new <= most * old:
            return string("replace({0}, {1}, {2})", STRING, (STRING, STRING, STRING))(c, node)
    raise NotSupportedError("a text that may become long is not supported in SQL", position=node.span.start)


def _split(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    """SQL splits a text into so many parts as a stop need not wait for: DuckDB looks for one between two rows."""
    many = c.rows.error(with_place(too_many_parts(), node.span.start, MemoryLimitError))
    parts = "CASE {1} WHEN '' THEN length({0}) ELSE (strlen({0}) - strlen(replace({0}, {1}, ''))) / strlen({1}) END"
    # DuckDB splits by null into one part; 2.0 splits an empty text into one, too, and 2.0.1 into none.
    template = (
        "CASE WHEN {1} IS NULL THEN NULL WHEN {0} = '' THEN [''] "
        f"WHEN CASE WHEN strlen({{0}}) >= {MOST_PARTS} THEN {parts} >= {MOST_PARTS} ELSE false END THEN {many} "
        "ELSE string_split({0}, {1}) END"
    )
    otherwise = f"CASE WHEN {{1}} IS NOT NULL THEN {many} END"
    return string(template, list_of(STRING), (STRING, STRING), otherwise=otherwise)(c, node)


def too_many_parts() -> str:
    """Return what is wrong with a text that has too many parts."""
    return f"a text of {MOST_PARTS:,} parts and more is too long to be split"


def _known(c: Compiler, node: ast.Expression) -> object:
    """Return what is written out or given; None for what is neither, or null."""
    return c.argument(node) if isinstance(node, ast.Parameter) else getattr(node, "value", None)


_UPPER = "upper(replace({0}, 'ß', 'SS'))"
"""DuckDB has one letter for each; of two that become one only this is frequent."""

FORMS: Forms = {
    "toupper": string(_UPPER),
    "tolower": string("lower({0})"),
    "trim": string(f"trim({{0}}, {_BLANKS})"),
    "btrim": _trim("trim"),
    "ltrim": _trim("ltrim"),
    "rtrim": _trim("rtrim"),
    "normalize": _normalize,
    "replace": _replace,
    "split": _split,
    "left": string("left({0}, {1})", STRING, (STRING, INTEGER)),
    "right": string("right({0}, {1})", STRING, (STRING, INTEGER)),
    "substring": _substring,
    "charlength": string("length({0})", INTEGER),
}

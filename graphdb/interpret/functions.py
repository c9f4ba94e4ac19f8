"""The functions of the language over Python values; names are looked up in lower case.

A function is handed the context, its call (for errors) and its arguments' values.  Most yield null where an argument
is null: :func:`_strict` makes that so.
"""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from graphdb import temporal_build as build
from graphdb.errors import ExecutionError, GraphDBError, MemoryLimitError, TypeMismatchError
from graphdb.grammar import syntax as ast
from graphdb.interpret.values import Edge, Path, Vertex, is_number, type_name
from graphdb.lists import LONGEST
from graphdb.storage.terms import LITERAL_BASE
from graphdb.temporal import (
    SECOND,
    Date,
    DateTime,
    Duration,
    LocalDateTime,
    LocalTime,
    Temporal,
    Time,
    at_instant,
)

if TYPE_CHECKING:
    from graphdb.interpret.context import Context

Call = Callable[..., Any]

AGGREGATES = frozenset("""count sum avg min max collect stdev stdevp percentilecont percentiledisc""".split())
FACETS = frozenset({"lang", "datatype"})
"""Functions of a property's literal, not of its value."""
OF_TERMS = frozenset({"labels", "id", "elementid", "iri"})
"""Functions of a vertex that is a literal, too, and not of its value."""

_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Function:
    """A function that takes ``least`` to ``most`` arguments, of the ``kinds`` given (the last for all further)."""

    call: Call
    least: int = 1
    most: int = 1
    kinds: tuple[str, ...] = ()
    result: str = "any"
    """What it yields, for the checks before anything runs."""


def wrong(
    context: Context, node: ast.Expression, message: str, kind: type[GraphDBError] = TypeMismatchError
) -> GraphDBError:
    """Return an error at a call."""
    return kind(message, text=context.text, position=node.span.start)


def _name(node: ast.Expression) -> str:
    return node.name if isinstance(node, ast.FunctionCall) else "this"


def _strict(call: Call) -> Call:
    def strict(context: Context, node: ast.Expression, *arguments: Any) -> Any:
        return None if None in _nones(arguments) else call(context, node, *arguments)

    return strict


def _nones(arguments: tuple[Any, ...]) -> list[Any]:
    return [argument for argument in arguments if argument is None]


def _plain(call: Callable[..., Any], *kinds: str, least: int | None = None, result: str = "any") -> Function:
    """A function of values alone, whose types are checked when it is called."""
    checked = _checked(lambda context, node, *arguments: call(*arguments), *kinds)
    return Function(checked, len(kinds) if least is None else least, len(kinds), kinds, result)


def _checked(call: Call, *kinds: str) -> Call:
    """Check the types of a function's arguments before it is called; null where one is null."""

    def checked(context: Context, node: ast.Expression, *arguments: Any) -> Any:
        for kind, argument in zip(kinds, arguments, strict=False):
            if not _TESTS[kind](argument):
                raise wrong(context, node, f"{_name(node)} needs {_WORDS[kind]}, found {type_name(argument)}")
        return call(context, node, *arguments)

    return _strict(checked)


_TESTS: dict[str, Callable[[Any], bool]] = {
    "string": lambda v: isinstance(v, str),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": is_number,
    "list": lambda v: isinstance(v, list),
    "vertex": lambda v: isinstance(v, Vertex),
    "edge": lambda v: isinstance(v, Edge),
    "path": lambda v: isinstance(v, Path),
    "any": lambda v: True,
}
_WORDS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "list": "a list",
    "vertex": "a vertex",
    "edge": "an edge",
    "path": "a path",
    "any": "a value",
}


# --- text ------------------------------------------------------------------------------------------------------


def text_of(value: Any) -> str:
    """Return a number, boolean, string or temporal value as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        text = repr(value)
        return text.replace("e+", "E").replace("e-0", "E-").replace("e", "E")
    return str(value)


def _to_string(context: Context, node: ast.Expression, value: Any) -> Any:
    if isinstance(value, (str, bool, int, float, Decimal, Temporal)):
        return text_of(value)
    raise wrong(context, node, f"toString does not take {type_name(value)}")


def _to_integer(context: Context, node: ast.Expression, value: Any) -> Any:
    if isinstance(value, str):
        value = int(value) if _WHOLE.fullmatch(value) and len(value) < _LONG else _read_float(value)
    if value is None:
        return None
    if is_number(value):
        return found if math.isfinite(value) and (found := int(value)) in _INT64 else None
    raise wrong(context, node, f"toInteger does not take {type_name(value)}")


_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")
_LONG = 100
"""Characters beyond which Python would mind reading an integer, which cannot be one of 64 bits."""
_REAL = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|Infinity|INF|NaN)\s*", re.ASCII)


def _read_float(text: str) -> float | None:
    """Return the number that a text says in openCypher's words; Python knows more of them, such as ``1_0``."""
    return float(text) if _REAL.fullmatch(text) else None


def _to_float(context: Context, node: ast.Expression, value: Any) -> Any:
    if is_number(value):
        return float(value)
    if isinstance(value, str):
        return _read_float(value)
    raise wrong(context, node, f"toFloat does not take {type_name(value)}")


def _to_boolean(context: Context, node: ast.Expression, value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return bool(value)
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    raise wrong(context, node, f"toBoolean does not take {type_name(value)}")


def _or_null(call: Call) -> Call:
    def forgiving(context: Context, node: ast.Expression, value: Any) -> Any:
        try:
            return call(context, node, value)
        except TypeMismatchError:
            return None

    return _strict(forgiving)


def _each(call: Call) -> Call:
    """A conversion of lists: null for each item that cannot be converted."""
    one = _or_null(call)
    return _strict(lambda context, node, values: [one(context, node, value) for value in values])


def _substring(context: Context, node: ast.Expression, text: str, start: int, length: int | None = None) -> str:
    if start < 0 or (length or 0) < 0:
        raise wrong(context, node, "substring does not take a negative number", ExecutionError)
    return text[start:] if length is None else text[start : start + length]


def _edge_of_text(cut: Callable[[str, int], str]) -> Call:
    def call(context: Context, node: ast.Expression, text: str, length: int) -> str:
        if length < 0:
            raise wrong(context, node, f"{_name(node)} does not take a negative number", ExecutionError)
        return cut(text, length)

    return _checked(call, "string", "integer")


def _replace(context: Context, node: ast.Expression, text: str, old: str, new: str) -> str:
    if len(text) + text.count(old) * len(new) > 10 * LONGEST:
        raise wrong(context, node, f"a text of more than {10 * LONGEST:,} characters is too long", MemoryLimitError)
    return text.replace(old, new) if old else text


def _split(text: str, separator: Any) -> list[str]:
    return list(text) if separator == "" else text.split(separator)


# --- elements --------------------------------------------------------------------------------------------------


def _labels(context: Context, node: ast.Expression, value: Any) -> Any:
    if not isinstance(value, Vertex):
        raise wrong(context, node, f"labels needs a vertex, found {type_name(value)}")
    if value.id >= LITERAL_BASE:
        return []
    return sorted(map(context.label_name, context.view.labels(value, node)))


def _type(context: Context, node: ast.Expression, value: Any) -> Any:
    if not isinstance(value, Edge):
        raise wrong(context, node, f"type needs an edge, found {type_name(value)}")
    return context.label_name(value.label)


def _id(context: Context, node: ast.Expression, value: Any) -> Any:
    if isinstance(value, Vertex):
        return value.id
    if isinstance(value, Edge):
        return context.view.edge_id(value)
    raise wrong(context, node, f"id needs a vertex or an edge, found {type_name(value)}")


def properties(context: Context, value: Any, node: ast.Expression) -> dict[str, Any]:
    """Return the properties of a vertex or edge by their written names, or a map itself."""
    if isinstance(value, dict):
        return value
    if isinstance(value, (Vertex, Edge)):
        return context.view.properties(value, node)
    raise wrong(context, node, f"properties needs a vertex, an edge or a map, found {type_name(value)}")


def _size(context: Context, node: ast.Expression, value: Any) -> Any:
    if isinstance(value, (list, str)):
        return len(value)
    raise wrong(context, node, f"size needs a list or a string, found {type_name(value)}")


def _is_empty(context: Context, node: ast.Expression, value: Any) -> Any:
    return not (value if isinstance(value, dict) else _size(context, node, value))


def _length(context: Context, node: ast.Expression, value: Any) -> Any:
    if isinstance(value, Path):
        return value.length
    if isinstance(value, (list, str)):
        return len(value)
    raise wrong(context, node, f"length needs a path, found {type_name(value)}")


def _end(side: str) -> Call:
    def call(context: Context, node: ast.Expression, value: Any) -> Any:
        if not isinstance(value, Edge):
            raise wrong(context, node, f"{_name(node)} needs an edge, found {type_name(value)}")
        return Vertex(getattr(value, side))

    return _strict(call)


def _predicate(context: Context, node: ast.Expression, value: Any) -> Any:
    if not isinstance(value, Edge):
        raise wrong(context, node, f"predicate needs an edge, found {type_name(value)}")
    return Vertex(value.label)


def _iri(context: Context, node: ast.Expression, value: Any) -> Any:
    """``iri(vertex)`` is its IRI, ``iri(edge)`` that of its label; ``iri('http://…')`` is the vertex."""
    match value:
        case Vertex():
            return context.view.iri(value) if value.id < LITERAL_BASE else None
        case Edge():
            return context.view.iri(Vertex(value.label))
        case str():
            return context.resource(value)
    raise wrong(context, node, f"iri needs a vertex, an edge or the text of an IRI, found {type_name(value)}")


# --- lists and numbers -----------------------------------------------------------------------------------------


def _range(context: Context, node: ast.Expression, start: Any, end: Any, step: Any = 1) -> Any:
    for bound in (start, end, step):
        if isinstance(bound, bool) or not isinstance(bound, int):
            raise wrong(context, node, f"range needs integers, found {type_name(bound)}", ExecutionError)
    if not step:
        raise wrong(context, node, "range needs a step other than 0", ExecutionError)
    items = range(start, end + (1 if step > 0 else -1), step)
    if items[:LONGEST] != items:  # its length need not fit a machine word
        raise wrong(context, node, f"a range of more than {LONGEST:,} items is too long", MemoryLimitError)
    return list(items)


def _reverse(context: Context, node: ast.Expression, value: Any) -> Any:
    if isinstance(value, (list, str)):
        return value[::-1]
    raise wrong(context, node, f"reverse needs a list or a string, found {type_name(value)}")


def _float(call: Callable[[float], float]) -> Function:
    def safe(value: Any) -> float:
        try:
            return call(float(value))
        except ValueError:
            return math.nan
        except (OverflowError, ZeroDivisionError):
            return math.inf

    return _plain(safe, "number", result="float")


def _log(call: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: -math.inf if value == 0 else call(value)


def _abs(context: Context, node: ast.Expression, value: Any) -> Any:
    if value == -(2**63) and isinstance(value, int):
        raise wrong(context, node, "a number is out of range: 64 bits hold -2^63 to 2^63 - 1", ExecutionError)
    return abs(value)


def _whole(call: Callable[[float], int]) -> Callable[[float], float]:
    return lambda value: float(call(value)) if math.isfinite(value) else value


def _round(value: Any, digits: int = 0) -> float:
    scale = 10.0**digits
    return math.floor(float(value) * scale + 0.5) / scale if math.isfinite(value) else float(value)


# --- time ------------------------------------------------------------------------------------------------------


def _temporal(kind: type[Temporal]) -> Call:
    def call(context: Context, node: ast.Expression, value: Any = ()) -> Any:
        if value is None:
            return None
        try:
            if value == ():
                return _now(kind, context.started)
            if isinstance(value, str):
                return build.parse(kind, value)
            if isinstance(value, dict):
                if None in value.values():
                    return None
                return build.build_duration(value) if kind is Duration else build.build(kind, value)
            if isinstance(value, Temporal):
                return build.convert(kind, value)
        except (build.Malformed, ValueError, OverflowError, TypeError) as error:
            raise wrong(context, node, str(error), ExecutionError) from None
        raise wrong(context, node, f"{_name(node)} does not take {type_name(value)}")

    return call


def _now(kind: type[Temporal], started: int) -> Temporal:
    return build.convert(kind, at_instant(started, 0))


def _truncate(kind: type[Temporal]) -> Call:
    def call(context: Context, node: ast.Expression, unit: Any, value: Any, parts: Any = None) -> Any:
        if not isinstance(unit, str) or not isinstance(value, Temporal):
            raise wrong(context, node, f"{_name(node)} needs a unit and a temporal value")
        try:
            return build.truncate(kind, unit, value, parts or {})
        except (build.Malformed, ValueError, TypeError) as error:
            raise wrong(context, node, str(error), ExecutionError) from None

    def unless_null(context: Context, node: ast.Expression, *arguments: Any) -> Any:
        return None if None in _nones(arguments[:2]) else call(context, node, *arguments)

    return unless_null


def _between(unit: str) -> Call:
    def call(context: Context, node: ast.Expression, start: Any, end: Any) -> Any:
        if not isinstance(start, Temporal) or not isinstance(end, Temporal):
            raise wrong(context, node, f"{_name(node)} needs two temporal values")
        try:
            return build.between(unit, start, end)
        except build.Malformed as error:
            raise wrong(context, node, str(error), ExecutionError) from None

    return _strict(call)


_KINDS: dict[str, type[Temporal]] = {
    "date": Date,
    "localtime": LocalTime,
    "time": Time,
    "localdatetime": LocalDateTime,
    "datetime": DateTime,
    "duration": Duration,
}


def _functions() -> Mapping[str, Function]:
    text = _plain
    found: dict[str, Function] = {
        # elements
        "labels": Function(_strict(_labels), kinds=("vertex",), result="list"),
        "type": Function(_strict(_type), kinds=("edge",), result="string"),
        "id": Function(_strict(_id), kinds=("element",), result="integer"),
        "elementid": Function(_strict(lambda c, n, v: str(_id(c, n, v))), kinds=("element",), result="string"),
        "predicate": Function(_strict(_predicate), kinds=("edge",), result="vertex"),
        "iri": Function(_strict(_iri), kinds=("named",)),
        "properties": Function(_strict(lambda c, n, v: properties(c, v, n)), kinds=("propertied",), result="map"),
        "keys": Function(_strict(lambda c, n, v: list(properties(c, v, n))), kinds=("propertied",), result="list"),
        "startnode": Function(_end("start"), kinds=("edge",), result="vertex"),
        "endnode": Function(_end("end"), kinds=("edge",), result="vertex"),
        "nodes": _plain(lambda p: list(p.vertices), "path", result="list"),
        "relationships": _plain(lambda p: list(p.edges), "path", result="list"),
        "length": Function(_strict(_length), kinds=("long",), result="integer"),
        "size": Function(_strict(_size), kinds=("sized",), result="integer"),
        # lists
        "head": _plain(lambda v: v[0] if v else None, "list"),
        "last": _plain(lambda v: v[-1] if v else None, "list"),
        "tail": _plain(lambda v: v[1:], "list", result="list"),
        "range": Function(_range, 2, 3, result="list"),
        "reverse": Function(_strict(_reverse)),
        "isempty": Function(_strict(_is_empty), result="boolean"),
        # conversion
        "tostring": Function(_strict(_to_string), kinds=("scalar",), result="string"),
        "tointeger": Function(_strict(_to_integer), kinds=("scalar",), result="integer"),
        "tofloat": Function(_strict(_to_float), kinds=("scalar",), result="float"),
        "toboolean": Function(_strict(_to_boolean), kinds=("scalar",), result="boolean"),
        # strings
        "toupper": text(str.upper, "string", result="string"),
        "tolower": text(str.lower, "string", result="string"),
        "trim": text(lambda t: t.strip(" \t\n\r\f"), "string", result="string"),
        "ltrim": text(lambda t: t.lstrip(" \t\n\r\f"), "string", result="string"),
        "rtrim": text(lambda t: t.rstrip(" \t\n\r\f"), "string", result="string"),
        "replace": Function(_checked(_replace, "string", "string", "string"), 3, 3, ("string",), "string"),
        "split": text(_split, "string", "string", result="list"),
        "substring": Function(
            _checked(_substring, "string", "integer", "integer"), 2, 3, ("string", "integer", "integer"), "string"
        ),
        "left": Function(_edge_of_text(lambda t, n: t[:n]), 2, 2, ("string", "integer"), "string"),
        "right": Function(_edge_of_text(lambda t, n: t[-n:] if n else ""), 2, 2, ("string", "integer"), "string"),
        "charlength": text(len, "string", result="integer"),
        # numbers
        "abs": Function(_checked(_abs, "number"), kinds=("number",), result="number"),
        "sign": _plain(lambda v: (v > 0) - (v < 0), "number", result="integer"),
        "ceil": _float(_whole(math.ceil)),
        "floor": _float(_whole(math.floor)),
        "round": _plain(_round, "number", "integer", least=1, result="float"),
        "sqrt": _float(lambda v: math.sqrt(v) if v >= 0 else math.nan),
        "exp": _float(math.exp),
        "log": _float(_log(math.log)),
        "log10": _float(_log(math.log10)),
        "cot": _float(lambda v: 1 / math.tan(v)),
        "haversin": _float(lambda v: math.sin(v / 2) ** 2),
        "atan2": _plain(math.atan2, "number", "number", result="float"),
        "isnan": _plain(lambda v: isinstance(v, float) and math.isnan(v), "number", result="boolean"),
        "e": Function(lambda c, n: math.e, 0, 0, result="float"),
        "pi": Function(lambda c, n: math.pi, 0, 0, result="float"),
        "rand": Function(lambda c, n: random.random(), 0, 0, result="float"),
        "timestamp": Function(lambda c, n: c.started // 10**6, 0, 0, result="integer"),
        # time
        "datetime.fromepoch": _plain(
            lambda s, ns=0: at_instant(s * SECOND + ns, 0), "integer", "integer", least=1, result="temporal"
        ),
        "datetime.fromepochmillis": _plain(lambda ms: at_instant(ms * 10**6, 0), "integer", result="temporal"),
        "coalesce": Function(lambda c, n, *values: next((v for v in values if v is not None), None), 1, 99),
        "exists": Function(lambda c, n, value: value is not None, result="boolean"),
    }
    for name in ("sin", "cos", "tan", "asin", "acos", "atan", "degrees", "radians"):
        found[name] = _float(getattr(math, name))
    for name, call in (
        ("string", _to_string),
        ("integer", _to_integer),
        ("float", _to_float),
        ("boolean", _to_boolean),
    ):
        found[f"to{name}ornull"] = Function(_or_null(call))
        found[f"to{name}list"] = Function(_each(call), kinds=("list",), result="list")
    for name, kind in _KINDS.items():
        found[name] = Function(_temporal(kind), 0 if kind is not Duration else 1, 1, result="temporal")
        if kind is not Duration:
            found[f"{name}.truncate"] = Function(_truncate(kind), 2, 3, result="temporal")
            for clock in ("transaction", "statement", "realtime"):
                found[f"{name}.{clock}"] = Function(_temporal(kind), 0, 1, result="temporal")
    for unit in ("between", "inmonths", "indays", "inseconds"):
        found[f"duration.{unit}"] = Function(_between(unit), 2, 2, result="temporal")
    others = {"upper": "toupper", "lower": "tolower", "rels": "relationships", "ceiling": "ceil", "ln": "log"}
    others |= {"char_length": "charlength", "character_length": "charlength", "btrim": "trim"}
    return found | {name: found[same] for name, same in others.items()}


FUNCTIONS: Mapping[str, Function] = _functions()


def started_now() -> int:
    """Return the time in nanoseconds since 1970, for all clocks of one statement."""
    return time.time_ns()

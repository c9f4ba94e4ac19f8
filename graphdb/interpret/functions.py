"""The functions of the language over Python values; names are looked up in lower case.

Here are those of elements, strings, lists and numbers; :mod:`~graphdb.interpret.calls` says what a function is.
"""

from __future__ import annotations

import math
import random
import unicodedata
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from graphdb.common.errors import ExecutionError, MemoryLimitError
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.grammar import syntax as ast
from graphdb.grammar.sugar import FORMS
from graphdb.interpret import conversions, times
from graphdb.interpret.arithmetic import absolute, fits
from graphdb.interpret.calls import Call, Function, checked, name_of, plain, strict, wrong
from graphdb.interpret.values import Edge, Path, Vertex, type_name
from graphdb.sql.ranges import LONGEST

if TYPE_CHECKING:
    from graphdb.interpret.context import Context

FACETS = frozenset({"lang", "datatype"})
"""Functions of a property's literal, not of its value."""
OF_TERMS = frozenset({"labels", "id", "elementid", "iri", "sameterm"})
"""Functions of a vertex that is a literal, too, and not of its value."""


# --- text ------------------------------------------------------------------------------------------------------


def _substring(context: Context, node: ast.Expression, text: str, start: int, length: int | None = None) -> str:
    if start < 0 or (length or 0) < 0:
        raise wrong(context, node, "substring does not take a negative number", ExecutionError)
    return text[start:] if length is None else text[start : start + length]


def _edge_of_text(cut: Callable[[str, int], str]) -> Call:
    def call(context: Context, node: ast.Expression, text: str, length: int) -> str:
        if length < 0:
            raise wrong(context, node, f"{name_of(node)} does not take a negative number", ExecutionError)
        return cut(text, length)

    return checked(call, "string", "integer")


def _replace(context: Context, node: ast.Expression, text: str, old: str, new: str) -> str:
    if len(text) + text.count(old) * len(new) > 10 * LONGEST:
        raise wrong(context, node, f"a text of more than {10 * LONGEST:,} characters is too long", MemoryLimitError)
    return text.replace(old, new) if old else text


_BLANKS = " \t\n\r\f"


def _normalize(context: Context, node: ast.Expression, text: str, form: Any = "NFC") -> str:
    if form not in FORMS:
        raise wrong(context, node, f"normalize takes {', '.join(sorted(FORMS))}, found '{form}'", ExecutionError)
    return unicodedata.normalize(form, text)


def _split(text: str, separator: Any) -> list[str]:
    return text.split(separator) if separator else list(text) or [text]


# --- elements --------------------------------------------------------------------------------------------------


def _same_term(context: Context, node: ast.Expression, left: Any, right: Any) -> bool:
    for value in (left, right):
        if not isinstance(value, Vertex):
            raise wrong(context, node, f"{name_of(node)} needs vertices, found {type_name(value)}")
    return bool(left == right)


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
            raise wrong(context, node, f"{name_of(node)} needs an edge, found {type_name(value)}")
        return Vertex(getattr(value, side))

    return strict(call)


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
    return list(context.stepped(items))


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

    return plain(safe, "number", result="float")


def _sinh(value: float) -> float:
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _log(call: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: -math.inf if value == 0 else call(value)


def _whole(call: Callable[[float], int]) -> Callable[[float], float]:
    return lambda value: math.copysign(call(value), value) if math.isfinite(value) else value


def _round(value: Any, digits: int = 0) -> float:
    scale = 10.0**digits
    return math.floor(float(value) * scale + 0.5) / scale if math.isfinite(value) else float(value)


def _functions() -> Mapping[str, Function]:
    found: dict[str, Function] = {
        # elements
        "labels": Function(strict(_labels), kinds=("vertex",), result="list"),
        "type": Function(strict(_type), kinds=("edge",), result="string"),
        "id": Function(strict(_id), kinds=("element",), result="integer"),
        "elementid": Function(strict(lambda c, n, v: str(_id(c, n, v))), kinds=("element",), result="string"),
        "predicate": Function(strict(_predicate), kinds=("edge",), result="vertex"),
        "iri": Function(strict(_iri), kinds=("named",)),
        "sameterm": Function(strict(_same_term), 2, 2, result="boolean"),
        "properties": Function(strict(lambda c, n, v: properties(c, v, n)), kinds=("propertied",), result="map"),
        "keys": Function(strict(lambda c, n, v: list(properties(c, v, n))), kinds=("propertied",), result="list"),
        "startnode": Function(_end("start"), kinds=("edge",), result="vertex"),
        "endnode": Function(_end("end"), kinds=("edge",), result="vertex"),
        "nodes": plain(lambda p: list(p.vertices), "path", result="list"),
        "relationships": plain(lambda p: list(p.edges), "path", result="list"),
        "length": Function(strict(_length), kinds=("long",), result="integer"),
        "size": Function(strict(_size), kinds=("sized",), result="integer"),
        # lists
        "head": plain(lambda v: v[0] if v else None, "list"),
        "last": plain(lambda v: v[-1] if v else None, "list"),
        "tail": plain(lambda v: v[1:], "list", result="list"),
        "range": Function(_range, 2, 3, result="list"),
        "reverse": Function(strict(_reverse)),
        "isempty": Function(strict(_is_empty), result="boolean"),
        # strings
        "toupper": plain(str.upper, "string", result="string"),
        "tolower": plain(str.lower, "string", result="string"),
        "trim": plain(lambda t: t.strip(_BLANKS), "string", result="string"),
        "btrim": plain(lambda t, c=_BLANKS: t.strip(c), "string", "string", least=1, result="string"),
        "ltrim": plain(lambda t, c=_BLANKS: t.lstrip(c), "string", "string", least=1, result="string"),
        "rtrim": plain(lambda t, c=_BLANKS: t.rstrip(c), "string", "string", least=1, result="string"),
        "normalize": Function(checked(_normalize, "string", "string"), 1, 2, ("string", "string"), "string"),
        "replace": Function(checked(_replace, "string", "string", "string"), 3, 3, ("string",), "string"),
        "split": plain(_split, "string", "string", result="list"),
        "substring": Function(
            checked(_substring, "string", "integer", "integer"), 2, 3, ("string", "integer", "integer"), "string"
        ),
        "left": Function(_edge_of_text(lambda t, n: t[:n]), 2, 2, ("string", "integer"), "string"),
        "right": Function(_edge_of_text(lambda t, n: t[-n:] if n else ""), 2, 2, ("string", "integer"), "string"),
        "charlength": plain(len, "string", result="integer"),
        # numbers
        "abs": Function(checked(lambda c, n, v: fits(c, absolute(v), n), "number"), kinds=("number",), result="number"),
        "sign": plain(lambda v: (v > 0) - (v < 0), "number", result="integer"),
        "ceil": _float(_whole(math.ceil)),
        "floor": _float(_whole(math.floor)),
        "round": plain(_round, "number", "integer", least=1, result="float"),
        "sqrt": _float(lambda v: math.sqrt(v) if v >= 0 else math.nan),
        "exp": _float(math.exp),
        "log": _float(_log(math.log)),
        "log10": _float(_log(math.log10)),
        "cot": _float(lambda v: 1 / math.tan(v)),
        "sinh": _float(_sinh),
        "coth": _float(lambda v: 1 / math.tanh(v) if v else math.nan),
        "haversin": _float(lambda v: math.sin(v / 2) ** 2),
        "atan2": plain(math.atan2, "number", "number", result="float"),
        "isnan": plain(lambda v: isinstance(v, float) and math.isnan(v), "number", result="boolean"),
        "e": Function(lambda c, n: math.e, 0, 0, result="float"),
        "pi": Function(lambda c, n: math.pi, 0, 0, result="float"),
        "randomuuid": Function(lambda c, n: str(uuid.uuid4()), 0, 0, result="string"),
        "rand": Function(lambda c, n: random.random(), 0, 0, result="float"),
        "timestamp": Function(lambda c, n: c.started // 10**6, 0, 0, result="integer"),
        "coalesce": Function(lambda c, n, *values: next((v for v in values if v is not None), None), 1, 99),
        "exists": Function(lambda c, n, value: value is not None, result="boolean"),
    }
    for name in ("sin", "cos", "tan", "asin", "acos", "atan", "cosh", "tanh", "degrees", "radians"):
        found[name] = _float(getattr(math, name))
    others = {"upper": "toupper", "lower": "tolower", "rels": "relationships", "ceiling": "ceil", "ln": "log"}
    others |= {"char_length": "charlength", "character_length": "charlength"}
    return {
        **found,
        **conversions.FUNCTIONS,
        **times.FUNCTIONS,
        **{name: found[same] for name, same in others.items()},
    }


FUNCTIONS: Mapping[str, Function] = _functions()

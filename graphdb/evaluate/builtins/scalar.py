"""The functions of the language over Python values; names are looked up in lower case.

Here are those of elements, strings, lists and numbers; :mod:`~graphdb.evaluate.calls` says what a function is.
"""

from __future__ import annotations

import math
import random
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from graphdb.common.errors import ExecutionError, MemoryLimitError
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.evaluate.builtins import conversions, times
from graphdb.evaluate.builtins.arithmetic import absolute, fits
from graphdb.evaluate.calls import Call, Form, called, name_of, plain, wrong
from graphdb.evaluate.values import Edge, Path, Vertex, type_name
from graphdb.functions.table import SIGNATURE_OF
from graphdb.functions.texts import TEXTS, split
from graphdb.grammar import syntax as ast
from graphdb.grammar.sugar import FORMS
from graphdb.sql.types.ranges import LONGEST
from graphdb.sql.types.text import too_many_parts

if TYPE_CHECKING:
    from graphdb.evaluate.context import Context

FACETS = frozenset({"lang", "datatype"})
"""Functions of a property's literal, not of its value."""
OF_TERMS = frozenset({"labels", "id", "elementid", "iri", "sameterm"})
"""Functions of a vertex that is a literal, too, and not of its value."""


# --- text ------------------------------------------------------------------------------------------------------


def _substring(context: Context, node: ast.Expression, text: str, start: int, length: int | None = None) -> str:
    if start < 0 or (length or 0) < 0:
        raise wrong(context, node, "substring does not take a negative number", ExecutionError)
    found: str = TEXTS["substring"](text, start, length)
    return found


def _edge_of_text(name: str) -> Form:
    cut: Callable[[str, int], str] = TEXTS[name]

    def call(context: Context, node: ast.Expression, text: str, length: int) -> str:
        if length < 0:
            raise wrong(context, node, f"{name_of(node)} does not take a negative number", ExecutionError)
        return cut(text, length)

    return Form(call)


def _replace(context: Context, node: ast.Expression, text: str, old: str, new: str) -> str:
    if len(text) + text.count(old) * len(new) > 10 * LONGEST:
        raise wrong(context, node, f"a text of more than {10 * LONGEST:,} characters is too long", MemoryLimitError)
    found: str = TEXTS["replace"](text, old, new)
    return found


def _normalize(context: Context, node: ast.Expression, text: str, form: Any = "NFC") -> str:
    if form not in FORMS:
        raise wrong(context, node, f"normalize takes {', '.join(sorted(FORMS))}, found '{form}'", ExecutionError)
    found: str = TEXTS["normalize"](text, form)
    return found


def _split(context: Context, node: ast.Expression, text: str, separator: Any) -> list[str]:
    parts = split(text, separator)
    if parts is None:
        raise wrong(context, node, too_many_parts(), MemoryLimitError)
    return parts


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

    return call


def _predicate(context: Context, node: ast.Expression, value: Any) -> Any:
    if not isinstance(value, Edge):
        raise wrong(context, node, f"predicate needs an edge, found {type_name(value)}")
    return Vertex(value.label)


def _graphs(context: Context, node: ast.Expression, value: Any) -> Any:
    if not isinstance(value, Edge):
        raise wrong(context, node, f"graphs needs an edge, found {type_name(value)}")
    return context.view.graphs(value, node)


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


def _float(call: Callable[[float], float]) -> Form:
    def safe(value: Any) -> float:
        try:
            return call(float(value))
        except ValueError:
            return math.nan
        except (OverflowError, ZeroDivisionError):
            return math.inf

    return plain(safe)


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


_OF_TEXTS = ("toupper", "tolower", "trim", "btrim", "ltrim", "rtrim", "charlength")
"""Functions of texts that take all that their signatures allow."""


def _forms() -> Mapping[str, Form | Call]:
    found: dict[str, Form | Call] = {
        # elements
        "labels": _labels,
        "graphs": _graphs,
        "type": _type,
        "id": _id,
        "elementid": lambda c, n, v: str(_id(c, n, v)),
        "predicate": _predicate,
        "iri": _iri,
        "sameterm": _same_term,
        "properties": lambda c, n, v: properties(c, v, n),
        "keys": lambda c, n, v: list(properties(c, v, n)),
        "startnode": _end("start"),
        "endnode": _end("end"),
        "nodes": plain(lambda p: list(p.vertices)),
        "relationships": plain(lambda p: list(p.edges)),
        "length": _length,
        "size": _size,
        # lists
        "head": plain(lambda v: v[0] if v else None),
        "last": plain(lambda v: v[-1] if v else None),
        "tail": plain(lambda v: v[1:]),
        "range": _range,
        "reverse": _reverse,
        "isempty": _is_empty,
        # strings
        **{name: plain(TEXTS[name]) for name in _OF_TEXTS},
        "normalize": Form(_normalize),
        "replace": Form(_replace),
        "split": Form(_split),
        "substring": Form(_substring),
        "left": _edge_of_text("left"),
        "right": _edge_of_text("right"),
        # numbers
        "abs": Form(lambda c, n, v: fits(c, absolute(v), n)),
        "sign": plain(lambda v: (v > 0) - (v < 0)),
        "ceil": _float(_whole(math.ceil)),
        "floor": _float(_whole(math.floor)),
        "round": plain(_round),
        "sqrt": _float(lambda v: math.sqrt(v) if v >= 0 else math.nan),
        "exp": _float(math.exp),
        "log": _float(_log(math.log)),
        "log10": _float(_log(math.log10)),
        "cot": _float(lambda v: 1 / math.tan(v)),
        "sinh": _float(_sinh),
        "coth": _float(lambda v: 1 / math.tanh(v) if v else math.nan),
        "haversin": _float(lambda v: math.sin(v / 2) ** 2),
        "atan2": plain(math.atan2),
        "isnan": plain(lambda v: isinstance(v, float) and math.isnan(v)),
        "e": lambda c, n: math.e,
        "pi": lambda c, n: math.pi,
        "randomuuid": lambda c, n: str(uuid.uuid4()),
        "rand": lambda c, n: random.random(),
        "timestamp": lambda c, n: c.started // 10**6,
        "coalesce": lambda c, n, *values: next((v for v in values if v is not None), None),
        "exists": lambda c, n, value: value is not None,
    }
    for name in ("sin", "cos", "tan", "asin", "acos", "atan", "cosh", "tanh", "degrees", "radians"):
        found[name] = _float(getattr(math, name))
    return {**found, **conversions.FORMS, **times.FORMS}


_FORMS = _forms()
FUNCTIONS: Mapping[str, Call] = {
    name: called(signature, _FORMS[signature.key])
    for name, signature in SIGNATURE_OF.items()
    if signature.key in _FORMS
}
"""How Python computes each function, by all its names in lower case."""

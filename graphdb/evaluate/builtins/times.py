"""Functions of dates, times and durations over Python values; the clocks of one statement all show when it began."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphdb.common.errors import ExecutionError
from graphdb.common.values import temporal_build as build
from graphdb.common.values.temporal import (
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
from graphdb.common.values.temporal_between import between
from graphdb.evaluate.calls import Call, Form, any_null, name_of, plain, wrong
from graphdb.evaluate.values import type_name
from graphdb.grammar import syntax as ast

if TYPE_CHECKING:
    from graphdb.evaluate.context import Context


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
            raise wrong(context, node, str(error), ExecutionError, getattr(error, "hint", None)) from None
        raise wrong(context, node, f"{name_of(node)} does not take {type_name(value)}")

    return call


def _now(kind: type[Temporal], started: int) -> Temporal:
    return build.convert(kind, at_instant(started, 0))


def _truncate(kind: type[Temporal]) -> Call:
    def call(context: Context, node: ast.Expression, unit: Any, value: Any, parts: Any = None) -> Any:
        if not isinstance(unit, str) or not isinstance(value, Temporal):
            raise wrong(context, node, f"{name_of(node)} needs a unit and a temporal value")
        try:
            return build.truncate(kind, unit, value, parts or {})
        except (build.Malformed, ValueError, TypeError) as error:
            raise wrong(context, node, str(error), ExecutionError) from None

    def unless_null(context: Context, node: ast.Expression, *arguments: Any) -> Any:
        return None if any_null(arguments[:2]) else call(context, node, *arguments)

    return unless_null


def _between(unit: str) -> Call:
    def call(context: Context, node: ast.Expression, start: Any, end: Any) -> Any:
        if not isinstance(start, Temporal) or not isinstance(end, Temporal):
            raise wrong(context, node, f"{name_of(node)} needs two temporal values")
        try:
            return between(unit, start, end)
        except build.Malformed as error:
            raise wrong(context, node, str(error), ExecutionError) from None

    return call


_KINDS: dict[str, type[Temporal]] = {
    "date": Date,
    "localtime": LocalTime,
    "time": Time,
    "localdatetime": LocalDateTime,
    "datetime": DateTime,
    "duration": Duration,
}


def _forms() -> Mapping[str, Form | Call]:
    found: dict[str, Form | Call] = {
        "datetime.fromepoch": plain(lambda s, ns=0: at_instant(s * SECOND + ns, 0)),
        "datetime.fromepochmillis": plain(lambda ms: at_instant(ms * 10**6, 0)),
    }
    for name, kind in _KINDS.items():
        found[name] = _temporal(kind)
        if kind is not Duration:
            found[f"{name}.truncate"] = _truncate(kind)
            for clock in ("transaction", "statement", "realtime"):
                found[f"{name}.{clock}"] = _temporal(kind)
    for unit in ("between", "inmonths", "indays", "inseconds"):
        found[f"duration.{unit}"] = _between(unit)
    return found


FORMS: Mapping[str, Form | Call] = _forms()

"""openCypher's values: as its scenarios write them, as typed JSON, and as ours; all in one form that compares."""

from __future__ import annotations

import re
from typing import Any

from graphdb import Node, Relationship
from graphdb.common.values.elements import Path
from graphdb.common.values.temporal import Temporal
from graphdb.common.values.temporal_python import from_python

_TOKEN = re.compile(
    r"""\s*(?:(?P<string>'(?:[^'\\]|\\.)*')|(?P<number>-?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|Inf\b))
    |(?P<word>[^\W\d]\w*|`[^`]*`)|(?P<sign>[-<>()\[\]{}:,]))""",
    re.VERBOSE,
)
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "NaN": {"float": "nan"}, "Inf": {"float": "inf"}}


def plain(value: Any) -> Any:
    """Return one of our values as the suite writes it."""
    match value:
        case Node():
            return {"node": {"labels": sorted(value.labels), "props": plain(dict(value.properties))["map"]}}
        case Relationship():
            return {"rel": {"type": value.type, "props": plain(dict(value.properties))["map"]}}
        case Path():
            steps = [
                {"dir": ">" if edge.start == left.iri else "<", "rel": plain(edge), "node": plain(right)}
                for left, edge, right in zip(value.nodes, value.relationships, value.nodes[1:], strict=False)
            ]
            return {"path": {"start": plain(value.nodes[0]), "steps": steps}}
        case float():
            return {"float": repr(value + 0.0)}
        case list():
            return [plain(item) for item in value]
        case dict():
            return {"map": {key: plain(item) for key, item in value.items()}}
        case None | bool() | int() | str():
            return value
    temporal = value if isinstance(value, Temporal) else from_python(value)
    assert temporal is not None, f"the suite has no value like {value!r}"
    return str(temporal)


def expected(value: Any) -> Any:
    """Return a value of the suite's typed JSON as :func:`plain` gives it."""
    match value:
        case {"float": text}:
            return {"float": repr(float(text.replace("Inf", "inf")) + 0.0)}
        case {"node": {"labels": labels, "props": props}, **rest} if "dir" not in rest:
            return {"node": {"labels": sorted(labels), "props": expected(props)}}
        case dict():
            return {key: expected(item) for key, item in value.items()}
        case list():
            return [expected(item) for item in value]
        case float():  # of a setup's graph
            return {"float": repr(value + 0.0)}
    return value


def read(text: str) -> Any:
    """Return a value that the suite writes as text, as :func:`plain` gives it."""
    reader = _Reader(text)
    found = reader.value()
    assert reader.rest() == "", text
    return found


def python(value: Any) -> Any:
    """Return a value without vertices and edges as Python's."""
    match value:
        case {"float": text}:
            return float(text)
        case {"map": items}:
            return {key: python(item) for key, item in items.items()}
        case list():
            return [python(item) for item in value]
    return value


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def rest(self) -> str:
        return self._text[self._at :].strip()

    def _next(self) -> tuple[str, str]:
        found = _TOKEN.match(self._text, self._at)
        assert found is not None, self._text[self._at :]
        self._at = found.end()
        return str(found.lastgroup), found[str(found.lastgroup)]

    def _sees(self, *signs: str) -> bool:
        at = self._at
        for sign in signs:
            found = _TOKEN.match(self._text, at)
            if found is None or found["sign"] != sign:
                return False
            at = found.end()
        return True

    def _takes(self, *signs: str) -> bool:
        if not self._sees(*signs):
            return False
        for _ in signs:
            self._next()
        return True

    def _needs(self, *signs: str) -> None:
        assert self._takes(*signs), f"expected {signs} in {self._text!r} at {self._at}"

    def _name(self) -> str:
        kind, text = self._next()
        assert kind == "word", text
        return text.strip("`")

    def value(self) -> Any:
        if self._sees("["):
            return self._relationship() if self._sees("[", ":") else self._list()
        if self._sees("("):
            return self._node()
        if self._sees("{"):
            return {"map": self._map()}
        if self._takes("<"):
            return self._path()
        minus = self._takes("-")  # of Inf
        kind, text = self._next()
        match kind:
            case "string":
                return re.sub(r"\\(.)", r"\1", text[1:-1])
            case "number" if not minus and re.fullmatch(r"-?\d+", text):
                return int(text)
            case "number":
                return {"float": repr(float(("-" if minus else "") + text.replace("Inf", "inf")) + 0.0)}
        return {"float": "-inf"} if minus else _WORDS[text]

    def _list(self) -> list[Any]:
        self._needs("[")
        items: list[Any] = []
        while not self._takes("]"):
            items.append(self.value())
            self._takes(",")
        return items

    def _map(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self._takes("{"):
            while not self._takes("}"):
                key = self._name()
                self._needs(":")
                found[key] = self.value()
                self._takes(",")
        return found

    def _node(self) -> Any:
        self._needs("(")
        labels = []
        while self._takes(":"):
            labels.append(self._name())
        props = self._map()
        self._needs(")")
        return {"node": {"labels": sorted(labels), "props": props}}

    def _relationship(self) -> Any:
        self._needs("[", ":")
        type, props = self._name(), self._map()
        self._needs("]")
        return {"rel": {"type": type, "props": props}}

    def _path(self) -> Any:
        start, steps = self._node(), []
        while not self._takes(">"):
            backwards = self._takes("<", "-")
            if not backwards:
                self._needs("-")
            edge = self._relationship()
            self._needs(*("-",) if backwards else ("-", ">"))
            steps.append({"dir": "<" if backwards else ">", "rel": edge, "node": self._node()})
        return {"path": {"start": start, "steps": steps}}

"""Signatures of procedures: types as text and as Python's annotations, and what is none."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

import pytest

from graphdb import GraphDBError, Node
from graphdb.common.values.temporal import Duration
from graphdb.procedures.signature import signature_of
from graphdb.procedures.types import NotOfType, type_of


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ("INTEGER?", "INTEGER?"),
        (" integer ", "INTEGER"),
        ("LIST OF STRING?", "LIST OF STRING?"),
        ("LIST? OF LIST OF FLOAT?", "LIST? OF LIST OF FLOAT?"),
        ("LIST<STRING?>?", "LIST? OF STRING?"),
        ("LIST", "LIST OF ANY?"),
        ("LOCAL DATETIME?", "LOCALDATETIME?"),
        ("ANY", "ANY?"),
        ("int", "INTEGER"),
        (int, "INTEGER"),
        (int | None, "INTEGER?"),
        (Optional[str], "STRING?"),  # noqa: UP045
        (Union[int, float], "NUMBER"),  # noqa: UP007
        (int | str | None, "ANY?"),
        (list[str], "LIST OF STRING"),
        (list, "LIST OF ANY?"),
        (Sequence[int | None] | None, "LIST? OF INTEGER?"),
        (dict[str, int], "MAP"),
        (Mapping[str, Any], "MAP"),
        (datetime.date, "DATE"),
        (Node, "NODE"),
        (object, "ANY?"),
        (Any, "ANY?"),
    ],
)
def test_types(declared: object, text: str) -> None:
    found = type_of(declared)
    assert str(found) == text
    assert type_of(str(found)) == found


@pytest.mark.parametrize(
    "declared", ["", "NUMERIC", "LIST OF", "INTEGER??", "LIST<STRING", "? INTEGER", "INTEGER)", 7, set, complex]
)
def test_what_is_no_type(declared: object) -> None:
    with pytest.raises(GraphDBError, match="there is no type"):
        type_of(declared)


@pytest.mark.parametrize(
    ("type", "right", "wrong"),
    [
        ("INTEGER", [1, -(2**63), 2**63 - 1], [1.0, True, "1", 2**63, None]),
        ("INTEGER?", [None], [1.5]),
        ("FLOAT", [1.0, float("nan")], ["1", True]),
        ("NUMBER", [1, 1.5], [True, "1"]),
        ("BOOLEAN", [True], [1, "true"]),
        ("STRING", ["", "a"], [b"a", 1]),
        ("DATE", [datetime.date(2020, 1, 2)], [datetime.datetime(2020, 1, 2), "2020-01-02"]),
        ("LOCALDATETIME", [datetime.datetime(2020, 1, 2)], [datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC)]),
        ("DATETIME", [datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC)], [datetime.datetime(2020, 1, 2), datetime.date(2020, 1, 2)]),
        ("LOCALTIME", [datetime.time(1)], [datetime.time(1, tzinfo=datetime.UTC)]),
        ("DURATION", [datetime.timedelta(1), Duration(1, 2, 3, 4)], [1]),
        ("MAP", [{}, {"a": 1}], [[("a", 1)]]),
        ("LIST OF INTEGER", [[], [1]], [[None], ["a"], 1]),
        ("LIST OF LIST OF INTEGER?", [[[None], [1]]], [[1], [["a"]]]),
        ("NODE", [Node("a:b")], ["a:b"]),
        ("ANY?", [None, 1, "a", []], []),
    ],
)  # fmt: skip
def test_values_of_types(type: str, right: list[Any], wrong: list[Any]) -> None:
    declared = type_of(type)
    for value in right:
        (found,) = declared.fitted([value])
        assert repr(found) == repr(value)
    assert repr(list(declared.fitted(right))) == repr(right)
    for value in wrong:
        for values in ([value], [*right, value]):
            with pytest.raises(NotOfType):
                declared.fitted(values)


def test_integers_become_floats() -> None:
    assert [repr(value) for value in type_of("FLOAT?").fitted([1, None, 2.5])] == ["1.0", "None", "2.5"]
    assert repr(type_of("LIST OF FLOAT").fitted([[1], []])) == "[[1.0], []]"


def test_signatures() -> None:
    def nothing() -> None: ...

    def some(a: int, b: str | None = None, *, c: int = 1) -> None: ...

    def plain(a, b=2): ...  # type: ignore[no-untyped-def]

    assert str(signature_of("a.b(x :: INTEGER?, y::LIST OF STRING) :: (z :: ANY?)", plain)) == (
        "a.b(x :: INTEGER?, y :: LIST OF STRING) :: (z :: ANY?)"
    )
    assert str(signature_of("a.b.c() :: VOID", nothing)) == "a.b.c() :: ()"
    assert str(signature_of("a.b", plain, columns={"x": "FLOAT"})) == "a.b(a :: ANY?, b :: ANY?) :: (x :: FLOAT)"
    assert signature_of("a.b", plain).required == 1
    assert signature_of("a.b", max, {"x": "ANY?"}).required == 1
    with pytest.raises(GraphDBError, match=r"'c' of .* is not passed by its place"):
        signature_of("a.b", some)


@pytest.mark.parametrize(
    ("name", "named", "words"),
    [
        ("number", {}, "needs a namespace"),
        ("", {}, "needs a namespace"),
        ("a.b(x)", {}, "is no signature"),
        ("a.b(x) :: (y :: STRING)", {}, "is not 'name :: TYPE'"),
        ("a.b(x :: NUMERIC) :: ()", {}, "there is no type 'NUMERIC'"),
        ("a.b(x :: ANY, x :: ANY) :: ()", {}, "a name stands twice"),
        ("a.b() :: (x :: PATH)", {}, "cannot yield a PATH"),
        ("a.b() :: (x :: ANY)", {"columns": {}}, "said twice"),
        ("a.b", {"columns": {"x": "NUMERIC"}}, "there is no type"),
    ],
)
def test_what_is_no_signature(name: str, named: dict[str, Any], words: str) -> None:
    with pytest.raises(GraphDBError, match=words):
        signature_of(name, lambda: None, **named)

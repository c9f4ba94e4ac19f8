"""Numbers in SQL against Python: arithmetic and aggregates of what is largest, exact, infinite or no number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import product
from typing import Any

import pytest

import graphdb
from graphdb.common.errors import ExecutionError, GraphDBError
from tests.oracle.routes import in_python

EXACT = Decimal("12345678901234567890.123456789012345678")
NUMBERS: tuple[Any, ...] = (0, 3, -(2**63), -0.0, 2.5, math.nan, math.inf, Decimal("-2.5"), EXACT)
LISTS: tuple[list[Any], ...] = (
    [2**63 - 1, 1],
    [1e308, 1e308],
    [math.inf, -math.inf],
    [math.nan, 1.0],
    [EXACT, EXACT, None],
    [Decimal("1.5"), 2],
)


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu") as db:
        yield db


def ran(query: Callable[[], list[tuple[Any, ...]]]) -> Any:
    try:
        ((value,),) = query()
    except GraphDBError as error:
        return type(error)
    return value


def same(a: Any, b: Any) -> bool:
    """Whether values are one number, of one type; with -0.0 distinct from 0.0, NaN like NaN."""
    return repr(a) == repr(b)


def both(db: graphdb.Database, text: str, /, **arguments: Any) -> tuple[Any, Any]:
    """Run a query as SQL, and with its expressions computed in Python."""
    return ran(lambda: db.query(text, arguments).fetchall()), ran(lambda: in_python(db, text, arguments))


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "%"])
def test_arithmetic(db: graphdb.Database, operator: str) -> None:
    for a, b in product(NUMBERS, NUMBERS):
        found, computed = both(db, f"RETURN $a {operator} $b", a=a, b=b)
        if operator == "*" and (isinstance(a, Decimal) or isinstance(b, Decimal)):
            # By the types alone SQL takes floats, or refuses, where a product could have more than 38 digits.
            agree = found is ExecutionError or math.isclose(found, computed) or math.isnan(found)
        else:
            agree = same(found, computed)
        assert agree, (a, operator, b, found, computed)


def test_functions(db: graphdb.Database) -> None:
    calls = ("-$a", "abs($a)", "sign($a)", "ceil($a)", "floor($a)", "round($a)", "toString($a)", "'' + $a", "-(-$a)")
    for a, call in product(NUMBERS, calls):
        found, computed = both(db, f"RETURN {call}", a=a)
        assert same(found, computed), (a, call, found, computed)


@pytest.mark.parametrize("values", LISTS, ids=str)
def test_aggregates(db: graphdb.Database, values: list[Any]) -> None:
    calls = ("sum(x)", "avg(x)", "min(x)", "max(x)", "percentileDisc(x, 0)", "percentileCont(x, 0.5)")
    for call in calls:
        found, computed = both(db, f"UNWIND $l AS x RETURN {call}", l=values)
        assert same(found, computed), (values, call, found, computed)
    if not any(map(math.isnan, filter(None, values))):
        assert both(db, "UNWIND $l AS x RETURN stDev(x) >= 0", l=values)[1] is not None

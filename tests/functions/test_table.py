"""The table of functions: documented, complete in both forms, and the same values whether SQL or Python computes them."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import graphdb
from graphdb.evaluate.builtins.scalar import FACETS, FUNCTIONS
from graphdb.functions.signature import Kind, Signature, parameters
from graphdb.functions.table import NAMES, SIGNATURE_OF, SIGNATURES
from graphdb.sql.aggregates import AGGREGATES
from graphdb.sql.functions import FORMS
from tests.fuzz import FUZZ, scaled
from tests.oracle.routes import in_python

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "language"

POOL: dict[str, list[str]] = {
    "number": ["n.i", "n.f", "2", "-1.5", "0", "0.25", "null"],
    "integer": ["n.i", "3", "0", "null"],
    "string": ["n.s", "'ab'", "' x '", "''", "null"],
    "list": ["[1, 2, 3]", "[n.i, n.f]", "['a', null]", "[]", "null"],
    "boolean": ["true", "n.b", "null"],
    "temporal": ["n.d", "date('2020-02-29')", "datetime('2020-01-01T10:00+01:00')", "localtime('10:00')", "null"],
    "map": ["{a: 1}", "{}", "null"],
    "vertex": ["n", "m"],
    "edge": ["e"],
    "path": ["p"],
    "literal": ["n.s", "n.i", "n.d"],
}
WIDER: dict[str, tuple[str, ...]] = {
    "element": ("vertex", "edge"),
    "named": ("vertex", "edge"),
    "term": ("vertex",),
    "propertied": ("vertex", "edge", "map"),
    "long": ("path", "string", "list"),
    "sized": ("string", "list"),
    "scalar": ("number", "string", "boolean", "temporal"),
    "any": ("number", "string", "list", "temporal", "boolean"),
    "float": ("number",),
}
TEXTS = {
    "unit": ["'year'", "'month'", "'day'"],
    "form": ["'NFC'", "'NFD'"],
    "digits": ["0", "1", "2"],
    "step": ["1", "-2", "3"],
    "parts": ["{}"],
    "seconds": ["0", "1577836800"],
    "milliseconds": ["0", "1577836800123"],
}
"""Values of parameters that take few."""


def argument(dice: random.Random, name: str, kind: Kind) -> str:
    if name in TEXTS:
        return dice.choice(TEXTS[name])
    kinds = WIDER.get(kind, (kind,))
    return dice.choice(POOL[dice.choice(kinds)])


def calls(signature: Signature, dice: random.Random, count: int) -> Iterator[str]:
    for _ in range(count):
        given = [p for p in signature.parameters if not p.optional or dice.random() < 0.6]
        if signature.volatility == "stable" and not given:
            continue  # the clock
        arguments = [argument(dice, p.name, p.kind) for p in given for _ in range(3 if p.repeated else 1)]
        name = dice.choice([signature.name, signature.name.upper(), *signature.aliases])
        yield f"{name}({', '.join(arguments)})"


def same(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (float, Decimal)) and isinstance(b, (float, Decimal)):
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-12)
    return type(a) is type(b) and bool(a == b)


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        database.query(
            "UNWIND [[0, 1, 0.5, 'Ada', true, '2020-02-29'], [1, -7, -2.25, 'x,y ', false, '1815-12-10'], "
            "[2, 9007199254740993, 1e300, '', true, '2000-01-01']] AS r "
            "CREATE (n:N {k: r[0], i: r[1], f: r[2], s: r[3], b: r[4], d: date(r[5])})-[:R {w: r[1]}]->(:M {k: r[0]})"
        )
        yield database


def outcome(run: Any) -> Any:
    try:
        return sorted(run(), key=lambda row: row[0])
    except graphdb.GraphDBError as error:
        return type(error).__name__


@pytest.mark.parametrize("group", list(dict.fromkeys(s.group for s in SIGNATURES if not s.aggregate)))
def test_sql_equals_python(db: graphdb.Database, group: str) -> None:
    """Each function over values of all kinds that it takes: the same values, or an error, either way."""
    for signature in (s for s in SIGNATURES if s.group == group and s.volatility != "volatile" and not s.aggregate):
        dice = random.Random(f"{signature.key} {FUZZ}")
        for call in calls(signature, dice, scaled(4)):
            text = f"MATCH p = (n:N)-[e:R]->(m) RETURN n.k AS k, {call} AS x"
            by_default, by_python = (
                outcome(lambda t=text: db.query(t).fetchall()),
                outcome(lambda t=text: in_python(db, t)),
            )
            if isinstance(by_python, str) or isinstance(by_default, str):
                assert type(by_python) is type(by_default), (text, by_default, by_python)
                continue
            assert same(by_default, by_python), (text, by_default, by_python)


def test_every_function_has_its_forms() -> None:
    scalars = {s.key for s in SIGNATURES if not s.aggregate}
    assert scalars == {SIGNATURE_OF[name].key for name in FUNCTIONS} | FACETS
    assert set(FORMS) <= scalars
    assert {s.key for s in SIGNATURES if s.aggregate} == set(AGGREGATES)
    names = [name for s in SIGNATURES for name in (s.key, *s.aliases)]
    assert len(names) == len(set(names)), "one definition of each"


def test_every_function_is_in_the_reference() -> None:
    pages = "".join((REFERENCE / f"{page}.md").read_text(encoding="utf-8") for page in ("functions", "temporal", "rdf"))
    named = {
        word.lower() for code in re.findall(r"`([^`\n]+)`", pages) for word in re.findall(r"[A-Za-z_][\w.]*", code)
    }
    forms = {
        f"to{name}{suffix}".lower()
        for name in ("Integer", "Float", "Boolean", "String")
        for suffix in ("OrNull", "List")
    }
    absent = [s.name for s in SIGNATURES if s.key not in named and s.key not in forms]
    assert [name for name in absent if "." not in name and name != "timestamp"] == []


def test_calls_are_written_as_the_table_says() -> None:
    assert str(SIGNATURE_OF["round"]) == "round(x[, digits])"
    assert str(SIGNATURE_OF["coalesce"]) == "coalesce(a, …)"
    assert str(SIGNATURE_OF["pi"]) == "pi()"
    assert str(SIGNATURE_OF["ln"]) == "log(x)"
    assert [p.optional for p in parameters("a: string, b: integer?")] == [False, True]


def test_numbers_of_arguments_are_checked_by_the_table(db: graphdb.Database) -> None:
    for signature in SIGNATURES:
        if signature.most is None or signature.name == "count":
            continue
        arguments = ", ".join(["1"] * (signature.most + 1))
        wrong = signature.wrong_number(signature.name, signature.most + 1)
        assert wrong is not None
        with pytest.raises(graphdb.GraphDBError, match=re.escape(wrong)):
            db.query(f"RETURN {signature.name}({arguments})")


def test_the_shell_knows_every_name() -> None:
    assert {s.name for s in SIGNATURES} <= set(NAMES)
    assert {"element_id", "nullif", "power"} <= set(NAMES)

"""Random well-formed queries over one small graph with every kind of literal: nothing fails but as it should.

The queries come from a small grammar with names that the graph has.  What is checked needs no oracle: laws that hold
for any query (a count is the number of rows, a tautology keeps them, so does a MATCH cut in two), and that errors are
ours, in our words rather than DuckDB's.  ``GRAPHDB_FUZZ`` multiplies the number of examples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

import graphdb
from graphdb.plan.passes import counting
from tests.fuzz import SAME, scaled

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

LEAKS = ("Binder Error", "Conversion Error", "INTERNAL", "Parser Error", "Catalog Error", "Internal Error", "LINE 1:")
"""Words that only DuckDB says, of SQL that the user did not write."""

DOCUMENTED = (
    "has several values",
    "Division by zero",
    "division by zero",
    "Overflow",
    "out of range",
    "Out of Range",
)
"""What may go wrong while a well-formed query runs."""


def _typed(value: str, datatype: str) -> str:
    return f'"{value}"^^<{XSD}{datatype}>'


def small_graph() -> Iterator[str]:
    """Yield the N-Triples of a graph with every kind of literal."""
    for vertex, label in [
        ("a", "Person"),
        ("a", "Woman"),
        ("b", "Person"),
        ("c", "Person"),
        ("c", "Robot"),
        ("d", "Firm"),
    ]:
        yield f"<urn:x:{vertex}> {RDF_TYPE} <urn:x:{label}> ."
    edges = "a knows b,b knows c,c knows a,a knows a,b likes a,a likes b,a worksAt d,b worksAt d,d both a"
    for edge in edges.split(","):
        start, label, end = edge.split()
        yield f"<urn:x:{start}> <urn:x:{label}> <urn:x:{end}> ."
    yield "_:blank <urn:x:knows> <urn:x:c> ."
    properties: dict[str, list[tuple[str, str]]] = {
        "age": [("a", _typed("36", "integer")), ("b", _typed("40", "integer")), ("c", _typed("-1", "integer"))],
        "name": [("a", '"Ada"'), ("b", '"Bob"'), ("c", '"Cé"'), ("d", '"Firm"')],
        "nick": [("a", '"Ada"'), ("a", '"Countess"'), ("b", '"B"')],
        "price": [("a", _typed("0.1", "decimal")), ("b", _typed("0.20", "decimal"))],
        "weight": [("a", _typed("1.5", "double")), ("b", _typed("NaN", "double")), ("c", _typed("INF", "double"))],
        "ok": [("a", _typed("true", "boolean")), ("b", _typed("false", "boolean"))],
        "born": [("a", _typed("1815-12-10", "date")), ("b", _typed("1990-01-01", "date"))],
        "seen": [("a", _typed("2020-01-01T10:00:00", "dateTime")), ("b", _typed("2020-06-01T00:00:00", "dateTime"))],
        "zoned": [
            ("a", _typed("2020-01-01T10:00:00Z", "dateTime")),
            ("c", _typed("2020-01-01T11:30:00+02:00", "dateTime")),
        ],
        "clock": [("a", _typed("10:30:00", "time")), ("b", _typed("09:00:00", "time"))],
        "motto": [("a", '"hello"@en'), ("a", '"bonjour"@fr'), ("b", '"hi"@en')],
        "odd": [("a", '"v"^^<urn:x:myType>')],
        "mixed": [
            ("a", _typed("1", "integer")),
            ("b", '"one"'),
            ("c", _typed("1.5", "decimal")),
            ("d", _typed("true", "boolean")),
        ],
        "several": [("a", _typed("1", "integer")), ("a", '"x"'), ("b", _typed("2", "integer"))],
        "both": [("b", '"text"')],
    }
    for key, values in properties.items():
        for vertex, literal in values:
            yield f"<urn:x:{vertex}> <urn:x:{key}> {literal} ."


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[graphdb.Database]:
    path = tmp_path_factory.mktemp("fuzz") / "graph.nt"
    path.write_text("\n".join(small_graph()) + "\n", encoding="utf-8")
    with graphdb.connect(threads=1) as opened:
        opened.load(path)
        yield opened


# --- the grammar -----------------------------------------------------------------------------------------------

KEYS = ["age", "name", "nick", "price", "weight", "ok", "born", "seen", "zoned", "clock", "motto", "odd", "mixed"]
KEYS += ["several", "both"]
EDGES = ["knows", "likes", "worksAt", "both", "name", "nick", "age", "mixed", "motto", "rdf:type", "knows|likes"]
EDGES += ["!knows", "%", "name|knows"]
LABELS = [
    "Person",
    "Woman",
    "Robot|Firm",
    "!Person",
    "%",
    "!%",
    "Person&!Robot",
    "(Woman|Robot)&Person",
    "<urn:x:None>",
]
NUMBERS = ["age", "price", "weight", "mixed"]
TEXTS = ["name", "nick", "motto", "odd", "mixed", "several"]
CONSTANTS = ["0", "1", "-1", "38", "1.5", "0.1", "1e300", "'Ada'", "'x'", "''", "'é'", "true", "false", "null"]
CONSTANTS += ["date('1900-01-01')", "datetime('2020-01-01T10:00:00')", "datetime('2020-01-01T10:00:00Z')"]
CONSTANTS += ["time('10:00:00')", "[1, 2]", "['Ada', 1, null]", "[]", "<urn:x:a>", "<urn:x:none>"]

pick = st.sampled_from


@st.composite
def patterns(draw: st.DrawFn, names: list[str]) -> list[str]:
    """Paths of one MATCH: a connected or disconnected pattern over ``names`` (at most three edges)."""
    paths = []
    for _ in range(draw(st.integers(1, 2))):
        path = _vertex(draw, names)
        for _ in range(draw(st.integers(0, 2 if not paths else 1))):
            left, right = draw(pick([("-", "->"), ("<-", "-"), ("-", "-")]))
            label = draw(pick(["", *(f":{e}" for e in EDGES)]))
            path += f"{left}[{label}]{right}" + _vertex(draw, names)
        paths.append(path)
    return paths


def _vertex(draw: st.DrawFn, names: list[str]) -> str:
    name = draw(pick(["a", "b", "c", ""]))
    if name and name not in names:
        names.append(name)
    label = draw(pick(["", "", "", *(f":{label}" for label in LABELS)]))
    extra = draw(pick(["", "", "", " {name: 'Ada'}", " {age: 36}", " {nick: 'B'}", " {mixed: 1.5}"]))
    return f"({name}{label}{extra})"


def numbers(names: list[str]) -> st.SearchStrategy[str]:
    leaf = st.builds(lambda v, k: f"{v}.{k}", pick(names), pick(NUMBERS)) | pick(["1", "2.5", "-3", "null", "1e3"])
    return st.recursive(
        leaf,
        lambda inner: (
            st.builds(lambda a, op, b: f"({a} {op} {b})", inner, pick(["+", "-", "*", "/", "%", "^"]), inner)
            | st.builds(
                lambda f, a: f"{f}({a})", pick(["abs", "sign", "round", "floor", "toInteger", "-", "toFloat"]), inner
            )
        ),
        max_leaves=3,
    )


def texts(names: list[str]) -> st.SearchStrategy[str]:
    leaf = st.builds(lambda v, k: f"{v}.{k}", pick(names), pick(TEXTS)) | pick(["'Ada'", "''", "'é'", "null"])
    made = st.builds(lambda f, a: f"{f}({a})", pick(["toUpper", "trim", "toString", "reverse"]), leaf)
    return leaf | made | st.builds(lambda a, b: f"({a} + {b})", leaf, leaf)


def values(names: list[str]) -> st.SearchStrategy[str]:
    properties = st.builds(lambda v, k: f"{v}.{k}", pick(names), pick(KEYS))
    calls = st.builds(lambda f, v: f"{f}({v})", pick(["iri", "id", "labels"]), pick(names))
    facets = st.builds(
        lambda f, v, k: f"{f}({v}.{k})", pick(["lang", "datatype", "toString", "coalesce"]), pick(names), pick(KEYS)
    )
    return properties | pick(names) | calls | facets | numbers(names) | texts(names) | pick(CONSTANTS)


def conditions(names: list[str]) -> st.SearchStrategy[str]:
    value = values(names)
    leaf = st.one_of(
        st.builds(lambda a, op, b: f"{a} {op} {b}", value, pick(["=", "<>", "<", "<=", ">", ">="]), value),
        st.builds(
            lambda a, op, b: f"{a} {op} {b}", texts(names), pick(["STARTS WITH", "ENDS WITH", "CONTAINS"]), texts(names)
        ),
        st.builds(lambda a, b: f"{a} IN [{', '.join(b)}]", value, st.lists(pick(CONSTANTS[:14]), max_size=3)),
        st.builds(lambda a, n: f"{a} IS {n}NULL", value, pick(["", "NOT "])),
        st.builds(lambda v, label: f"{v}:{label}", pick(names), pick(["Person", "!Person", "Woman|Robot"])),
        st.builds(
            lambda v, e, w: f"({v})-[{e}]->({w})",
            pick(names),
            pick(["", ":knows", ":likes", ":name"]),
            pick([*names, "", ":Firm"]),
        ),
    )
    return st.recursive(
        leaf,
        lambda inner: (
            st.builds(lambda a, op, b: f"({a} {op} {b})", inner, pick(["AND", "OR", "XOR"]), inner)
            | st.builds(lambda a: f"NOT ({a})", inner)
        ),
        max_leaves=3,
    )


@st.composite
def matches(draw: st.DrawFn) -> tuple[str, str, list[str]]:
    """A MATCH without WHERE, its condition (maybe empty), and its vertices' names (at least one)."""
    names: list[str] = []
    paths = draw(patterns(names))
    assume(names)
    mode = draw(pick(["", "", "REPEATABLE ELEMENTS ", "DIFFERENT NODES ", "INDUCED "]))
    condition = draw(conditions(names)) if draw(st.booleans()) else ""
    return f"MATCH {mode}{', '.join(paths)}", condition, names


@st.composite
def queries(draw: st.DrawFn) -> str:
    match, condition, names = draw(matches())
    items = [f"{value} AS c{i}" for i, value in enumerate(draw(st.lists(values(names), min_size=1, max_size=3)))]
    if draw(st.booleans()):
        function = draw(pick(["count", "collect", "min", "max", "sum", "avg", "count(DISTINCT", "collect(DISTINCT"]))
        inner = draw(values(names))
        items.append(f"{function} {inner}) AS g" if "(" in function else f"{function}({inner}) AS g")
    order = draw(pick(["", "", " ORDER BY c0", " ORDER BY c0 DESC"]))
    page = draw(pick(["", "", "", " SKIP 1", " LIMIT 2", " SKIP 1 LIMIT 1"]))
    where = f" WHERE {condition}" if condition else ""
    return f"{match}{where} RETURN {draw(pick(['', 'DISTINCT ']))}{', '.join(items)}{order}{page}"


# --- the laws --------------------------------------------------------------------------------------------------


def _settings(examples: int) -> Any:
    return settings(
        max_examples=scaled(examples),
        deadline=None,
        derandomize=SAME,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )


def _answer(db: graphdb.Database, text: str) -> list[tuple[Any, ...]] | None:
    """The rows, or None after an error that is as it should be."""
    note(text)
    try:
        return db.query(text).fetchall()
    except graphdb.GraphDBError as error:
        report = str(error)
        if not any(word in report for word in DOCUMENTED):
            leaked = [word for word in LEAKS if word in report]
            assert not leaked, f"{text}\n{report}"
        return None


def _bag(rows: list[tuple[Any, ...]]) -> Counter[str]:
    return Counter(map(repr, rows))


@_settings(70)
@given(text=queries())
def test_a_query_answers_or_fails_in_our_words(db: graphdb.Database, text: str) -> None:
    rows = _answer(db, text)
    if rows is not None:
        names = text.partition(" RETURN ")[2]
        assert all(len(row) == names.count(" AS ") for row in rows)


@_settings(25)
@given(text=queries())
def test_explain_and_columns_work_for_what_runs(db: graphdb.Database, text: str) -> None:
    if _answer(db, text) is None:
        return
    assert "SQL over the bindings" in db.explain(text)
    result = db.query(text)
    table = result.to_arrow()
    assert table.num_rows == len(result)
    assert tuple(table.column_names) == result.columns


@_settings(35)
@given(match=matches())
def test_a_count_is_the_number_of_rows(db: graphdb.Database, match: tuple[str, str, list[str]]) -> None:
    pattern, condition, names = match
    where = f" WHERE {condition}" if condition else ""
    rows = _answer(db, f"{pattern}{where} RETURN {', '.join(names)}")
    if rows is not None:
        assert db.query(f"{pattern}{where} RETURN count(*)").scalar() == len(rows)
        assert len(db.query(f"{pattern}{where} RETURN 1 AS one")) == len(rows)


@_settings(35)
@given(match=matches(), key=pick(KEYS), constant=pick(["1", "'Ada'", "date('1900-01-01')", "0.1"]))
def test_a_tautology_keeps_the_rows(
    db: graphdb.Database, match: tuple[str, str, list[str]], key: str, constant: str
) -> None:
    pattern, condition, names = match
    returned = f"RETURN {', '.join(f'id({name})' for name in names)}"
    rows = _answer(db, f"{pattern}{f' WHERE {condition}' if condition else ''} {returned}")
    if rows is None:
        return
    x = f"{names[0]}.{key}"
    always = f"({x} = {constant} OR NOT {x} = {constant} OR {x} IS NULL)"
    more = f"({condition}) AND {always}" if condition else always
    again = _answer(db, f"{pattern} WHERE {more} {returned}")
    assert again is not None
    assert _bag(again) == _bag(rows)


@_settings(35)
@given(match=matches())
def test_a_condition_parts_the_rows_in_three(db: graphdb.Database, match: tuple[str, str, list[str]]) -> None:
    """Every match makes a condition true, false or null, and only one of them."""
    pattern, condition, names = match
    assume(condition)
    returned = f"RETURN {', '.join(f'id({name})' for name in names)}"
    true = _answer(db, f"{pattern} WHERE {condition} {returned}")
    if true is None:
        return
    false = _answer(db, f"{pattern} WHERE NOT ({condition}) {returned}")
    unknown = _answer(db, f"{pattern} WHERE ({condition}) IS NULL {returned}")
    every = _answer(db, f"{pattern} {returned}")
    assume(false is not None and unknown is not None)
    assert false is not None
    assert unknown is not None
    assert every is not None
    assert _bag(true) + _bag(false) + _bag(unknown) == _bag(every)


@_settings(25)
@given(data=st.data())
def test_a_homomorphic_match_may_be_cut_in_two(db: graphdb.Database, data: st.DataObject) -> None:
    names: list[str] = []
    paths = data.draw(patterns(names)) + data.draw(patterns(names))
    assume(names)
    returned = f"RETURN {', '.join(f'id({name})' for name in names)}"
    whole = _answer(db, f"MATCH REPEATABLE ELEMENTS {', '.join(paths)} {returned}")
    cut = _answer(db, " ".join(f"MATCH REPEATABLE ELEMENTS {path}" for path in paths) + f" {returned}")
    assert (whole is None) == (cut is None)
    if whole is not None and cut is not None:
        assert _bag(whole) == _bag(cut)


@_settings(35)
@given(match=matches(), data=st.data())
def test_aggregates_are_what_all_rows_say(
    db: graphdb.Database, match: tuple[str, str, list[str]], data: st.DataObject
) -> None:
    """DISTINCT, count(DISTINCT) and grouped counts go through fewer matches, and say the same."""
    pattern, condition, names = match
    where = f" WHERE {condition}" if condition else ""
    rows = _answer(db, f"{pattern}{where} RETURN {', '.join(f'id({name}) AS {name}' for name in names)}")
    assume(rows)
    assert rows is not None
    keys = data.draw(st.lists(pick(names), min_size=1, max_size=2, unique=True))
    other = data.draw(pick(names))
    limit = data.draw(st.integers(0, 5))
    at = [names.index(key) for key in keys]
    key = ", ".join(f"id({key})" for key in keys)
    groups = Counter(tuple(row[i] for i in at) for row in rows)
    others = {g: {row[names.index(other)] for row in rows if tuple(row[i] for i in at) == g} for g in groups}
    with (
        mock.patch.object(counting, "WORTH", -1.0),
        mock.patch.object(counting, "OVERHEAD", data.draw(pick([0.0, -1e9]))),
    ):

        def ask(returned: str) -> list[tuple[Any, ...]]:
            # A text that is new, so that nothing was planned for it before.
            return db.query(f"{pattern}{where} RETURN {returned}{' ' * data.draw(st.integers(0, 99))}").fetchall()

        assert Counter(ask(f"DISTINCT {key}")) == Counter(groups.keys())
        found = ask(f"{key}, count(*), count({other}), count(DISTINCT {other})")
        assert sorted(found) == sorted((*g, n, n, len(others[g])) for g, n in groups.items())
        assert ask(f"count(DISTINCT {keys[0]})") == [(len({g[0] for g in groups}),)]
        assert ask(f"count(*), count(DISTINCT {keys[0]})") == [(len(rows), len({g[0] for g in groups}))]
        page = ask(f"DISTINCT {', '.join(keys)} LIMIT {limit}")
        assert len(set(page)) == len(page) == min(limit, len(groups))

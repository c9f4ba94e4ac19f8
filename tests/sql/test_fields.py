"""What is decided by an expression's SQL is decided by fields of its value: how names and texts look is no matter."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.values.types import INTEGER, NODE, STRING, VALUE, Base, Column, Type
from graphdb.relational.program import Called, Joined, Program, Rows, Searched, Step
from graphdb.relational.projection.presentation import presented
from graphdb.relational.query import QueryRun
from graphdb.sql.compiler import Compiler
from graphdb.sql.equivalence import key
from graphdb.sql.types.list_items import ItemRows
from graphdb.sql.value import NO_EFFECTS, Effects, SqlValue, column, named
from tests.fuzz import scaled

FRAGMENTS = ["error(", "(SELECT ", "unnest(", "_rows1 ", "_bindings1 ", "b.c0", "temp.", "x0_1.", "$p0", '"', "'", " "]
looks_like_sql = st.lists(st.sampled_from([*FRAGMENTS, "a", "Z9"]), min_size=1, max_size=5).map("".join)


def spied(patch: pytest.MonkeyPatch) -> list[Program]:
    """Return a list of the programs that are prepared from now on."""
    programs: list[Program] = []
    prepare = QueryRun._prepare_program

    def spy(self: QueryRun, *arguments: Any) -> Program:
        programs.append(found := prepare(self, *arguments))
        return found

    patch.setattr(QueryRun, "_prepare_program", spy)
    return programs


# --- names and texts that look like SQL


def named_column(name: str, type: Type) -> Column:
    return Column(name, name, type)


@pytest.mark.parametrize("type", [INTEGER, STRING, NODE])
@given(name=looks_like_sql)
@settings(max_examples=scaled(40))
def test_a_columns_name_does_not_change_how_rows_are_shown(type: Type, name: str) -> None:
    shown = presented("r", (named_column(name, type),))
    assert shown.replace(quoted(name), '"x"') == presented("r", (named_column("x", type),))


@given(name=looks_like_sql)
@settings(max_examples=scaled(40))
def test_a_key_of_a_map_does_not_change_how_rows_are_shown(name: str) -> None:
    def shown(key: str) -> str:
        return presented("r", (named_column("m", Type(Base.MAP, fields=((key, INTEGER),))),))

    assert shown(name).replace(quoted(name), '"x"') == shown("x")


@given(name=looks_like_sql, texts=st.lists(looks_like_sql, min_size=1, max_size=4))
@settings(max_examples=scaled(6), deadline=None)
def test_queries_with_such_names_and_texts_have_the_plans_and_rows_of_others(name: str, texts: list[str]) -> None:
    word = name.replace("`", "")
    assume(word not in {"a", "b", "m", "n", "p", "x", "one"})  # what the query calls its own

    def query(key: str) -> str:
        return (
            f"MATCH (a:P) WHERE a.`{key}` IN $texts AND size([x IN $texts WHERE x = a.`{key}`]) > 0 "
            f"WITH a, a.`{key}` AS `{key}`, a.n / a.one AS n OPTIONAL MATCH (a)-[:K]->(b) WHERE b.n / b.one > n "
            f"RETURN `{key}`, {{`{key}`: n}} AS m, b.n AS b ORDER BY n"
        )

    def rows(key: str, texts: list[str]) -> tuple[list[Any], list[str]]:
        with graphdb.connect() as db, pytest.MonkeyPatch.context() as patch:
            people = [{"text": text, "n": n} for n, text in enumerate([*texts, "other"])]
            db.query(
                f"UNWIND $people AS p CREATE (:P {{`{key}`: p.text, n: p.n, one: 1}})-[:K]->(:Q {{n: p.n + 1, one: 1}})",
                people=people,
            )
            programs = spied(patch)
            found = db.query(query(key), texts=texts).fetchall()
            sql = [
                sql
                for program in programs
                for sql in (program.projection.sql, *map(str, map(statements, program.steps)))
            ]
            # Labels have numbers by the order of their names.
            return found, [re.sub(r"_graphdb_\w+|\blabel = \d+", "view", text) for text in sql]

    found, sql = rows(word, texts)
    assert found == [(text, {word: n}, n + 1) for n, text in enumerate(texts)]
    assert sql
    assert sql == rows("plain", [f"t{texts.index(text)}" for text in texts])[1]


def test_how_deep_a_value_is_within_maps_does_not_change_how_it_is_grouped() -> None:
    type = VALUE
    for _ in range(8):
        type = Type(Base.MAP, fields=(("k", type),))
    assert "lambda" not in key(None, column("c0", type))  # type: ignore[arg-type]  # a part of a column is named again


# --- the fields, by the text: an independent oracle

TEXTS = [
    "MATCH (a:P) WHERE a.n / a.n > 1 AND toInteger(a.n) = 2 RETURN a.n",
    "MATCH (a:P) WHERE substring(a.name, a.n) = 'x' OR a.name STARTS WITH 'error(' RETURN a.name",
    "MATCH (a:P) WHERE a.mixed + 1 > 2 AND toInteger(a.mixed) > 0 RETURN abs(a.mixed), a.mixed || 'x'",
    "MATCH (a:P) WHERE a.tags + 'x' = 'ax' RETURN a.tags",
    "MATCH p = ANY SHORTEST (a:P)-[:K]->+(b) RETURN [x IN nodes(p) WHERE x:P AND x.n > 1 | x.name + a.name] AS l",
    "MATCH p = ANY SHORTEST (a:P)-[:K]->+(b) WHERE any(x IN nodes(p) WHERE size(labels(x)) > 0 AND a.n = x.n) RETURN a.n",
    "MATCH p = (a:P)-[:K]->(b) RETURN reduce(t = 0, x IN nodes(p) | t + x.n) AS t, [r IN relationships(p) | type(r)]",
    "MATCH (a:P) RETURN [x IN [1, 2, 3] WHERE x % a.n = 1 | x / a.n] AS l, range(1, a.n) AS r",
    "MATCH (a:P) WHERE a.n IN range(1, 5) AND NOT a = iri('http://x') RETURN iri(a), id(a), keys(a)",
    "MATCH (a:P) WITH a, a.n AS n WHERE (a)-[:K]->() RETURN n, count(*) ORDER BY n",
    "UNWIND [1, 2] AS x MATCH (a:P {n: x}) WITH a, count { (a)-[:K]->() } AS d RETURN a.name, d",
    "MATCH (a:P) OPTIONAL MATCH (a)-[:K]->(b) WHERE b.n / a.n > 1 WITH a, collect(b) AS bs RETURN a.n, size(bs)",
    "MATCH (a:P) CALL (a) { MATCH (a)-[:K]->(b) RETURN b.n AS m ORDER BY m LIMIT 1 } RETURN a.n, m",
    "MATCH (a:P)-[:K]->(b) RETURN a.mixed AS m, count(DISTINCT b.mixed) AS d UNION ALL MATCH (c:P) RETURN c.n AS m, 1 AS d",
    "MATCH p = ANY SHORTEST (a:P)-[:K]->*(b:P) WHERE a.n < b.n RETURN length(p), b.n",
    "MATCH (a:P), (b:P) WHERE a.tags = b.name RETURN a.n, b.n",
    "MATCH (a:P) RETURN exists { MATCH (a)-[:K]->(b) WHERE b.n / a.n > 1 } AS e, [(a)-[:K]->(c) | c.n] AS l",
]


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect() as found:
        found.query(
            "CREATE (a:P {name: 'Ada', n: 1, mixed: 1}), (b:P {name: 'Bob', n: 2, mixed: 'x'}),"
            " (c:P {name: 'Cy', n: 3, mixed: 1.5, tags: ['a']}), (a)-[:K]->(b), (b)-[:K]->(c), (a)-[:K]->(c)"
        )
        yield found


def test_effects_are_those_of_all_that_a_value_is_made_of(
    db: graphdb.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[SqlValue] = []
    joins: list[tuple[bool, bool]] = []
    with_effects, join = Compiler._with_effects, ItemRows._join

    def spy(self: Compiler, make: Callable[[], SqlValue]) -> SqlValue:
        compiled.append(found := with_effects(self, make))
        return found

    def spy_join(self: ItemRows, what: str, which: int | None, element: SqlValue, template: str) -> str:
        mentions = re.search(rf"\b{self._item}(_\d+)?\.", template) is not None
        joins.append((self._item in element.reads, mentions))
        return join(self, what, which, element, template)

    monkeypatch.setattr(Compiler, "_with_effects", spy)
    monkeypatch.setattr(ItemRows, "_join", spy_join)
    for text in TEXTS:
        db.explain(text)
    for value in compiled:
        if "_graphdb_call" not in value.sql or "error(" in value.sql:  # what Python computes may fail, too
            assert value.effects.raises == ("error(" in value.sql), value.sql
            assert value.can_fail or not value.effects.raises
        assert value.subquery == ("(SELECT " in value.sql), value.sql
        if value.column is not None:
            assert value.sql.endswith(f".{value.column}"), value.sql
    assert {value.can_fail for value in compiled} == {value.subquery for value in compiled} == {True, False}
    assert all(reads == mentions for reads, mentions in joins)
    assert {reads for reads, _ in joins} == {True, False}


def test_steps_know_the_tables_and_views_that_they_read(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = spied(monkeypatch)
    for text in TEXTS:
        db.explain(text)
    seen = 0
    for program in programs:
        joined = [step for step in program.steps if isinstance(step, Joined)]
        for step in program.steps:
            name = step.view
            assert (name in program.projection.reads) == mentions(name, program.projection.sql, joined)
            for other in program.steps:
                assert (name in other.reads) == any(mentions(name, sql, joined) for sql in statements(other))
                seen += name in other.reads
    assert seen > 10


def mentions(name: str, sql: str, joined: list[Joined]) -> bool:
    """Whether SQL names a view, or joined rows, which may be a view themselves, that do."""
    if re.search(rf"\b{name}\b", sql) is not None:
        return True
    before = [step for step in joined if re.search(rf"\b{step.view}\b", sql) is not None]
    return any(mentions(name, step.sql(""), joined) for step in before)


def statements(step: Step | Searched | Called | Rows) -> list[str]:
    match step:
        case Step():
            return [given.sql for given in step.given]
        case Searched():
            return [] if step.start is None else [step.start]
        case Called():
            return [step.groups]
        case Joined():
            return [step.sql("")]
        case _:
            return [step.sql]


def test_the_effects_of_several_operands_are_united() -> None:
    one, two = Effects(can_fail=True, reads=frozenset("a")), Effects(volatile=True, reads=frozenset("b"))
    assert one | two == Effects(can_fail=True, volatile=True, reads=frozenset("ab")) == two | one
    assert one | NO_EFFECTS is one
    assert NO_EFFECTS | two is two
    assert named("x", INTEGER, effects=one).made("-x").effects is one
    assert one.joined == Effects(reads=frozenset("a"))


# --- nobody reads SQL that the compiler wrote

COMPILED_SQL = ("sql", "relational", "writing")
"""The packages that write SQL; ``relational/session`` reads the user's own."""

EXCEPTIONS = {
    "Parameters.used": "placeholders of a whole statement: DuckDB refuses values for others",
    "_lambdas": "how many lambdas are in each other, which takes DuckDB long; what is counted wrongly is computed by Python",
    "Compiler.native": "how long it is: SQL that doubles with each call in a call would take DuckDB's memory",
    "Compiler.affordable": "how long a clause's columns are, which DuckDB binds in one piece",
    "Profile.ran_sql": "whether what DuckDB has measured last is this statement",
}

_READING = {
    *("startswith", "endswith", "removeprefix", "removesuffix", "find", "index", "count", "replace", "split"),
    *("partition", "rpartition", "strip", "match", "fullmatch", "search", "findall", "finditer", "sub"),
}


def is_sql(node: ast.AST) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name == "sql" or name.endswith("_sql")


def reading(tree: ast.AST, within: str = "") -> Iterator[tuple[str, int]]:
    """Yield where SQL is taken apart, searched, measured or compared."""
    for node in ast.iter_child_nodes(tree):
        name = f"{within}.{node.name}".strip(".") if isinstance(node, (ast.ClassDef, ast.FunctionDef)) else within
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others) if any(map(is_sql, (left, *others))):
                if any(isinstance(op, (ast.In, ast.NotIn, ast.Eq, ast.NotEq)) for op in ops):
                    yield name, node.lineno
            case ast.Call(func=ast.Attribute(value=value, attr=method), args=arguments) if method in _READING:
                if any(map(is_sql, (value, *arguments))):
                    yield name, node.lineno
            case ast.Call(func=ast.Name("len"), args=arguments) if any(map(is_sql, arguments)):
                yield name, node.lineno
            case ast.Subscript(value=value) if is_sql(value):
                yield name, node.lineno
        yield from reading(node, name)


def test_no_module_searches_the_sql_that_it_writes() -> None:
    root = Path(graphdb.__file__).parent
    paths = [path for folder in COMPILED_SQL for path in (root / folder).rglob("*.py") if "session" not in path.parts]
    assert len(paths) > 40
    found = [(path.name, name, line) for path in paths for name, line in reading(ast.parse(path.read_text()))]
    assert [each for each in found if each[1] not in EXCEPTIONS] == []


@pytest.mark.parametrize(
    "code",
    [
        '"error(" in sql',
        'any("unnest(" in value.sql for value in values)',
        "value.sql[2:]",
        'source.sql.startswith("temp.")',
        "len(value.sql) < 40",
        "COLUMN.fullmatch(found.sql)",
        'id_sql.removeprefix("b.")',
        'left.sql == "NULL"',
    ],
)
def test_searching_is_noticed(code: str) -> None:
    assert list(reading(ast.parse(code)))

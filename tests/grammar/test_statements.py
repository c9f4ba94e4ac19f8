"""Statements and scripts: who reads which, where each ends, and how the parser is made."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from graphdb.common.caches import TextCache
from graphdb.common.errors import GraphDBError, ParseError
from graphdb.grammar import parser, tables
from graphdb.grammar.lexing import scan
from graphdb.grammar.machine import _RULES_OF_A_TEXT, _RULES_OF_A_TOKEN, Outline, Stopped
from graphdb.grammar.parser import _machine, is_complete, parse, parse_script, split
from graphdb.grammar.syntax import (
    CreateContinuous,
    CreateTable,
    DropContinuous,
    Explain,
    ExplainContinuous,
    Load,
    LoadSource,
    Option,
    Prefix,
    Query,
    ShowContinuous,
    Sql,
)
from tests.suites.grammar_texts import Writer


def query(text: str) -> Query:
    statement = parse(text)
    assert isinstance(statement, Query)
    return statement


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PREFIX foaf: <http://xmlns.com/foaf/0.1/>", Prefix("foaf", "http://xmlns.com/foaf/0.1/")),
        ("prefix : <http://x/>;", Prefix("", "http://x/")),
        ("LOAD 'people.nt.gz'", Load((LoadSource("people.nt.gz"),))),
        (
            r"LOAD 'C:\new\it''s.ttl', 'b' FORMAT turtle ON ERROR SKIP",
            Load((LoadSource(r"C:\new\it's.ttl"), LoadSource("b")), "turtle", "skip"),
        ),
        ("load 'a' on error stop;", Load((LoadSource("a"),), None, "stop")),
        (
            "LOAD 'a' COLUMNS {person: ':ID(P)', 'is friend': 'since:int'} TYPE knows LABEL <x:P> BASE <x:/> FORMAT csv",
            Load(
                (LoadSource("a"),),
                "csv",
                base="x:/",
                columns=(("person", ":ID(P)"), ("is friend", "since:int")),
                label=("x:P",),
                type="knows",
            ),
        ),
        (
            "LOAD 'a' AS LABEL A:B, 'b' AS TYPE k COLUMNS (':ID', NULL) DELIMITER '|' QUOTE '' NULL 'NA' HEADER FALSE",
            Load(
                (LoadSource("a", label=("A", "B")), LoadSource("b", type="k")),
                columns=(":ID", None),
                delimiter="|",
                quote="",
                null="NA",
                header=False,
            ),
        ),
        (
            "LOAD FROM (SELECT ')' AS x, (1) AS y -- (\n) AS LABEL X, MAPPING 'm.json' LIST DELIMITER ','",
            Load(
                (LoadSource(sql="SELECT ')' AS x, (1) AS y -- (", label=("X",)), LoadSource(mapping="m.json")),
                list_delimiter=",",
            ),
        ),
    ],
)
def test_prefix_and_load(text: str, expected: object) -> None:
    assert parse(text) == expected


def test_create_table() -> None:
    inner = query("MATCH (a) RETURN a")
    assert parse("CREATE TABLE t AS MATCH (a) RETURN a") == CreateTable(("t",), inner)
    assert parse('create or replace temp table db."My T".x as match (a) return a;') == CreateTable(
        ("db", "My T", "x"), inner, replace=True, temporary=True
    )
    assert parse("CREATE TEMPORARY TABLE IF NOT EXISTS t AS MATCH (a) RETURN a") == CreateTable(
        ("t",), inner, temporary=True, if_not_exists=True
    )


def test_explain_and_profile() -> None:
    assert parse("EXPLAIN MATCH (a) RETURN a") == Explain(query("MATCH (a) RETURN a"))
    assert parse("PROFILE RETURN 1") == Explain(query("RETURN 1"), profile=True)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t -- no ; here\nWHERE x = 'a;b'",
        "LOAD spatial",
        "LOAD 'my.duckdb_extension'",
        "CREATE TABLE t AS SELECT 1",
        "CREATE OR REPLACE TABLE t (a INTEGER)",
        "CREATE VIEW v AS SELECT 1",
        "EXPLAIN SELECT 1",
        "EXPLAIN ANALYZE SELECT 1",
        "MERGE INTO t USING s ON (t.a = s.a) WHEN MATCHED THEN DELETE",
        "DELETE FROM t",
        "DETACH db",
        "SET memory_limit = '1GB'",
        "SET VARIABLE x = 1",
        "WITH t AS (SELECT 1) SELECT * FROM t",
        "WITH t(a, b) AS MATERIALIZED (SELECT 1, 2) FROM t",
        "WITH RECURSIVE t AS (SELECT 1) FROM t",
        "CALL pragma_version()",
        "INSERT INTO t VALUES (1)",
        "SELECT 7 // 2",
        r"SELECT 'C:\', E'it\'s; ok', $$a;b$$, $t$ $$; $t$",
        "SELECT /* a /* ; */ ; */ 1",
        "FROM cypher($$ MATCH (a) RETURN a; $$)",
        "SELCT 1",
        "(SELECT 1)",
    ],
)
def test_sql_stays_as_written(text: str) -> None:
    assert parse_script(f" {text} ; ") == (Sql(text),)


def test_scripts() -> None:
    text = """
        -- SQL's comment
        PREFIX a: <http://x/;#> PREFIX b: <http://y/>; // ours
        MATCH (n {name: 'a\\';b'})--(m) /* ; */ // ;
        RETURN n; ;
        SELECT '\\';
    """
    kinds = [type(statement) for statement in parse_script(text)]
    assert kinds == [Prefix, Prefix, Query, Sql]
    assert split(text)[3] == "SELECT '\\'"
    assert parse_script(" ; -- nothing") == ()


def test_parse_wants_one_statement() -> None:
    with pytest.raises(ParseError, match="expected a statement"):
        parse(" ")
    with pytest.raises(ParseError, match="another") as caught:
        parse("RETURN 1; RETURN 2")
    assert caught.value.column == 11


def test_parsing_again_gives_the_same_tree() -> None:
    assert parse("RETURN 1") is parse("RETURN 1")


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", False),
        (";", True),
        ("MATCH (a)", False),
        ("MATCH (a) RETURN a;", True),
        ("MATCH (a) RETURN a; -- done", True),
        ("MATCH (a) RETURN a; MATCH", False),
        ("RETURN 'a;", False),
        ('RETURN "a\\";', False),
        ("RETURN `a;", False),
        ("RETURN 1 // ;", False),
        ("RETURN 1 /* ;", False),
        ("MATCH (a <http://x/;>)", False),
        ("PREFIX a: <http://x/;>", False),
        ("PREFIX a: <http://x/>;", True),
        ("SELECT 1 -- ;", False),
        ("SELECT $$ ; ", False),
        ("SELECT $$ ; $$;", True),
        ("SELECT 'C:\\';", True),
        ("SELECT /* /* */ ;", False),
        ("SELECT 7 // 2;", True),
        ("/* open ;", False),
    ],
)
def test_is_complete(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_lark_is_imported_only_to_make_tables(tmp_path: Path) -> None:
    """Which processes find afterwards."""
    (tmp_path / "__pycache__").mkdir()
    code = f"""
import sys
from graphdb.grammar import tables
from graphdb.grammar.parser import parse
tables.__file__ = {str(tmp_path / "tables.py")!r}
parse('SELECT 1')
assert 'graphdb.grammar.machine' not in sys.modules
parse('RETURN 1')
print('lark' in sys.modules)
"""
    command = [sys.executable, "-c", code]
    said = [subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip() for _ in range(2)]
    assert said == ["True", "False"]


def test_every_rule_has_a_method_that_builds_its_syntax() -> None:
    from graphdb.grammar.build import _Builder

    actions = [action for row in _machine().states.values() for action in row.values() if not isinstance(action, int)]
    named = {rule.method for rule in actions if rule.method is not None and not rule.passes}
    chains = {"atom", "comparison", "expression", "mode", "not_", "postfix", "power", "predicate", "product", "start"}
    chains |= {"sum", "unary"}  # which have one child only, whatever it is
    assert "query" in named
    assert {name for name in named - chains if not hasattr(_Builder, name)} == set()


def test_nesting_that_is_too_deep_is_an_error_with_its_place() -> None:
    assert parse("RETURN " + "NOT " * 200 + "true")
    text = "RETURN " + "NOT " * 300 + "true"
    with pytest.raises(ParseError, match=r"nested deeper than 250 operators \(line 1, column (9\d\d|1[01]\d\d)\)"):
        parse(text)


NESTED = [
    ("[", "]"), ("{a: ", "}"), ("f(", ")"), ("l[", "]"), ("NOT ", ""), ("-", ""), ("CASE WHEN 1 THEN ", " END"),
    ("[x IN l | ", "]"), ("[(a)--(b) | ", "]"), ("all(x IN ", ")"), ("COUNT { (a WHERE ", ") }"),
    ("EXISTS { (a {k: ", "}) }"), ("EXISTS { RETURN ", " }"), ("COLLECT { RETURN ", " }"), ("(", ").a"),
]  # fmt: skip


def test_a_text_of_few_tokens_has_no_deep_tree() -> None:
    """What the parser measures no depths for."""

    def depth(text: str) -> int:
        level, found = [_machine().parse(text, 0, len(text), Outline())], 0
        while level:
            level, found = [within for shape in level for within in shape.within], found + 1
        return found

    dice = random.Random(21)
    texts = [Writer(dice).statement() for _ in range(200)]
    for _ in range(200):
        around = dice.choices(NESTED, k=dice.choice([1, 2, 3])) * dice.choice([1, 5, 20])
        before, after = zip(*around, strict=True)
        texts.append(f"{dice.choice(['RETURN', 'EXPLAIN RETURN'])} {''.join(before)}1{''.join(after[::-1])}")
    measured = 0
    for text in texts:
        with suppress(Stopped, GraphDBError):
            assert depth(text) <= len(scan(text, 0, len(text))) * _RULES_OF_A_TOKEN + _RULES_OF_A_TEXT, text
            measured += 1
    assert measured > 300


def test_an_error_of_the_grammar_comes_before_one_of_a_value() -> None:
    for text in ("RETURN 99999999999999999999 +", r"RETURN 'a\q' +"):
        with pytest.raises(ParseError, match="expected"):
            parse(text)
    with pytest.raises(ParseError, match="out of range"):
        parse("RETURN 99999999999999999999")


def test_cached_parse_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They parse as those that are made anew; damaged ones, and a folder that is not there, do no harm."""
    folder = tmp_path / "__pycache__"
    monkeypatch.setattr(tables, "__file__", str(tmp_path / "tables.py"))
    text = "MATCH (a:A {x: 1})-[r:R*1..2]->(b) WHERE a.x < 2 RETURN DISTINCT a, count(*) AS n ORDER BY n DESC LIMIT 3"
    trees, errors = [], []
    for found in ("no folder", "nothing", "tables", "damaged"):
        if found != "no folder":
            folder.mkdir(exist_ok=True)
        for file in folder.glob("*.lalr") if found == "damaged" else ():
            file.write_bytes(file.read_bytes()[:5000])
        monkeypatch.setattr(parser, "_SCRIPTS", TextCache(most=1, characters=1))
        for cached in (tables.tables, parser._machine):
            cached.cache_clear()
        trees.append(parser.parse(text))
        with pytest.raises(ParseError) as error:
            parser.parse("MATCH (a RETURN a")
        errors.append(str(error.value))
        assert folder.exists() == (found != "no folder")
        assert not folder.exists() or [file.stat().st_size > 100_000 for file in folder.iterdir()] == [True]
    assert trees == trees[:1] * 4
    assert errors == errors[:1] * 4


def test_continuous_queries() -> None:
    inner = parse("MATCH (a) RETURN a")
    assert parse("CREATE CONTINUOUS QUERY q AS MATCH (a) RETURN a") == CreateContinuous("q", inner)
    options = (Option("table", False), Option("changes", 10_000), Option("retention", "7 days"))
    text = "create or replace continuous query \"My Q\" with (TABLE = false, changes = 10_000, retention = '7 days') as match (a) return a;"
    assert parse(text) == CreateContinuous("My Q", inner, options, True)
    assert parse("DROP CONTINUOUS QUERY q") == DropContinuous("q")
    assert parse("drop continuous query if exists q") == DropContinuous("q", True)
    assert parse("SHOW CONTINUOUS QUERIES") == ShowContinuous()
    assert parse("EXPLAIN CONTINUOUS QUERY q") == ExplainContinuous("q")
    assert parse("PROFILE CONTINUOUS QUERY q") == ExplainContinuous("q", True)
    created = CreateContinuous("q", inner)
    assert parse("EXPLAIN CREATE CONTINUOUS QUERY q AS MATCH (a) RETURN a") == ExplainContinuous(created)


def test_their_words_are_names_elsewhere() -> None:
    assert isinstance(parse("MATCH (query)-[show:drop]->(continuous) RETURN query.queries AS show"), Query)
    assert isinstance(parse("SHOW TABLES"), Sql)
    assert isinstance(parse("DROP TABLE x"), Sql)


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("CREATE CONTINUOUS QUERY q", "the statement ends too early: expected AS or WITH", None),
        ("DROP CONTINUOUS QUERRY q", "unexpected QUERRY: expected QUERY", "did you mean QUERY?"),
        ("CREATE CONTINUOUS q AS MATCH (a) RETURN a", "unexpected q: expected QUERY", None),
        ("CREATE CONTINUOUS QUERY 'q' AS MATCH (a) RETURN a", "a table's name stands bare or in double quotes", None),
    ],
)
def test_what_is_wrong_with_them_is_said(text: str, said: str, hint: str | None) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.message == said
    assert caught.value.hint == hint

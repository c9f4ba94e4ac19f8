"""Whole queries against an independent engine: the same random graph and conditions in SPARQL (pyoxigraph).

Everything from parsing to result takes part: names, candidate sets by SQL, conditions left for after the match, pattern
predicates, multi-valued and mixed properties.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphdb
from tests.fuzz import scaled

pyoxigraph = pytest.importorskip("pyoxigraph")

EX = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"


@dataclass(frozen=True)
class Both:
    """A piece of a query in our language and in SPARQL."""

    ours: str
    sparql: str


PATTERNS = [
    (Both("(a)-[:p]->(b)", "?a :p ?b"), "ab"),
    (Both("(a)-[:p]->(b)-[:q]->(c)", "?a :p ?b . ?b :q ?c"), "abc"),
    (Both("(a)-[:p]->(b)<-[:p]-(c)", "?a :p ?b . ?c :p ?b"), "abc"),
    (Both("(a)-[e]->(b)", "?a ?e ?b . FILTER(isIRI(?b) && ?e != rdf:type)"), "ab"),
    (Both("(a:A)-[:p]->(b)", "?a a :A . ?a :p ?b"), "ab"),
    (Both("(a:A&!B)-[:q]->(b)", "?a a :A . ?a :q ?b . FILTER NOT EXISTS { ?a a :B }"), "ab"),
    (Both("(a)-[:p|q]->(b)", "?a ?e ?b . FILTER(?e = :p || ?e = :q)"), "ab"),
    (Both("(a)-[:age]->(n)<-[:age]-(b)", "?a :age ?n . ?b :age ?n"), "ab"),
    (Both(f"(a)-[:p]->(b), (<{EX}n0>)-[:q]->(c)", "?a :p ?b . :n0 :q ?c"), "abc"),
    (Both("(a {age: 3})-[:p]->(b)", "?a :p ?b . FILTER EXISTS { ?a :age ?v1 . FILTER(?v1 = 3) }"), "ab"),
]


def condition(v: str, w: str) -> st.SearchStrategy[Both]:
    """Conditions on the variables ``v`` and ``w``."""
    number = st.integers(0, 5)
    operators = st.sampled_from(["=", "<", "<=", ">", ">="])

    def compared(key: str, operator: str, value: str) -> Both:
        return Both(f"{v}.{key} {operator} {value}", f"EXISTS {{ ?{v} :{key} ?x . FILTER(?x {operator} {value}) }}")

    def negated(key: str, operator: str, value: str) -> Both:
        inner = compared(key, operator, value)
        return Both(f"NOT {inner.ours}", f"(EXISTS {{ ?{v} :{key} ?y }} && NOT {inner.sparql})")

    simple = st.one_of(
        st.builds(compared, st.just("age"), operators, number.map(str)),
        st.builds(compared, st.just("age"), operators, number.map(lambda n: f"{n}.5")),
        st.builds(negated, st.just("age"), operators, number.map(str)),
        st.builds(compared, st.just("mixed"), st.just("="), st.sampled_from(["3", "'x'", "true", "2.5"])),
        st.builds(compared, st.just("name"), operators, st.sampled_from(["'s'", "'sun'", "'zoë'"])),
        st.sampled_from([
            Both(f"{v}.name STARTS WITH 's'", f"EXISTS {{ ?{v} :name ?x . FILTER(STRSTARTS(?x, 's')) }}"),
            Both(f"{v}.name CONTAINS 'o'", f"EXISTS {{ ?{v} :name ?x . FILTER(CONTAINS(?x, 'o')) }}"),
            Both(f"{v}.name IN ['sun', 'moon']", f"EXISTS {{ ?{v} :name ?x . FILTER(?x IN ('sun', 'moon')) }}"),
            Both(f"{v}.age IS NULL", f"NOT EXISTS {{ ?{v} :age ?x }}"),
            Both(f"{v}.age IS NOT NULL", f"EXISTS {{ ?{v} :age ?x }}"),
            Both(f"({v})-[:q]->()", f"EXISTS {{ ?{v} :q ?x }}"),
            Both(f"NOT ({v})-[:q]->()", f"NOT EXISTS {{ ?{v} :q ?x }}"),
            Both(f"({v})-[:q]->(:B)", f"EXISTS {{ ?{v} :q ?x . ?x a :B }}"),
            Both(f"({v})-[:p]->({w})", f"EXISTS {{ ?{v} :p ?{w} }}"),
            Both(f"NOT ({w})-[:q]->({v})", f"NOT EXISTS {{ ?{w} :q ?{v} }}"),
            Both(f"({v})-[:p]->()-[:q]->({w})", f"EXISTS {{ ?{v} :p ?x . ?x :q ?{w} }}"),
            Both(f"{v} <> {w}", f"?{v} != ?{w}"),
            Both(f"{v} = {w}", f"?{v} = ?{w}"),
            Both(f"{v}:B", f"EXISTS {{ ?{v} a :B }}"),
            Both(f"{v} = <{EX}n1>", f"?{v} = :n1"),
            Both(f"iri({v}) = '{EX}n2'", f"STR(?{v}) = '{EX}n2'"),
            Both(f"{v}.age < {w}.age", f"EXISTS {{ ?{v} :age ?x . ?{w} :age ?y . FILTER(?x < ?y) }}"),
            Both(f"{v}.name = {w}.name", f"EXISTS {{ ?{v} :name ?x . ?{w} :name ?y . FILTER(?x = ?y) }}"),
        ]),
    )  # fmt: skip

    def either(left: Both, right: Both) -> Both:
        return Both(f"({left.ours} OR {right.ours})", f"({left.sparql} || {right.sparql})")

    return st.one_of(simple, st.builds(either, simple, simple))


def typed(value: object, kind: str) -> str:
    return f'"{value}"^^<{XSD}{kind}>'


LITERALS = {
    "age": st.one_of(
        st.integers(0, 5).map(lambda n: typed(n, "integer")),
        st.integers(0, 5).map(lambda n: typed(f"{n}.50", "decimal")),
        st.integers(0, 5).map(lambda n: typed(f"{n}.5E0", "double")),
    ),
    "name": st.sampled_from(['"sun"', '"moon"', '"zoë"', '"s"', '"soon"']),
    "mixed": st.sampled_from([
        typed(3, "integer"), typed(3, "int"), typed("2.5", "decimal"), typed("true", "boolean"), '"x"', '"3"',
    ]),
}  # fmt: skip


@st.composite
def graphs(draw: st.DrawFn) -> str:
    """A small graph in N-Triples; each name that a query may use occurs in it."""
    node = st.integers(0, 5).map(lambda n: f"<{EX}n{n}>")
    lines = {
        f"<{EX}n0> <{EX}p> <{EX}n1> .",
        f"<{EX}n1> <{EX}q> <{EX}n2> .",
        f"<{EX}n0> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{EX}A> .",
        f"<{EX}n1> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{EX}B> .",
        *(f"<{EX}n{i}> <{EX}{key}> {draw(value)} ." for i, (key, value) in enumerate(LITERALS.items())),
    }
    for s, p, o in draw(st.lists(st.tuples(node, st.sampled_from("pq"), node), max_size=14)):
        lines.add(f"{s} <{EX}{p}> {o} .")
    for s, label in draw(st.lists(st.tuples(node, st.sampled_from("AB")), max_size=6)):
        lines.add(f"{s} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{EX}{label}> .")
    for key, values in LITERALS.items():
        for s, value in draw(st.lists(st.tuples(node, values), max_size=5)):
            lines.add(f"{s} <{EX}{key}> {value} .")
    return "\n".join(sorted(lines)) + "\n"


@settings(max_examples=scaled(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), triples=graphs())
def test_same_solutions_as_sparql(data: st.DataObject, triples: str) -> None:
    store = pyoxigraph.Store()
    store.load(triples.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES)
    with tempfile.TemporaryDirectory() as folder, graphdb.connect() as database:
        file = Path(folder) / "graph.nt"
        file.write_text(triples)
        database.load(file)
        for _ in range(6):  # making a database costs more than asking it
            pattern, variables = data.draw(st.sampled_from(PATTERNS))
            v, w = data.draw(st.permutations(variables))[:2]
            conditions = data.draw(st.lists(condition(v, w), max_size=3))
            where = f" WHERE {' AND '.join(c.ours for c in conditions)}" if conditions else ""
            ours = f"MATCH REPEATABLE ELEMENTS {pattern.ours}{where} RETURN {', '.join(variables)}"
            filters = " ".join(f"FILTER({c.sparql})" for c in conditions)
            prefixes = f"PREFIX : <{EX}> PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> "
            # Not all variables of the SPARQL pattern are ours: projection without DISTINCT keeps the multiplicity.
            wanted = " ".join("?" + x for x in variables)
            sparql = f"{prefixes} SELECT {wanted} WHERE {{ {pattern.sparql} {filters} }}"
            found = Counter(tuple(node.iri for node in row) for row in database.query(ours))
            expected = Counter(tuple(row[i].value for i in range(len(variables))) for row in store.query(sparql))
            assert found == expected, f"{ours}\n{sparql}"
            counted = database.query(ours.partition(" RETURN ")[0] + " RETURN count(*)").scalar()
            assert counted == expected.total(), ours

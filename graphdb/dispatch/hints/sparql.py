"""SPARQL that is typed by habit: the same question in our language, for queries of basic graph patterns.

rdflib's parser reads the query where rdflib is installed.  ``SELECT`` and ``ASK`` with triple patterns, ``FILTER`` of
comparisons and ``LIMIT`` (SPARQL 1.1, section 5) are translated; for all else there is no translation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_LONGEST = 2_000
"""Characters of a query that is still parsed for a hint: the parser takes about a millisecond for ten."""
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_PARTS = {"modifier", "projection", "where", "limitoffset"}
_OPERATORS = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


class _Untranslated(Exception):
    """A query is more than basic graph patterns."""


def translated(text: str) -> str | None:
    """Return the statement that asks what a SPARQL query asks; None where there is none.

    >>> translated("SELECT ?n WHERE { ?x a ex:Cat ; ex:chases ?y . ?y ex:name ?n FILTER(?n != 'Tom') } LIMIT 5")
    "MATCH REPEATABLE ELEMENTS (x:ex:Cat)-[:ex:chases]->(y), (y)-[:ex:name]->(n) WHERE n <> 'Tom' RETURN n LIMIT 5"
    >>> translated("ASK { ex:tom ex:weight 4.5 }")
    'MATCH (tom ex:tom) WHERE tom.ex:weight = 4.5 RETURN count(*) > 0 AS answer'
    >>> translated("SELECT * { ?x ex:knows+ ?y }")
    """
    try:
        from pyparsing import ParseBaseException
        from rdflib.plugins.sparql.parser import parseQuery
    except ImportError:
        return None
    if len(text) > _LONGEST:
        return None
    try:
        return _Query().statement(parseQuery(text.rstrip().rstrip(";"))[1])
    except (_Untranslated, ParseBaseException, RecursionError):
        return None


class _Query:
    """One query of rdflib's syntax tree, and what is known of its variables."""

    def __init__(self) -> None:
        self._labels: dict[str, list[str]] = {}
        self._shown: set[str] = set()
        self._variables: dict[str, str] = {}
        """Variables (``?x``) and resources, as they are written, and the names that stand for them."""
        self._edges: list[tuple[str, str, str]] = []
        self._conditions: list[str] = []

    def statement(self, query: Any) -> str:
        """Return the statement that asks the same."""
        if query.name not in ("SelectQuery", "AskQuery") or set(query) - {
            "modifier",
            "projection",
            "where",
            "limitoffset",
        }:
            raise _Untranslated
        for part in query.where.part or ():
            match part.name:
                case "TriplesBlock":
                    for triples in part.triples:
                        for at in range(0, len(triples), 3):
                            self._triple(*triples[at : at + 3])
                case "Filter":
                    self._conditions.append(self._condition(part.expr))
                case _:
                    raise _Untranslated
        paths = ", ".join(self._paths())
        mode = "REPEATABLE ELEMENTS " if len(self._edges) > 1 else ""
        where = f" WHERE {' AND '.join(self._conditions)}" if self._conditions else ""
        if not paths:
            raise _Untranslated
        return f"MATCH {mode}{paths}{where} RETURN {self._asked(query)}{_limit(query.limitoffset or {})}"

    def _asked(self, query: Any) -> str:
        if query.name == "AskQuery":
            return "count(*) > 0 AS answer"
        known = [name for written, name in self._variables.items() if written[0] == "?"]
        asked = [str(each.var) for each in query.projection or ()] or known
        if query.modifier == "REDUCED" or not asked or not set(asked) <= set(known):
            raise _Untranslated
        return ("DISTINCT " if query.modifier else "") + ", ".join(asked)

    def _triple(self, subject: Any, predicate: Any, object: Any) -> None:
        vertex, name, end = self._vertex(_simple(subject)), _resource(_simple(predicate)), _simple(object)
        if name in (f"<{_TYPE}>", "rdf:type"):
            self._labels.setdefault(vertex, []).append(_resource(end))
        elif (value := _literal(end)) is not None:
            self._conditions.append(f"{vertex}.{name} = {value}")
        else:
            self._edges.append((vertex, name, self._vertex(end)))

    def _vertex(self, term: Any) -> str:
        """Return the name of the variable that stands for a variable or a resource."""
        written = f"?{term}" if type(term).__name__ == "Variable" else _resource(term)
        if written not in self._variables:
            name = written[1:] if written[0] == "?" else re.split(r"\W", written.rstrip(">/#"))[-1]
            if not name.isidentifier():
                name = f"v{len(self._variables)}"
            while name in self._variables.values():
                name += "_"
            self._variables[written] = name
        return self._variables[written]

    def _condition(self, expression: Any) -> str:
        """Return a condition of comparisons between variables and values."""
        node = _simple(expression)
        match getattr(node, "name", None):
            case "ConditionalAndExpression":
                return " AND ".join(map(self._condition, (node.expr, *node.other)))
            case "ConditionalOrExpression":
                return "(" + " OR ".join(map(self._condition, (node.expr, *node.other))) + ")"
            case "UnaryNot":
                return f"NOT ({self._condition(node.expr)})"
            case "RelationalExpression" if node.op in _OPERATORS:
                return f"{self._operand(node.expr)} {_OPERATORS[node.op]} {self._operand(node.other)}"
        raise _Untranslated

    def _operand(self, expression: Any) -> str:
        node = _simple(expression)
        return self._vertex(node) if (value := _literal(node)) is None else value

    def _paths(self) -> Iterator[str]:
        for start, predicate, end in self._edges:
            yield f"{self._node(start)}-[:{predicate}]->{self._node(end)}"
        for name in self._variables.values():
            if name not in self._shown:
                yield self._node(name)

    def _node(self, name: str) -> str:
        if name in self._shown:
            return f"({name})"
        self._shown.add(name)
        [written] = [text for text, variable in self._variables.items() if variable == name]
        resource = "" if written[0] == "?" else f" {written}"
        return f"({name}{resource}{''.join(f':{label}' for label in self._labels.get(name, ()))})"


def _simple(node: Any) -> Any:
    """Return what a chain of nodes of one part each consists of: the grammar has one for each level of precedence."""
    while re.fullmatch(r"Path(Alternative|Sequence|Elt)|\w+Expression", getattr(node, "name", "")) and len(node) == 1:
        [part] = node.values()
        if isinstance(part, list) and len(part) > 1:
            break
        node = part[0] if isinstance(part, list) else part
    return node


def _resource(term: Any) -> str:
    """Return an IRI or a prefixed name as it is written."""
    match type(term).__name__:
        case "URIRef":
            return f"<{term}>"
        case "CompValue" if term.name == "pname" and re.fullmatch(r"[^\W\d](?:[\w.-]*\w)?", term["localname"]):
            return f"{term.prefix or ''}:{term['localname']}"
    raise _Untranslated


def _literal(term: Any) -> str | None:
    """Return a text, a number or a truth value as we write it; None for what is none."""
    if type(term).__name__ == "Literal" and term.datatype is not None:
        return str(term)
    if getattr(term, "name", None) != "literal":
        return None
    if len(term) > 1:  # a language or a datatype
        raise _Untranslated
    return "'" + str(term.string).replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def _limit(given: Any) -> str:
    if set(given) - {"limit"}:
        raise _Untranslated
    return f" LIMIT {given.limit}" if given else ""

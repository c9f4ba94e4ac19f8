"""SPARQL that is typed by habit: the same question in our language, for queries of basic graph patterns.

``SELECT`` and ``ASK`` with triple patterns, ``FILTER`` of comparisons and ``LIMIT`` (SPARQL 1.1, section 5) are
translated; for all else there is no translation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"\s*+(?:(?P<VARIABLE>[?$]\w++)|(?P<IRI><[^<>\s]*+>)|(?P<NUMBER>[+-]?\d++(?:\.\d++)?+)"
    r"|(?P<TEXT>\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+')(?P<KIND>@[\w-]++|\^\^\S++)?+"
    r"|(?P<NAME>(?:[^\W\d][\w-]*+)?+:[^\W\d](?:[\w-]|\.(?=\w))*+)|(?P<WORD>[^\W\d]\w*+)"
    r"|(?P<SIGN>&&|\|\||<=|>=|!=|[=<>!(){}.;,*]))"
)
_SIGNS = {"&&": "AND", "||": "OR", "!=": "<>", "!": "NOT"}


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
        return _Query(text).statement()
    except _Untranslated:
        return None


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at, end = 0, len(text.rstrip().rstrip(";").rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None or found["KIND"] is not None:
            raise _Untranslated
        at = found.end()
        assert found.lastgroup is not None
        yield found.lastgroup, found[found.lastgroup]


class _Query:
    """One query, read from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._left = [*_tokens(text), ("END", "")][::-1]
        self._labels: dict[str, list[str]] = {}
        self._shown: set[str] = set()
        self._variables: dict[str, str] = {}
        """Resources, as they are written, and the variables that stand for them."""
        self._edges: list[tuple[str, str, str]] = []
        self._conditions: list[str] = []

    def statement(self) -> str:
        """Return the statement that asks the same."""
        asks = self._word("ASK")
        if not asks and not self._word("SELECT"):
            raise _Untranslated
        distinct = "DISTINCT " if self._word("DISTINCT") else ""
        asked = []
        while (token := self._next())[0] == "VARIABLE":
            asked.append(token[1][1:])
        if token == ("SIGN", "*"):
            token = self._next()
        elif not asks and not asked:
            raise _Untranslated
        if token[0] == "WORD" and token[1].upper() == "WHERE":
            token = self._next()
        if token != ("SIGN", "{"):
            raise _Untranslated
        self._group()
        limit = f" LIMIT {self._next()[1]}" if self._word("LIMIT") else ""
        if self._left != [("END", "")] or not (self._edges or self._labels or self._variables):
            raise _Untranslated
        paths = ", ".join(self._paths())
        known = [name for written, name in self._variables.items() if written[0] in "?$"]
        if not set(asked) <= set(known):
            raise _Untranslated
        mode = "REPEATABLE ELEMENTS " if len(self._edges) > 1 else ""
        where = f" WHERE {' AND '.join(self._conditions)}" if self._conditions else ""
        what = "count(*) > 0 AS answer" if asks else distinct + ", ".join(asked or known)
        return f"MATCH {mode}{paths}{where} RETURN {what}{limit}"

    def _next(self) -> tuple[str, str]:
        return self._left.pop() if len(self._left) > 1 else self._left[0]

    def _word(self, word: str) -> bool:
        """Go past a word, if it comes next."""
        there = self._left[-1][0] == "WORD" and self._left[-1][1].upper() == word
        if there:
            self._left.pop()
        return there

    def _sign(self, sign: str) -> bool:
        there = self._left[-1] == ("SIGN", sign)
        if there:
            self._left.pop()
        return there

    def _group(self) -> None:
        """Read triple patterns and filters up to the bracket that closes them."""
        while not self._sign("}"):
            if self._word("FILTER"):
                self._filter()
            elif not self._sign("."):
                self._triples(self._vertex(*self._next()))

    def _triples(self, subject: str) -> None:
        while True:
            kind, predicate = self._next()
            is_type = (kind, predicate) == ("WORD", "a") or predicate == "rdf:type"
            if not is_type and kind not in ("IRI", "NAME"):
                raise _Untranslated
            while True:
                kind, object = self._next()
                if is_type:
                    if kind not in ("IRI", "NAME"):
                        raise _Untranslated
                    self._labels.setdefault(subject, []).append(object)
                elif kind in ("NUMBER", "TEXT") or (kind == "WORD" and object in ("true", "false")):
                    self._conditions.append(f"{subject}.{predicate} = {object}")
                else:
                    self._edges.append((subject, predicate, self._vertex(kind, object)))
                if not self._sign(","):
                    break
            if not self._sign(";") or self._left[-1] in (("SIGN", "."), ("SIGN", "}")):
                return

    def _vertex(self, kind: str, written: str) -> str:
        """Return the variable of a vertex."""
        if kind not in ("VARIABLE", "IRI", "NAME"):
            raise _Untranslated
        if written not in self._variables:
            name = written[1:] if kind == "VARIABLE" else re.split(r"[^\w]", written.rstrip(">/#"))[-1] or "v"
            while name in self._variables.values() or not name.isidentifier():
                name = f"v{len(self._variables)}" if not name.isidentifier() else name + "_"
            self._variables[written] = name
        return self._variables[written]

    def _filter(self) -> None:
        """Read a condition of comparisons between variables and values."""
        if not self._sign("("):
            raise _Untranslated
        depth, parts = 1, []
        while True:
            kind, token = self._next()
            depth += {"(": 1, ")": -1}.get(token, 0) if kind == "SIGN" else 0
            if not depth:
                break
            if kind == "VARIABLE":
                parts.append(self._vertex(kind, token))
            elif kind in ("NUMBER", "TEXT") or (kind == "SIGN" and token not in "{}.;,*"):
                parts.append(_SIGNS.get(token, token) if kind == "SIGN" else token)
            else:
                raise _Untranslated
        written = " ".join(parts).replace("( ", "(").replace(" )", ")")
        self._conditions.append(f"({written})" if " OR " in written else written)

    def _paths(self) -> Iterator[str]:
        for start, predicate, end in self._edges:
            yield f"{self._shown_node(start)}-[:{predicate}]->{self._shown_node(end)}"
        for name in self._variables.values():
            if name not in self._shown:
                yield self._shown_node(name)

    def _shown_node(self, name: str) -> str:
        if name in self._shown:
            return f"({name})"
        self._shown.add(name)
        [written] = [text for text, variable in self._variables.items() if variable == name]
        resource = "" if written[0] in "?$" else f" {written}"
        return f"({name}{resource}{''.join(f':{label}' for label in self._labels.get(name, ()))})"

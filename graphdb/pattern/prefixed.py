"""IRIs with a prefix, ``(x ex:tom)`` and ``iri('ex:tom')``: their IRIs take their place before anything is bound."""

from __future__ import annotations

import re

from graphdb.common.caches import TextCache
from graphdb.grammar import syntax as ast
from graphdb.pattern.names import Names
from graphdb.pattern.rename import Node, rewritten

_MAY_HAVE = re.compile(r"\([^\W\d]\w*+\s++`?[^\W\d]\w*+`?\s*+:|\biri\s*+\(\s*+['\"]", re.IGNORECASE)
_NAME = re.compile(r"(?P<prefix>[^\W\d][\w.-]*+):(?P<local>[^/\s<>\"][^\s<>\"]*+|)\Z")

_LONGEST = 10_000
"""Characters of a text of which the answer is remembered."""

_KNOWN: TextCache[bool] = TextCache(most=500, characters=100 * _LONGEST)


def may_have_prefixed(text: str) -> bool:
    """Whether a text may have such IRIs: most do not, and need not be scanned.

    >>> may_have_prefixed("MATCH (x ex:tom)-->() RETURN x"), may_have_prefixed("MATCH (x:Cat) RETURN iri(x)")
    (True, False)
    """
    found = _KNOWN.get(text)
    if found is None:
        found = _MAY_HAVE.search(text) is not None
        if len(text) <= _LONGEST:
            _KNOWN.put(text, found)
    return found


def with_iris(statement: Node, names: Names, text: str) -> Node:
    """Return a statement with the IRIs that its prefixed names mean.

    A text that is given to ``iri`` is one where its prefix is declared, else an IRI as it is.

    Raises
    ------
    BindError
        The prefix of a vertex is not declared.
    """

    def resolved(part: object) -> object:
        match part:
            case ast.IriLiteral(local, span, ast.Word() as prefix):
                return ast.IriLiteral(names.expand(prefix, ast.Word(local, span=span), text), span)
            case ast.FunctionCall(arguments=(ast.Literal(str() as written),)) if part.name.lower() == "iri":
                found = _NAME.match(written)
                if found is not None and found["prefix"] in names.prefixes:
                    return ast.IriLiteral(names.prefixes[found["prefix"]] + found["local"], part.span)
        return None

    return rewritten(statement, resolved)

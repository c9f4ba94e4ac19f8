"""``INSERT DATA { … }`` and ``DELETE DATA { … }``: triples that come and go, as SPARQL's statements of those names."""

from __future__ import annotations

from graphdb.common.errors import ParseError
from graphdb.grammar import syntax as ast
from graphdb.relational.session.state import State


def change(state: State, statement: ast.Data, text: str) -> str:
    """Add triples, or take them away, in one transaction; return what to tell of it.

    Raises
    ------
    ParseError
        They are no Turtle, with the prefixes of the database.
    LoadError
        They have blank nodes.
    """
    from graphdb.live.batches import apply

    lines = _lines(text, statement.span, state.names().prefixes)
    state.versions.before_statement()
    applied = apply(state, lines, None, None) if statement.inserts else apply(state, None, lines, None)
    count = applied.additions + applied.deletions
    return f"{count:,} triple{'s' if count != 1 else ''} {'inserted' if statement.inserts else 'deleted'}"


def _lines(text: str, span: ast.Span, prefixes: dict[str, str]) -> bytes:
    """Return triples as N-Triples."""
    import pyoxigraph

    declared = " ".join(f"PREFIX {name}: <{iri}>" for name, iri in prefixes.items())
    body = text[span.start : span.end]
    try:
        quads = [*pyoxigraph.parse(f"{declared}\n{{{body}}}".encode(), format=pyoxigraph.RdfFormat.TRIG)]
    except SyntaxError as error:
        lines = body.split("\n")
        above = lines[: max((error.lineno or 2) - 2, 0)]
        position = span.start + sum(len(line) + 1 for line in above) + max((error.offset or 1) - 1 - (not above), 0)
        message = error.msg.partition(": ")[2] or error.msg
        raise ParseError(message, text=text, position=min(position, span.end)) from None
    triples = (quad.triple for quad in quads)
    return pyoxigraph.serialize(triples, format=pyoxigraph.RdfFormat.N_TRIPLES) or b""

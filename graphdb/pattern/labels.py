"""Label expressions: whether their labels exist, and which edge labels they admit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from graphdb.common.errors import BindError, nearest
from graphdb.common.values.terms import RDF_TYPE
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.names import Names
from graphdb.storage.catalog import EdgeLabel, VertexLabel

Label = TypeVar("Label", EdgeLabel, VertexLabel)


def names_a_label(labels: ast.LabelExpression) -> bool:
    """Whether an expression admits an edge label by its name, and not only as one of all others."""
    match labels:
        case ast.LabelChain():
            return True
        case ast.LabelAnd() | ast.LabelOr():
            return any(map(names_a_label, labels.operands))
    return False


def check_labels(labels: ast.LabelExpression, names: Names, text: str) -> None:
    """Raise an error for the first unknown vertex label."""
    for chain in (part for part in walk(labels) if isinstance(part, ast.LabelChain)):
        for name in names.chains(chain.words):
            _resolved(chain, name, names.vertex_label, names, text)


def edge_labels(labels: ast.LabelExpression, names: Names, text: str) -> tuple[int, ...] | None:
    """Return the ids of the edge labels that an expression admits; None for any."""

    def everything() -> frozenset[int]:
        known = names.edge_labels.values()
        return frozenset(label.id for label in known if label.resource_triples and label.iri != RDF_TYPE)

    def admitted(part: ast.LabelExpression) -> frozenset[int]:
        match part:
            case ast.LabelAny():
                return everything()
            case ast.LabelNot():
                return everything() - admitted(part.operand)
            case ast.LabelAnd():
                return frozenset.intersection(*map(admitted, part.operands))
            case ast.LabelOr():
                return frozenset.union(*map(admitted, part.operands))
            case ast.LabelChain():
                chain = names.chains(part.words)
                found = {_resolved(part, name, names.edge_label, names, text).id for name in chain}
                if len(found) > 1:
                    raise BindError(
                        "an edge has one label",
                        text=text,
                        position=part.span.start,
                        hint="write | between alternatives: [:a|b]",
                    )
                return frozenset(found)

    if isinstance(labels, ast.LabelAny):
        return None
    return tuple(sorted(admitted(labels)))


def admits_literals(labels: ast.LabelExpression | None, names: Names, text: str) -> bool:
    """Whether an edge with this expression, where there is one, can end at a literal: it names a property."""
    chains = [labels] if isinstance(labels, ast.LabelChain) else walk(labels)
    for part in chains:
        if isinstance(part, ast.LabelChain):
            for words in names.chains(part.words):
                with suppress(BindError):
                    if names.edge_label(words, text).kinds:
                        return True
    return False


def _resolved(
    chain: ast.LabelChain,
    name: Sequence[ast.Word],
    resolve: Callable[[Sequence[ast.Word], str], Label],
    names: Names,
    text: str,
) -> Label:
    """Return the label of a name in a chain of words."""
    try:
        return resolve(name, text)
    except BindError:
        first = chain.words[0]
        if len(chain.words) > 1 and len(name) == 1 and name[0] is first and not first.is_iri:
            near = nearest(first.text, names.prefixes)
            raise BindError(
                f"'{first.text}' is neither a declared prefix nor a known label",
                text=text,
                position=first.span.start,
                hint=f"did you mean '{near[0]}:{chain.words[1].text}'?"
                if near
                else f"declare it: PREFIX {first.text}: <http://…>",
            ) from None
        raise

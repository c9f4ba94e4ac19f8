"""When rows of a MERGE may be taken together: those that find nothing and ask for the same make it once.

openCypher's rows go one after the other, each over what those before it have made.  Mostly a row can find what another
has made only if it asks for the very same: what is new hangs together, by vertices that nobody else has, so whoever
finds one of its edges finds them all, if each edge can be found as nothing but itself (:func:`_finds_another`).  Where
a known vertex parts the pattern, where an edge may be found as another or turned round, and where MERGE sets what it
asks for, only one row after the other tells.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphdb.grammar import syntax as ast
from graphdb.grammar.compose import is_plain
from graphdb.grammar.walk import walk
from graphdb.pattern.free import free_variables
from graphdb.writing.naming import key_named

MADE = "#made"
"""Whether a row of a MERGE made what it asked for, or found it."""

AT = " #at"
"""The number of the row that a match started from: not quite one of the engine's own names, which matches keep back."""

Keys = Callable[[ast.Expression], Collection[str] | None]
"""The keys of the maps that an expression yields for all rows; None where that is not known."""


def apart(clause: ast.MergeClause, bound: Collection[str], holding: Collection[str], keys: Keys) -> bool:
    """Whether a row finds what another has made only if both ask for the same.

    ``bound`` are the rows' names, and ``holding`` those that may hold vertices or edges.
    """
    parts = _elements(clause, bound)
    nodes = parts[: len(clause.pattern.nodes)]
    if any(node.known for node in nodes[1:-1]):
        return False
    items = (*clause.on_create, *clause.on_match)
    if any(_touches(item, part, keys) for item in items for part in parts):
        return False
    asked = tuple(value for part in parts for _, _, value in part.asked)
    old = (*clause.on_match, *(item for item in clause.on_create if _target(item) in bound))
    if any(_touches_read(item, asked, holding, keys) for item in old):
        return False
    return not _finds_another(clause, parts)


def matching(pattern: ast.PathPattern, names: Sequence[str]) -> ast.Query | ast.Composite:
    """Return the query for what a pattern matches, by some names."""
    items = tuple(ast.ReturnItem(ast.Variable(name), name, name) for name in names)
    match = ast.MatchClause((pattern,), span=pattern.span)
    returns = ast.ReturnClause(items or (ast.ReturnItem(ast.Literal(1), "#", "#"),), span=pattern.span)
    if AT not in names and is_plain([match], returns):
        return ast.Query((match,), returns)
    return ast.Composite(((match, returns),))


def asking_by(pattern: ast.PathPattern, value: Callable[[ast.Expression], ast.Expression]) -> ast.PathPattern:
    """Return a pattern that asks for its properties by other expressions."""

    def changed(element: Any) -> Any:
        if isinstance(element, ast.Subpath) or element.properties is None:
            return element
        items = tuple((key, value(node)) for key, node in element.properties.items)
        return replace(element, properties=replace(element.properties, items=items))

    return replace(pattern, nodes=tuple(map(changed, pattern.nodes)), edges=tuple(map(changed, pattern.edges)))


def either_way(clause: ast.MergeClause, bound: Collection[str]) -> tuple[str, str] | None:
    """Return the names of two known vertices that one edge joins, whichever is its start; None for other patterns."""
    pattern = clause.pattern
    names = [node.variable.name for node in pattern.nodes if node.variable is not None and node.variable.name in bound]
    match pattern.edges:
        case (ast.EdgePattern(direction=ast.Direction.BOTH),) if len(names) == 2:
            return names[0], names[1]
    return None


@dataclass(frozen=True, slots=True)
class _Name:
    """A name as it is written: ``kind`` is empty for a bare one, a prefix, or "<>" for an IRI."""

    text: str
    kind: str = ""

    def may_be(self, other: _Name) -> bool:
        """Whether two names may mean the same; an IRI ends with its bare and its prefixed name."""
        if self.kind == other.kind:
            return self.text == other.text
        return self.text.endswith(other.text) or other.text.endswith(self.text)


@dataclass(slots=True)
class _Element:
    """A vertex or an edge of a pattern: what is asked of it, wherever it is named."""

    name: str
    """Of its variable; its own where it has none."""
    known: bool
    labels: set[_Name]
    """All of which it has for sure: of ``A:B``, which may be a prefix with a name, the last one."""
    words: set[_Name]
    """What may be a label of it."""
    asked: list[tuple[_Name, ast.KeyName, ast.Expression]]

    def may_be(self, other: _Element, more: _Set) -> bool:
        """Whether it may be found where ``other`` is made, and ``more`` set; what is known already may be anything."""
        if other.known:
            return True
        labels = other.words | more.labels.get(other.name, set())
        names = {name for name, _, _ in other.asked} | more.keys.get(other.name, set())
        return (
            not self.known
            and all(any(label.may_be(one) for one in labels) for label in self.labels)
            and (other.name in more.whole or all(any(key.may_be(one) for one in names) for key, _, _ in self.asked))
        )


@dataclass(slots=True)
class _Set:
    """What MERGE sets, by the name of the vertex or edge."""

    labels: dict[str, set[_Name]]
    keys: dict[str, set[_Name]]
    whole: set[str]
    """Of which any key may be set."""


def _elements(clause: ast.MergeClause, bound: Collection[str]) -> list[_Element]:
    """Return a pattern's vertices, then its edges; what one name is given in several places is asked of it together."""
    found: dict[str, _Element] = {}
    order = []
    for number, part in enumerate((*clause.pattern.nodes, *clause.pattern.edges)):
        assert not isinstance(part, ast.Subpath)
        name = f"#{number}" if part.variable is None else part.variable.name
        element = found.setdefault(name, _Element(name, name in bound, set(), set(), []))
        element.labels |= {_written(chain.words) for chain in _chains(part.labels)}
        element.words |= _words(part.labels)
        if part.properties is not None:
            element.asked += [(_written(key.words), key, value) for key, value in part.properties.items]
        order.append(element)
    return order


def _chains(labels: ast.LabelExpression | None) -> list[ast.LabelChain]:
    return [part for part in walk(labels) if isinstance(part, ast.LabelChain)]


def _words(labels: ast.LabelExpression | None) -> set[_Name]:
    """Return all names that may be labels: of ``A:B`` either, and the prefixed one."""
    chains = _chains(labels)
    return {_written((word,)) for chain in chains for word in chain.words} | {_written(c.words) for c in chains}


def _written(words: tuple[ast.Word, ...]) -> _Name:
    return _Name(words[-1].text, "<>" if words[-1].is_iri else ":".join(word.text for word in words[:-1]))


def _finds_another(clause: ast.MergeClause, elements: list[_Element]) -> bool:
    """Whether an edge of the pattern may be found where another was made for other rows, or itself turned round."""
    pattern = clause.pattern
    nodes, edges = elements[: len(pattern.nodes)], elements[len(pattern.nodes) :]
    if len(edges) == 1 and nodes[0].known and nodes[1].known:  # see `either_way`
        return False
    more = _set(clause)
    for i, edge in enumerate(edges):
        for j, made in enumerate(edges):
            if not edge.may_be(made, more):
                continue
            for turned in (False, True):
                if i == j and not turned:
                    continue
                if _direction(pattern, i) not in (ast.Direction.BOTH, _made(pattern, j, turned)):
                    continue
                start, end = nodes[j : j + 2][:: -1 if turned else 1]
                if nodes[i].may_be(start, more) and nodes[i + 1].may_be(end, more):
                    return True
    return False


def _direction(pattern: ast.PathPattern, number: int) -> ast.Direction:
    edge = pattern.edges[number]
    assert isinstance(edge, ast.EdgePattern)
    return edge.direction


def _made(pattern: ast.PathPattern, number: int, turned: bool) -> ast.Direction:
    """Return the direction of an edge that was made, seen from its left vertex, or from the right one."""
    backwards = _direction(pattern, number) is ast.Direction.IN
    return ast.Direction.IN if backwards is not turned else ast.Direction.OUT


def _set(clause: ast.MergeClause) -> _Set:
    """Return what is set of what is made."""
    found = _Set({}, {}, set())
    for item in clause.on_create:
        name = _target(item)
        if isinstance(item, ast.LabelItem):
            found.labels.setdefault(name, set()).update(_words(item.labels))
        elif isinstance(item.target, ast.Property):
            found.keys.setdefault(name, set()).add(_written(item.target.key.words))
        else:
            found.whole.add(name)
    return found


def _target(item: ast.SetItem | ast.LabelItem) -> str:
    """Return the name of what an item changes; none where an expression yields it."""
    base = item.target.base if isinstance(item.target, (ast.Property, ast.Subscript)) else item.target
    return base.name if isinstance(base, ast.Variable) else ""


def _touches(item: ast.SetItem | ast.LabelItem, element: _Element, keys: Keys) -> bool:
    """Whether an item may change who finds an element: what is asked of it may be set, to something else."""
    own = _target(item) == element.name
    if isinstance(item, ast.LabelItem):
        words = _words(item.labels)
        return not own and any(word.may_be(label) for word in words for label in element.words)
    clears = own and isinstance(item.target, ast.Variable) and not item.add
    for name, key, asked in element.asked:
        values = [value for each, value in _given(item, key, keys) if _written(each.words).may_be(name)]
        if any(not own or value != asked for value in values) or (clears and not values):
            return True
    return False


def _touches_read(
    item: ast.SetItem | ast.LabelItem, asked: tuple[ast.Expression, ...], holding: Collection[str], keys: Keys
) -> bool:
    """Whether an item may set what is read of the rows' vertices and edges to ask for it."""
    reads = [part for part in walk(asked) if isinstance(part, ast.Property) and isinstance(part.base, ast.Variable)]
    reads = [read for read in reads if free_variables(read) & set(holding)]
    if len([part for part in walk(asked) if isinstance(part, ast.Variable) and part.name in holding]) > len(reads):
        return True  # labels, or all properties
    if isinstance(item, ast.LabelItem):
        return False
    clears = isinstance(item.target, ast.Variable) and not item.add
    return any(
        clears or any(_written(key.words).may_be(_written(read.key.words)) for key, _ in _given(item, read.key, keys))
        for read in reads
    )


def _given(item: ast.SetItem, key: ast.KeyName, keys: Keys) -> Sequence[tuple[ast.KeyName, ast.Expression]]:
    """Return what an item sets; where its keys are not known, ``key`` may be among them."""
    match item.target:
        case ast.Property():
            return [(item.target.key, item.value)]
        case ast.Subscript(index=index):
            name = index.value if isinstance(index, ast.Literal) else None
            return [(key_named(name, index) if isinstance(name, str) else key, item.value)]
    if isinstance(item.value, ast.MapLiteral):
        return item.value.items
    names = keys(item.value)
    named = [key] if names is None else [key_named(name, item.value) for name in names]
    return [(each, ast.Property(item.value, each)) for each in named]

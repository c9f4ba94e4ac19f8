"""Other ways to write a query that mean the same: each takes a text and returns its twin, or None where it has none.

A twin gives the same rows (in columns that may be called otherwise), the same side effects, and is wrong where the
first is wrong.  Texts are edited at the places that the syntax tree tells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from graphdb.grammar import syntax as s
from graphdb.grammar.parser import parse
from graphdb.grammar.walk import walk

Twin = tuple[str, dict[str, Any]]
"""A text and the arguments that it takes besides the first's."""

_PIECES = re.compile(
    r"""(?P<kept>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:``|[^`])*`|<[a-z]+:[^>\s]*>|//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<space>\s+)|(?P<word>\.?[^\W\d]\w*)|(?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)
_KEYWORDS = frozenset(
    "match optional where return with unwind as order by skip limit asc ascending desc descending distinct and or xor not "
    "in is null starts ends contains case when then else end union all any none single create merge on set remove "
    "delete detach true false exists".split()
)


def _edited(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _tree(text: str) -> s.Query | s.Composite | None:
    try:
        tree = parse(text)
    except Exception:  # what is wrong with a text has no places
        return None
    return tree if isinstance(tree, (s.Query, s.Composite)) else None


def _parts(tree: s.Query | s.Composite) -> tuple[tuple[s.ClauseNode, ...], ...]:
    return tree.parts if isinstance(tree, s.Composite) else (tree.clauses,)


def other_case(text: str) -> Twin | None:
    """Keywords in the other case, spaces as comments and lines."""
    before = ""

    def piece(found: re.Match[str]) -> str:
        nonlocal before
        word = found["word"]
        shouted, before = before, found[0] if not found["space"] else before
        if found["space"]:
            return " /* - */\n\t"
        if word and word.lower() in _KEYWORDS and shouted not in (":", "|", "$", "{", ",", "(", "&"):
            return word.lower() if word.isupper() else word.upper()
        return found[0]

    return _PIECES.sub(piece, text), {}


def renamed(text: str) -> Twin | None:
    """Other names for all variables (in the same order)."""
    tree = _tree(text)
    if tree is None:
        return None
    nodes = walk(tree)
    if any(isinstance(node, s.MapProjection) for node in nodes):
        return None
    places = {(node.span.start, node.span.end) for node in nodes if isinstance(node, s.Variable)}
    for node in nodes:
        if isinstance(node, s.ReturnItem) and node.alias is not None:
            alias = re.search(r"`(?:``|[^`])*`$|\w+$", text[: node.span.end])
            if alias is None or node.expression.span.end > alias.start():
                return None
            places.add((alias.start(), node.span.end))
    columns = {  # of procedures: these keep their names, and what they are called is another
        item.variable.span.start
        for item in nodes
        if isinstance(item, s.YieldItem) and item.variable.span.start == item.span.start
    }
    edits = []
    for start, end in places:
        name = text[start:end]
        new = f"`zz {name[1:]}" if name.startswith("`") else f"zz_{name}"
        edits.append((start, end, f"{name} AS {new}" if start in columns else new))
    return _edited(text, edits), {}


def starred(text: str) -> Twin | None:
    """``WITH *`` after each clause that reads or projects."""
    tree = _tree(text)
    if tree is None:
        return None
    ends = [
        clause.span.end
        for part in _parts(tree)
        for clause in part[:-1]
        if isinstance(clause, (s.MatchClause, s.UnwindClause, s.WithClause))
    ]
    return (_edited(text, [(end, end, " WITH * ") for end in ends]), {}) if ends else None


def after_one(text: str) -> Twin | None:
    """The same from one row that is there already."""
    tree = _tree(text)
    if tree is None or any(_takes_all(part) for part in _parts(tree)):
        return None
    if isinstance(tree, s.Composite) and tree.called is not None and tree.called.yields is None:
        return None  # a call that is the whole query brings in all columns
    starts = [part[0].span.start for part in _parts(tree)]
    return _edited(text, [(start, start, "WITH 1 AS `#one` ") for start in starts]), {}


def _takes_all(part: tuple[s.ClauseNode, ...]) -> bool:
    """Whether a ``*`` sees all names that there are at the start."""
    for clause in part:
        if isinstance(clause, (s.WithClause, s.ReturnClause)):
            return (clause.returns if isinstance(clause, s.WithClause) else clause).star
    return False


def with_parameters(text: str) -> Twin | None:
    """Literals as parameters."""
    tree = _tree(text)
    if tree is None:
        return None
    arguments: dict[str, Any] = {}
    edits: dict[s.Span, tuple[int, int, str]] = {}
    for node in walk(tree):
        if isinstance(node, s.Literal) and node.span.end > node.span.start and node.span not in edits:
            name = f"literal{len(arguments)}"
            arguments[name] = node.value
            edits[node.span] = (node.span.start, node.span.end, f"${name}")
    return (_edited(text, edits.values()), arguments) if edits else None


def mirrored(text: str) -> Twin | None:
    """Patterns that are looked for written from their other end."""
    tree = _tree(text)
    if tree is None:
        return None
    edits = []
    for clause in walk(tree):
        patterns: tuple[s.PathPattern, ...] = ()
        if isinstance(clause, s.MatchClause):
            patterns = clause.patterns
        elif isinstance(clause, (s.PatternPredicate, s.PatternComprehension)):
            patterns = (clause.pattern,)
        for pattern in patterns:
            backwards = _backwards(text, pattern)
            if backwards is not None:
                nodes = pattern.nodes
                edits.append((nodes[0].span.start, nodes[-1].span.end, backwards))
    return (_edited(text, edits), {}) if edits else None


def _backwards(text: str, pattern: s.PathPattern) -> str | None:
    if pattern.variable is not None or pattern.selector is not None or not pattern.edges:
        return None
    pieces: list[str] = []
    for edge in pattern.edges:
        if isinstance(edge, s.Subpath) or (edge.repeat is not None and edge.variable is not None):
            return None
        spelt = text[edge.span.start : edge.span.end]
        if not spelt.endswith(("-", ">")):  # a quantifier after it
            return None
        if spelt.startswith("<") == spelt.endswith(">"):
            pieces.append(spelt)
        else:
            pieces.append(spelt[1:] + ">" if spelt.startswith("<") else "<" + spelt[:-1])
    nodes = [text[node.span.start : node.span.end] for node in pattern.nodes]
    woven = [nodes[-1]]
    for piece, node in zip(reversed(pieces), reversed(nodes[:-1]), strict=True):
        woven += [piece, node]
    return "".join(woven)


REWRITES: dict[str, Callable[[str], Twin | None]] = {
    rewrite.__name__: rewrite for rewrite in (other_case, renamed, starred, after_one, with_parameters, mirrored)
}

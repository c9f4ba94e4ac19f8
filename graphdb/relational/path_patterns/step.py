"""Path patterns as steps that search: whether one is, and which; nothing is matched here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.types import CODE_BITS, INTEGER
from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import DIRECTIONS, BoundPattern, bind
from graphdb.pattern.free import free_variables
from graphdb.pattern.names import Names
from graphdb.pattern.paths.pieces import Piece, conditions_on, names_of
from graphdb.plan.paths import Cost, Mode, PathEdges, PathStep
from graphdb.relational.path_patterns.edges import Pattern
from graphdb.relational.snapshot import Snapshot
from graphdb.sql.value import SqlValue, column

_ONWARD = ast.Direction.OUT

_DEFAULT: dict[ast.MatchMode, Mode] = {
    ast.MatchMode.DIFFERENT_EDGES: "TRAIL",
    ast.MatchMode.REPEATABLE_ELEMENTS: "WALK",
    ast.MatchMode.DIFFERENT_NODES: "ACYCLIC",
}


def path_step(
    path: ast.PathPattern,
    pieces: Sequence[Piece],
    match: ast.MatchClause,
    names: Names,
    text: str,
    beside: Sequence[Any] = (),
    *,
    materialized: bool,
) -> PathStep | None:
    """Return the step that searches for a path of some parts; None where no search along all edges finds it.

    Parameters
    ----------
    beside
        The other edges of its clause.
    materialized
        Whether what is on the path is wanted.
    """
    assert path.selector is not None
    edges = [edge for piece in pieces for edge in piece.every_edge()]
    labels = [labels_of(edge, names, text) for edge in edges]
    literal = (names.edge_labels[i].kinds for each in labels for i in each or () if i in names.edge_labels)
    if any(literal) or not all(map(_is_alone, pieces)) or any(map(_repeats_nothing, pieces)):
        return None
    if any(not free_variables(node) <= {*names_of(node)} for node in path.nodes[1:-1]):
        return None
    mode = _mode_of(path, match.mode)
    if match.mode is ast.MatchMode.DIFFERENT_NODES and (
        path.mode is not None or len(match.patterns) > 1 or any(piece.low == 0 for piece in pieces)
    ):
        return None
    known = [each for each in labels if each is not None]
    along = None if len(known) < len(labels) else tuple(sorted({label for each in known for label in each}))
    if match.mode is ast.MatchMode.DIFFERENT_EDGES and mode != "WALK":
        for other in beside:
            if other.labels is None or along is None or {*other.labels} & {*along}:
                return None
    low, high = pieces[0].low, pieces[0].high
    if len(pieces) > 1 or not pieces[0].simple:
        ends = [piece.longest for piece in pieces]
        low, high = 1, None if None in ends else sum(filter(None, ends))
    selector = path.selector
    direction = DIRECTIONS[direction_of(pieces)]
    return PathStep("", "", along, direction, low, high, mode, selector.count, selector.groups, materialized)


def cost_step(
    path: ast.PathPattern,
    pieces: Sequence[Piece],
    match: ast.MatchClause,
    text: str,
    outside: Collection[str],
    *,
    materialized: bool,
) -> PathStep:
    """Return the step that searches for the cheapest paths along one repeated edge.

    Parameters
    ----------
    outside
        The names of all but what is on the path.
    materialized
        Whether what is on the path is wanted.

    Raises
    ------
    NotSupportedError
        Whether an edge is on the path, or what it costs, depends on more than itself and its ends.
    """
    assert path.cost is not None
    assert path.selector is not None
    (piece,), cost = pieces, path.cost.expression
    mode = _mode_of(path, match.mode)
    for asked in (cost, *piece.where[0]):
        if not (free_variables(asked) - {*piece.names}).isdisjoint(outside):
            message, hint = "what an edge costs depends on it and its ends alone", "name the ends: ((x)-[e]->(y))+"
            raise NotSupportedError(message, text=text, position=asked.span.start, hint=hint)
    if match.mode in (ast.MatchMode.DIFFERENT_NODES, ast.MatchMode.INDUCED):
        message = f"COST BY is not supported with {match.mode.value}"
        raise NotSupportedError(message, text=text, position=path.cost.span.start)
    words = " ".join(text[path.nodes[0].span.end : path.cost.span.start].split())
    edges = PathEdges(words[: words.rindex("(")].rstrip() if "(" in words else words)
    price = Cost(" ".join(text[cost.span.start : cost.span.end].split()), integral=False)
    direction, groups = DIRECTIONS[direction_of(pieces)], path.selector.groups
    return PathStep("", "", None, direction, piece.low, None, mode, 1, groups, materialized, edges=edges, cost=price)


def goes_everywhere(step: PathStep, pieces: Sequence[Piece], snapshot: Snapshot) -> bool:
    """Whether a path goes along all edges of its one part's labels, each a triple.

    How long the shortest one is does not depend on how many edges lead from one vertex to the next, but where a path
    may return along another of them.
    """
    if len(pieces) > 1 or not (pieces[0].simple and pieces[0].group and pieces[0].bare):
        return False
    if step.single and step.direction != "both" and not (step.materialized or step.groups or step.ties):
        return True
    parallel = snapshot.edges.parallel
    return not parallel if step.labels is None else parallel.isdisjoint(step.labels)


def along(step: PathStep, path: ast.PathPattern, pattern: Pattern, text: str, *, several: bool) -> PathStep:
    """Return a step that goes along the edges of a pattern, of ``several`` parts or of one."""
    words = " ".join(text[path.nodes[0].span.end : path.nodes[-1].span.start].split())
    if not several:
        return replace(step, edges=PathEdges(f"{words} of the edges that match"))
    edges = PathEdges(f"{words}, in {pattern.states} states of the edges that match", True, len(pattern.parts) - 1)
    # How long a path may be is in the pattern, and one more edge leads to its end.
    return replace(step, edges=edges, low=1, high=None if step.high is None else step.high + 1, direction="out")


def direction_of(pieces: Sequence[Piece]) -> ast.Direction:
    """Return how a path of one edge is written; of several, that it is no one's way back."""
    edge = pieces[0].edges[0]
    return edge.direction if len(pieces) == 1 and isinstance(edge, ast.EdgePattern) and pieces[0].simple else _ONWARD


def asks_ends(piece: Piece) -> bool:
    """Whether it matters at which end of an edge a path comes to it."""
    return any(map(conditions_on, piece.nodes)) or any(piece.where)


def code_of(bound: BoundPattern, number: int, before: str) -> SqlValue:
    """Return the code that a pattern edge (by its number) has in a path, seen from the vertex before it."""
    edge, choice = bound.edges[number], bound.choices.get(number)
    ahead, parallel = bound.vertex_of[before] == edge.source, choice is not None and choice.parallel
    if ahead and not parallel:
        return column(f"e{number}", INTEGER)
    code = f"CAST(b.e{number} AS BIGINT)"
    if parallel:
        code = f"({code} | (b.o{number} << {CODE_BITS}))"
    # A self-loop has one direction.
    back = f"xor({code}, CAST(b.v{edge.source} <> b.v{edge.target} AS BIGINT))"
    return SqlValue(code if ahead else back, INTEGER)


def labels_of(edge: ast.EdgePattern, names: Names, text: str) -> tuple[int, ...] | None:
    """Return the edge labels that an edge may take; None for any."""
    node = ast.NodePattern(span=edge.span)
    plain = ast.EdgePattern(edge.direction, None, edge.labels, span=edge.span)
    clause = ast.MatchClause((ast.PathPattern((node, node), (plain,), edge.span),), span=edge.span)
    return bind((clause,), names, text).edges[0].labels


def _is_alone(piece: Piece) -> bool:
    """Whether what is said of the edges of a part needs nothing but them and their ends."""
    if piece.entwined:
        edges = [edge for edge in piece.edges if isinstance(edge, ast.EdgePattern)]
        own = {*names_of(*piece.nodes), *names_of(*edges)}
        return free_variables((piece.nodes, tuple(edges), piece.where, piece.across)) <= own
    if piece.nested and any(not free_variables(node) <= {*names_of(node)} for node in piece.nodes):
        return False
    for at, edge in enumerate(piece.edges):
        if isinstance(edge, Piece):
            if not _is_alone(edge):
                return False
            continue
        nodes = piece.nodes[at : at + 2]
        if not free_variables((nodes, edge, piece.where[at])) <= {*names_of(*nodes), *names_of(edge)}:
            return False
    return True


def _repeats_nothing(piece: Piece) -> bool:
    """Whether a repeated part may be nothing."""
    inner = [edge for edge in piece.edges if isinstance(edge, Piece)]
    repeated = piece.low != 1 or piece.high != 1
    return (repeated and len(inner) == len(piece.edges) and all(map(_skips, inner))) or any(
        map(_repeats_nothing, inner)
    )


def _skips(piece: Piece) -> bool:
    """Whether a part may be nothing."""
    return piece.low == 0 or all(isinstance(edge, Piece) and _skips(edge) for edge in piece.edges)


def _mode_of(path: ast.PathPattern, match_mode: ast.MatchMode) -> Mode:
    """Return what may not come twice on a path: as it says, or as its clause has it."""
    if path.mode is ast.PathMode.SIMPLE and match_mode is ast.MatchMode.REPEATABLE_ELEMENTS:
        return "SIMPLE WALK"
    if path.mode is not None:
        return path.mode.value
    first, last = path.nodes[0].variable, path.nodes[-1].variable
    if match_mode is ast.MatchMode.DIFFERENT_NODES and first is not None and first == last:
        return "SIMPLE"  # one vertex of the pattern, though it stands at both ends
    return _DEFAULT[match_mode]

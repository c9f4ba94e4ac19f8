"""MATCH clauses with paths, taken apart: what is plain in them, the paths, and the ends that nothing else holds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from graphdb.common.values.types import NODE, PATH, list_of
from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import conjuncts, variables_in
from graphdb.pattern.free import free_variables
from graphdb.pattern.paths.lengths import OF_PATHS, all_hold, length_name
from graphdb.pattern.paths.pieces import Piece, names_of, pieces_of
from graphdb.pattern.rename import renamed
from graphdb.plan.paths import EVERY
from graphdb.relational.path_patterns.order import apart
from graphdb.sql.value import SqlValue, column, edges_of

ALL_PATHS = ast.Selector(EVERY)
"""What stands for no selector."""


@dataclass(frozen=True, slots=True)
class Path:
    """A path to search for, of a clause by its number: its parts, and the names of its ends."""

    clause: int
    pattern: ast.PathPattern
    pieces: tuple[Piece, ...]
    left: str
    right: str

    @property
    def names(self) -> list[str]:
        """The names of the path and of what is in it."""
        own = names_of(self.pattern, *self.pattern.nodes[1:-1])
        return own + [name for piece in self.pieces for name in piece.names]

    def values(self) -> Iterator[tuple[str, SqlValue]]:
        """Yield what the names stand for in rows with the columns of the path."""
        edges = edges_of("b.ppath")
        if self.pattern.variable is not None:
            yield self.pattern.variable.name, column("ppath", PATH)
        yield self.edges, edges
        cuts = ["0", *(f"b.pc{cut}" for cut in range(1, len(self.pieces))), "b.plength"]
        for node, begin in zip(self.pattern.nodes[1:-1], cuts[1:], strict=False):
            if node.variable is not None:
                yield node.variable.name, SqlValue(f"(b.ppath).vertices[{begin} + 1]", NODE)
        for piece, begin, end in zip(self.pieces, cuts, cuts[1:], strict=False):
            if piece.nested:
                continue
            count = len(piece.edges)
            places = [(edge.variable, edges, at, at) for at, edge in enumerate(piece.every_edge())]
            vertices = SqlValue("(b.ppath).vertices", list_of(NODE))
            places += [(node.variable, vertices, at, at // count) for at, node in enumerate(piece.nodes)]
            for variable, values, at, beyond in places:
                if variable is None:
                    continue
                first = f"({values.sql})[{begin} + {at + 1}"
                if not piece.group:
                    assert values.type.element is not None
                    yield variable.name, SqlValue(f"{first}]", values.type.element)
                    continue
                last = f"{end} + 1" if values is vertices and beyond else end
                step = f":{count}" if count > 1 else ""
                yield variable.name, SqlValue(f"{first}:{last}{step}]", values.type)

    @property
    def length(self) -> str:
        """The variable of its length."""
        return length_name("" if self.pattern.variable is None else self.pattern.variable.name)

    @property
    def edges(self) -> str:
        """The variable of its edges, for paths beside it."""
        return f"{OF_PATHS} edges at {self.pattern.span.start}"


@dataclass(frozen=True, slots=True)
class Split:
    """MATCH clauses without their paths.

    Attributes
    ----------
    free
        The ends of paths that nothing else holds, and what is said of each alone.
    after
        Conditions on the paths, or on such ends and others.
    """

    plain: list[ast.MatchClause]
    paths: list[Path]
    free: dict[str, ast.MatchClause]
    after: tuple[ast.Expression, ...]

    def asked(self, path: Path) -> set[str]:
        """Return the names of a path's ends, and those that conditions on them alone name besides."""
        ends = {path.left, path.right}
        return ends.union(*(free_variables(self.free[end]) for end in ends & self.free.keys()))


def split_clauses(matches: Sequence[ast.MatchClause], given: Collection[str]) -> Split | None:
    """Part the paths of MATCH clauses from what is plain in them; None where no search finds one of them."""
    plain: list[list[ast.PathPattern]] = [[] for _ in matches]
    paths: list[Path] = []
    nodes: list[tuple[int, ast.NodePattern, str]] = []
    apart_of = [_pieces(match) for match in matches]
    taken = {*given, *(name for pieces in apart_of for piece in pieces for name in _outer_names(piece))}
    same: list[list[ast.Expression]] = [[] for _ in matches]
    costed = any(path.cost is not None for match in matches for path in match.patterns)
    for number, match in enumerate(matches):
        for piece in apart_of[number]:
            if piece.plain:
                plain[number].append(piece)
                continue
            if costed:  # else paths are searched for one by one, from the vertices that are known
                piece = _with_own_names(piece, match, taken, same[number])
            parts = None if match.mode is ast.MatchMode.INDUCED or not piece.edges else pieces_of(piece)
            if parts is None:
                return None
            ends = []
            for at, node in zip((0, len(piece.edges)), (piece.nodes[0], piece.nodes[-1]), strict=True):
                name = f"{OF_PATHS} end {piece.span.start} {at}" if node.variable is None else node.variable.name
                nodes.append((number, replace(node, variable=ast.Variable(name, node.span)), name))
                ends.append(name)
            selected = replace(piece, selector=piece.selector or ALL_PATHS)
            paths.append(Path(number, selected, tuple(parts), *ends))
    placed = {*given, *variables_in(tuple(node.variable for pieces in plain for p in pieces for node in p.nodes))}
    own: dict[str, list[ast.PathPattern]] = {}
    for number, node, name in nodes:
        alone = ast.PathPattern((node,), (), node.span)
        if name not in placed:
            own.setdefault(name, []).append(alone)
        elif replace(node, variable=None) != ast.NodePattern():
            plain[number].append(alone)
    inside = [name for path in paths for name in path.names]
    if len({*inside}) < len(inside) or not placed.union(own).isdisjoint(inside):
        return None  # a name that comes twice
    later = {*own}.union(*((*path.names, path.length) for path in paths))
    costs = (path.pattern.cost for path in paths)
    later |= {cost.variable.name for cost in costs if cost is not None and cost.variable is not None}
    of_one: dict[str, list[ast.Expression]] = {name: [] for name in own}
    after: list[ast.Expression] = []
    found = []
    for match, pieces, equal in zip(matches, plain, same, strict=True):
        ready = []
        for condition in (*conjuncts(match.where), *equal):
            names = free_variables(condition)
            if names.isdisjoint(later):
                ready.append(condition)
            elif len(names) == 1 and names <= own.keys():
                of_one[names.pop()].append(condition)
            else:
                after.append(condition)
        found.append(replace(match, patterns=tuple(pieces), where=all_hold(ready, match.span)))
    free = {
        name: ast.MatchClause(tuple(pieces), where=all_hold(of_one[name], pieces[0].span), span=pieces[0].span)
        for name, pieces in own.items()
    }
    return Split(found, paths, free, tuple(after))


def _pieces(match: ast.MatchClause) -> list[ast.PathPattern]:
    if match.mode is ast.MatchMode.DIFFERENT_NODES:  # no vertex of a path is one of the rest
        return list(match.patterns)
    return [piece for path in match.patterns for piece in apart(path)]


def _outer_names(piece: ast.PathPattern) -> list[str]:
    """Return the vertices of what is plain, and the ends of a path."""
    return names_of(*(piece.nodes if piece.plain else (piece.nodes[0], piece.nodes[-1])))


def _with_own_names(
    piece: ast.PathPattern, match: ast.MatchClause, taken: set[str], same: list[ast.Expression]
) -> ast.PathPattern:
    """Return a path without a selector in which a vertex on its way that is named elsewhere, too, has another name.

    ``same`` gets the conditions that both are one, and ``taken`` the names of the others.
    """
    if piece.selector is not None or match.mode in (ast.MatchMode.DIFFERENT_NODES, ast.MatchMode.INDUCED):
        return piece
    nodes = list(piece.nodes)
    for at, node in enumerate(nodes[1:-1], 1):
        if node.variable is None:
            continue
        if node.variable.name in taken:
            own = ast.Variable(f"{OF_PATHS} place {piece.span.start} {at}", node.span)
            nodes[at] = renamed(node, {node.variable.name: own.name})
            same.append(ast.Comparison(("=",), (own, node.variable), node.span))
        taken.add(node.variable.name)
    return replace(piece, nodes=tuple(nodes))

"""Named paths as the edges and repeated edges that they are of, put together once these are joined.

``MATCH q = (m {id: $x})-[:REPLY_OF*0..]->(p:Post)<-[:CONTAINER_OF]-(f)`` is a search from ``m``, and an edge at each
``p`` that it comes to: ``q`` is made of their vertices and edges.  A search for the whole path would go through all
edges of both labels first, for it takes them by the states of the pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from graphdb.common.values.types import CODE_BITS, INTEGER, PATH, Base
from graphdb.grammar import syntax as ast
from graphdb.pattern.free import free_variables
from graphdb.pattern.paths.lengths import length_name, without
from graphdb.relational.projection.relation import Relation
from graphdb.sql.value import SqlValue

_MODES = (ast.MatchMode.DIFFERENT_EDGES, ast.MatchMode.REPEATABLE_ELEMENTS)


@dataclass(frozen=True, slots=True)
class _Piece:
    """An edge of a path, or a path of repeated edges, by its name, and the vertex that it leads to."""

    name: str
    to: str
    repeated: bool
    direction: ast.Direction


@dataclass(frozen=True, slots=True)
class _Named:
    """A named path: the vertex that it begins with, and its pieces."""

    start: str
    pieces: tuple[_Piece, ...]

    def names(self, *, whole: bool) -> set[str]:
        """Return the names that it is made of, or that its length alone is."""
        if not whole:
            return {length_name(piece.name) for piece in self.pieces if piece.repeated}
        return {self.start, *(name for piece in self.pieces for name in (piece.name, piece.to))}


@dataclass(frozen=True, slots=True)
class InPieces:
    """MATCH clauses in which some paths are in pieces, and the conditions on these paths."""

    matches: tuple[ast.MatchClause, ...]
    paths: dict[str, _Named]
    after: tuple[ast.Expression, ...]

    def used(self, live: Collection[str]) -> set[str]:
        """Return what has to have columns so that ``live`` names have values, and the conditions can be tested."""
        asked = {*live, *free_variables(self.after)}
        names = asked - {*self.paths, *map(length_name, self.paths)}
        for name, path in self.paths.items():
            names |= path.names(whole=True) if name in asked else set()
            names |= path.names(whole=False) if length_name(name) in asked else set()
        return names

    def put_together(self, found: Relation, live: Collection[str]) -> Relation | None:
        """Return rows of the pieces with the paths that ``live`` names and conditions ask for.

        None where one leads to literals, or its pieces have no columns.
        """
        asked = {*live, *free_variables(self.after)}
        made: dict[str, SqlValue] = {}
        known = found.variables
        for name, path in self.paths.items():
            if name in asked:
                vertices = {path.start, *(piece.to for piece in path.pieces)}
                if not path.names(whole=True) <= known.keys():
                    return None
                if any(known[vertex].type.base is not Base.NODE for vertex in vertices):
                    return None
                made[name] = _whole(path, known.__getitem__)
            if length_name(name) in asked:
                if not path.names(whole=False) <= known.keys():
                    return None
                made[length_name(name)] = _length(path, known.__getitem__)
        return replace(found, variables={**known, **made}, where=(*found.where, *self.after))


def in_pieces(
    matches: Sequence[ast.MatchClause], given: Collection[str], fresh: Callable[[str], str]
) -> InPieces | None:
    """Return MATCH clauses whose named paths are in pieces; None where there are none that can be.

    ``given`` are the names that are known before, and ``fresh`` returns one that nothing else has.
    """
    paths: dict[str, _Named] = {}
    changed = []
    for match in matches:
        patterns: list[ast.PathPattern] = []
        for path in match.patterns:
            if path.variable is None or path.variable.name in given or not _has_pieces(path, match):
                patterns.append(path)
                continue
            paths[path.variable.name], pieces = _taken_apart(path, fresh)
            patterns += pieces
        changed.append(replace(match, patterns=tuple(patterns)))
    if not paths:
        return None
    found, after = without(tuple(changed), {*paths})
    return InPieces(found, paths, after)


def _has_pieces(path: ast.PathPattern, match: ast.MatchClause) -> bool:
    """Whether a path is what its edges are together: nothing is said of it as a whole, nor of a part of several."""
    if path.mode is not None or path.selector is not None or path.cost is not None or match.mode not in _MODES:
        return False
    edges = [edge for edge in path.edges if isinstance(edge, ast.EdgePattern)]
    if len(edges) < len(path.edges) or not any(edge.single for edge in edges):
        return False
    assert path.variable is not None
    return path.variable.name not in free_variables((path.nodes, path.edges))


def _taken_apart(path: ast.PathPattern, fresh: Callable[[str], str]) -> tuple[_Named, list[ast.PathPattern]]:
    """Return a path by the names of its pieces, and these as patterns."""
    nodes = [
        node if node.variable else replace(node, variable=ast.Variable(fresh("node"), node.span)) for node in path.nodes
    ]
    names = [node.variable.name for node in nodes if node.variable is not None]
    bare = [ast.NodePattern(node.variable, span=node.span) for node in nodes]
    patterns = [ast.PathPattern((node,), (), path.span) for node in nodes]
    pieces = []
    for i, edge in enumerate(path.edges):
        assert isinstance(edge, ast.EdgePattern)
        key = ast.Variable(fresh("path"), edge.span)
        if edge.single:
            edge = edge if edge.variable is not None else replace(edge, variable=key)
            key = edge.variable or key
        pieces.append(_Piece(key.name, names[i + 1], not edge.single, edge.direction))
        variable = None if edge.single else key
        patterns.append(ast.PathPattern((bare[i], bare[i + 1]), (edge,), edge.span, variable))
    return _Named(names[0], tuple(pieces)), patterns


def _length(path: _Named, known: Callable[[str], SqlValue]) -> SqlValue:
    """Return the length of a path by those of its pieces."""
    single = sum(not piece.repeated for piece in path.pieces)
    others = [known(length_name(piece.name)).sql for piece in path.pieces if piece.repeated]
    return SqlValue(f"CAST({' + '.join([str(single), *others])} AS BIGINT)", INTEGER)


def _whole(path: _Named, known: Callable[[str], SqlValue]) -> SqlValue:
    """Return a path by its pieces: edges have the codes by which paths know them."""
    at = path.start
    vertices, codes = [f"[{_id(known(at))}]"], ["CAST([] AS BIGINT[])"]
    for piece in path.pieces:
        found = known(piece.name).sql
        if piece.repeated:
            vertices.append(f"({found}).vertices[2:]")
            codes.append(f"({found}).codes")
        else:
            back = "0"
            if piece.direction is ast.Direction.IN:  # a loop has one direction
                back = f"CASE WHEN {_id(known(at))} = {_id(known(piece.to))} THEN 0 ELSE 1 END"
            elif piece.direction is ast.Direction.BOTH:
                back = f'CASE WHEN ({found})."start" = {_id(known(at))} THEN 0 ELSE 1 END'
            vertices.append(f"[{_id(known(piece.to))}]")
            codes.append(f"[(({found}).label << 1) | {back} | (({found}).ordinal << {CODE_BITS})]")
        at = piece.to
    packed = f"vertices := {' || '.join(vertices)}, codes := {' || '.join(codes)}"
    return SqlValue(f"struct_pack({packed})", PATH)


def _id(vertex: SqlValue) -> str:
    return f"CAST({vertex.sql} AS BIGINT)"

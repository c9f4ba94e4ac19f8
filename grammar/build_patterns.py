"""Patterns: paths with their prefixes, vertices, edges, quantifiers, label expressions, and the names in them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from graphdb.grammar import syntax as s
from graphdb.grammar.build_base import Base, always, first, node_of, node_of_all, span_at
from graphdb.grammar.compose import path_of
from graphdb.grammar.lexing import Token

_MOST_STEPS = 2**31 - 1

_Prefix = tuple[s.Selector | None, s.PathMode | None]
"""A path's selector and mode."""


def _has_edge(path: s.PathPattern) -> bool:
    return any(isinstance(edge, s.EdgePattern) or _has_edge(edge.pattern) for edge in path.edges)


class Patterns(Base):
    """One method for each rule of patterns."""

    def pattern(self, span: s.Span, children: list[Any]) -> s.PathPattern:
        name, prefix, *elements, cost = children
        selector, mode = prefix or (None, None)
        if prefix is not None and selector is mode is None:
            self.prefixed.add(span.start)
        return self._priced(path_of(elements, self, span, name, mode, selector), cost)

    def legacy(self, span: s.Span, children: list[Any]) -> s.PathPattern:
        name, path, cost = children
        found = s.PathPattern(path.nodes, path.edges, span, name, path.mode, path.selector)
        return self._priced(found, cost)

    cost = node_of(s.Cost)

    def _priced(self, path: s.PathPattern, cost: s.Cost | None) -> s.PathPattern:
        """Return a path with its cost, which is that of one repeated edge, alone or in brackets."""
        if cost is None:
            return path
        position, selector = cost.span.start, path.selector
        if selector is None or not selector.shortest or selector.count != 1 or selector.given is not None:
            hint = "write ANY SHORTEST or ALL SHORTEST before the path"
            raise self.error("COST BY says what is shortest: the path needs a selector", position, hint)
        (edge, *more), repeat = path.edges, path.edges[0].repeat
        inner = edge.pattern if isinstance(edge, s.Subpath) else None
        alone = inner is None or (
            len(inner.edges) == 1
            and isinstance(inner.edges[0], s.EdgePattern)
            and inner.edges[0].repeat is None
            and (inner.variable, inner.mode, inner.selector) == (None, None, None)
        )
        if more or repeat is None or not alone:
            hint = "match the rest as its own: MATCH (a)-[:X]->(b), ANY SHORTEST (b)-[e:Y]->+(c) COST BY e.w"
            raise self.error("COST BY needs a path of one repeated edge", position, hint)
        if repeat.low > 1 or repeat.high is not None:
            hint = "write * (from no edge on, in GQL's form ->*) or + (from one edge on)"
            raise self.error("COST BY needs a path of any number of edges", position, hint)
        return replace(path, cost=cost)

    def path_variable(self, span: s.Span, children: list[Any]) -> s.Variable:
        return s.Variable(self._naming(children[0]), span_at(children[0]))

    def legacy_shortest(self, span: s.Span, children: list[Any]) -> s.PathPattern:
        function, left, edge, right = children
        selector = s.Selector(1, shortest=True, groups=function.upper() == "ALLSHORTESTPATHS", legacy=True)
        return s.PathPattern((left, right), (edge,), span, None, None, selector)

    def any_path(self, span: s.Span, children: list[Any]) -> _Prefix:
        count, mode = children
        return self._selector(count), mode

    def any_shortest(self, span: s.Span, children: list[Any]) -> _Prefix:
        return s.Selector(1, shortest=True), children[0]

    def all_paths(self, span: s.Span, children: list[Any]) -> _Prefix:
        return None, children[0]

    def all_shortest(self, span: s.Span, children: list[Any]) -> _Prefix:
        return s.Selector(1, shortest=True, groups=True), children[0]

    def shortest(self, span: s.Span, children: list[Any]) -> _Prefix:
        count, mode, groups = children
        if count is None and groups is None:
            raise self.error("SHORTEST needs a number of paths", span.start, "write ANY SHORTEST or SHORTEST 1")
        return self._selector(count, shortest=True, groups=groups is not None), mode

    groups = always(True)

    def _selector(
        self, count: Token | s.Parameter | None, *, shortest: bool = False, groups: bool = False
    ) -> s.Selector:
        if isinstance(count, s.Parameter):
            return s.Selector(1, shortest, groups, count)
        if count is None:
            return s.Selector(1, shortest, groups)
        number = self._bound(count)
        if number < 1:
            raise self.error(s.NO_COUNT, int(count.start_pos or 0))
        return s.Selector(number, shortest, groups)

    def _bound(self, token: Token) -> int:
        if not re.fullmatch(r"\d+(_\d+)*", token):
            raise self.error(f"{token} is not a number of steps", int(token.start_pos or 0))
        if int(token) > _MOST_STEPS:
            raise self.error(f"{token} is out of range: there are at most {_MOST_STEPS}", int(token.start_pos or 0))
        return int(token)

    path_mode = first
    walk = always(s.PathMode.WALK)
    trail = always(s.PathMode.TRAIL)
    simple = always(s.PathMode.SIMPLE)
    acyclic = always(s.PathMode.ACYCLIC)

    def node(self, span: s.Span, children: list[Any]) -> s.NodePattern:
        variable, iri, labels, properties, where = children
        given = properties if isinstance(properties, s.Parameter) else None
        return s.NodePattern(variable, labels, iri, None if given else properties, where, span, given)

    def known_node(self, span: s.Span, children: list[Any]) -> s.NodePattern:
        # Not a `variable` in the grammar: names would then be accepted behind every variable, and DESC be one.
        token, *rest = children
        return self.node(span, [s.Variable(self._naming(token), s.Span(token.start_pos, token.end_pos)), *rest])

    def all_properties(self, span: s.Span, children: list[Any]) -> s.Parameter:
        self.given = True
        return self.parameter(span, children)

    def subpath(self, span: s.Span, children: list[Any]) -> s.Subpath:
        name, *elements, where, repeat = children
        path = path_of(elements, self, span, name)
        if repeat is not None and not _has_edge(path):
            raise self.error("what is repeated needs an edge in it", span.start)
        return s.Subpath(path, where, repeat, span)

    def filler(self, span: s.Span, children: list[Any]) -> list[Any]:
        return children

    def _edge(self, direction: s.Direction, span: s.Span, children: list[Any]) -> s.EdgePattern:
        variable, labels, length, properties, where = (children[0] if len(children) > 1 else None) or (None,) * 5
        given = properties if isinstance(properties, s.Parameter) else None
        if length is not None and children[-1] is not None:
            raise self.error("an edge is repeated in its brackets or after them, not both", span.start)
        return s.EdgePattern(
            direction,
            variable,
            labels,
            None if given else properties,
            where,
            children[-1] or length,
            span,
            given,
        )

    def edge_out(self, span: s.Span, children: list[Any]) -> s.EdgePattern:
        return self._edge(s.Direction.OUT, span, children)

    def edge_in(self, span: s.Span, children: list[Any]) -> s.EdgePattern:
        return self._edge(s.Direction.IN, span, children)

    def edge_both(self, span: s.Span, children: list[Any]) -> s.EdgePattern:
        return self._edge(s.Direction.BOTH, span, children)

    arrow_out, arrow_in, arrow_both = edge_out, edge_in, edge_both

    any_number = always(s.Repeat(0, None))
    some = always(s.Repeat(1, None))
    perhaps = always(s.Repeat(0, 1))

    def exactly(self, span: s.Span, children: list[Any]) -> s.Repeat:
        if children[0] is None:  # "*" in an edge's brackets
            return s.Repeat(1, None)
        count = self._bound(children[0])
        return s.Repeat(count, count)

    def between(self, span: s.Span, children: list[Any]) -> s.Repeat:
        low, high = (None if token is None else self._bound(token) for token in children)
        inside = self.text[span.start] == "*"
        if not inside and low is not None and high is not None and high < low:  # openCypher's *3..1 matches nothing
            hint = f"write {{{high},{low}}}"
            raise self.error(f"the upper bound {high} is below the lower one", span.start, hint)
        return s.Repeat(int(inside) if low is None else low, high)

    labels = first
    label_or = node_of_all(s.LabelOr)
    label_and = node_of_all(s.LabelAnd)
    label_not = node_of(s.LabelNot)
    label_any = node_of(s.LabelAny)

    def label_chain(self, span: s.Span, children: list[Any]) -> s.LabelChain:
        if len(children) == 1 and not children[0].text:  # behind a prefix it is the namespace itself
            self.refuse_name("", span.start)
        return s.LabelChain(tuple(children), span)

    # --- names --------------------------------------------------------------------------------------------

    def variable(self, span: s.Span, children: list[Any]) -> s.Variable:
        return s.Variable(self._naming(children[0]), span)

    def word(self, span: s.Span, children: list[Any]) -> s.Word:
        token = children[0]
        if token.type == "IRI":
            return s.Word(token[1:-1], True, span_at(token))
        return s.Word(self._name(token), False, span_at(token))

    name = property_word = map_word = word

    def key(self, span: s.Span, children: list[Any]) -> s.KeyName:
        words = (children[0], children[2]) if children[1] is not None else (children[0],)
        return s.KeyName(words, span)

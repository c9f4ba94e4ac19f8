"""Where a node stands in the text, and names as they are written: of labels, edge labels and property keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias


class Span(NamedTuple):
    """Character offsets ``[start, end)`` into the statement's text."""

    start: int
    end: int


HERE = Span(0, 0)
"""The place of a node that no text was parsed for."""


@dataclass(frozen=True, slots=True)
class Word:
    """One written name part: an identifier (back-quotes removed) or a full IRI (angle brackets removed)."""

    text: str
    is_iri: bool = False
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class LabelChain:
    """Names joined by colons, ``A:B``: the binder reads a declared prefix with its local name, else labels that
    must all hold.
    """

    words: tuple[Word, ...]
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class LabelAny:
    """``%``: any label."""

    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class LabelNot:
    """``!x``."""

    operand: LabelExpression
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class LabelAnd:
    """``x & y``."""

    operands: tuple[LabelExpression, ...]
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class LabelOr:
    """``x | y``."""

    operands: tuple[LabelExpression, ...]
    span: Span = field(default=HERE, compare=False)


LabelExpression: TypeAlias = LabelChain | LabelAny | LabelNot | LabelAnd | LabelOr


@dataclass(frozen=True, slots=True)
class KeyName:
    """A property key: one word (bare name or IRI), or two (prefix and local name)."""

    words: tuple[Word, ...]
    span: Span = field(default=HERE, compare=False)

    @property
    def text(self) -> str:
        """The key as a user would write it."""
        if len(self.words) == 1 and not self.words[0].is_iri:
            return self.words[0].text
        return ":".join(f"<{w.text}>" if w.is_iri else w.text for w in self.words)

"""Functions of texts as Python computes them, of values that are there and of the right types."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from graphdb.common import regex

BLANKS = " \t\n\r\f"
"""What trimming takes away."""

MOST_PARTS = 1_000_000
"""Parts of a text that is split: DuckDB makes so many in a quarter of a second, in which nothing stops it."""


def split(text: str, separator: str) -> list[str] | None:
    """Return the parts of a text, its characters where nothing separates them; None where they are too many."""
    if len(text) >= MOST_PARTS and (not separator or text.count(separator) >= MOST_PARTS):
        return None
    return text.split(separator) if separator else list(text) or [text]


_BECOME_SEVERAL = (
    "ŉǰΐΰևẖẗẘẙẚὐὒὔὖᾀᾁᾂᾃᾄᾅᾆᾇᾈᾉᾊᾋᾌᾍᾎᾏᾐᾑᾒᾓᾔᾕᾖᾗᾘᾙᾚᾛᾜᾝᾞᾟᾠᾡᾢᾣᾤᾥᾦᾧᾨᾩᾪᾫᾬᾭᾮᾯᾲᾳᾴᾶᾷᾼῂῃῄῆῇῌῒΐῖῗῢΰῤῦῧῲῳῴῶῷῼﬀﬁﬂﬃﬄﬅﬆﬓﬔﬕﬖﬗ"
)
"""Letters of which Python makes several capitals, ß aside."""
_ONE_EACH = re.compile(f"[^{_BECOME_SEVERAL}]+")


def _upper(text: str) -> str:
    """Return a text in capitals as SQL does: a letter becomes one, but ß two."""
    return text.upper() if text.isascii() else _ONE_EACH.sub(lambda found: found[0].upper(), text.replace("ß", "SS"))


def _lower(text: str) -> str:
    """Return a text in small letters as SQL does: a letter becomes one, wherever in a word it stands."""
    return text.replace("İ", "i").replace("Σ", "σ").lower()


TEXTS: Mapping[str, Callable[..., Any]] = {
    "toupper": _upper,
    "tolower": _lower,
    "trim": lambda text: text.strip(BLANKS),
    "btrim": lambda text, characters=BLANKS: text.strip(characters),
    "ltrim": lambda text, characters=BLANKS: text.lstrip(characters),
    "rtrim": lambda text, characters=BLANKS: text.rstrip(characters),
    "normalize": lambda text, form="NFC": unicodedata.normalize(form, text),
    "replace": lambda text, old, new: text.replace(old, new) if old else text,
    "reverse": lambda text: text[::-1],
    "split": split,
    "substring": lambda text, start, length=None: text[start:] if length is None else text[start : start + length],
    "left": lambda text, length: text[:length],
    "right": lambda text, length: text[-length:] if length else "",
    "charlength": len,
    "||": lambda left, right: left + right,
    "STARTS WITH": str.startswith,
    "ENDS WITH": str.endswith,
    "CONTAINS": str.__contains__,
    "=~": lambda text, pattern: regex.full_match(pattern, text),
}
"""By their signatures' keys; the predicates by their operators."""

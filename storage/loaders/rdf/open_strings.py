"""Strings of Turtle and TriG that their line does not close, where the library is to go on behind errors.

The library takes such a string to reach to the next quote of its kind, lines further on or never, and what lies between
is lost.  A string that may not have a line break ends with its line, so it is closed there in the text that the library
reads, with a language tag that is none and a full stop: one error, behind which it goes on with the next line.
"""

from __future__ import annotations

import re

STRINGS = rb"""
        \"{3} (?:[^"\\] | \\. | "(?!""))*+ \"{3}
      | '{3} (?:[^'\\] | \\. | '(?!''))*+ '{3}
      | "(?!"") (?:[^"\\\r\n] | \\[^\r\n])*+ "
      | '(?!'') (?:[^'\\\r\n] | \\[^\r\n])*+ '
"""
"""Strings that are closed, as a part of a verbose pattern."""

IRIS_AND_COMMENTS = rb"""
        <[^<>"{}|^`\\\x00-\x20]*+> | <
      | \#[^\r\n]*+
"""
"""What else may have quotes and brackets in it."""

_SOUND = re.compile(
    rb"(?: [^\"'\#<\\]++ | " + IRIS_AND_COMMENTS + rb" | " + STRINGS + rb" | \\. )*+", re.DOTALL | re.VERBOSE
)
"""Text up to a string that is not closed."""

_BREAK = re.compile(rb"[\r\n]")
_LONGEST = 16 << 20
"""Bytes of a string of several lines that wait for its end, at most."""

MESSAGE = "the string is not closed on its line"


class OpenStrings:
    """Closes them, in a text that comes in pieces.

    Attributes
    ----------
    places
        The columns where they begin, by their lines.
    """

    def __init__(self) -> None:
        self._waiting = b""
        self._line = 1
        self.places: dict[int, int] = {}

    def closed(self, chunk: bytes) -> bytes:
        """Return the next part of the text, up to an end of a line; an empty ``chunk`` is the end of it."""
        text = self._waiting + chunk
        end = text.rfind(b"\n") + 1 if chunk else len(text)
        made: list[bytes] = []
        at = counted = 0
        while (stop := self._sound(text, at, end)) < end:
            found = _BREAK.search(text, stop)
            if found is None or text[stop : stop + 3] in (b'"""', b"'''"):  # its end may come
                break
            quote = text[stop : stop + 1]
            start = max(text.rfind(b"\n", 0, stop), text.rfind(b"\r", 0, stop)) + 1
            self._line += text.count(b"\n", counted, stop)
            counted = stop
            self.places[self._line] = len(text[start:stop].decode("utf-8", "replace")) + 1
            made += [text[at : found.start()], quote, b"@ ."]
            at = found.start()
        else:
            stop = end
        if not chunk or len(text) - stop > _LONGEST:
            stop = len(text)
        made.append(text[at:stop])
        self._waiting = text[stop:]
        self._line += text.count(b"\n", counted, stop)
        return b"".join(made)

    @staticmethod
    def _sound(text: bytes, at: int, end: int) -> int:
        found = _SOUND.match(text, at, end)
        return end if found is None else found.end()

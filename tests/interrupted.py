"""Interrupts at chosen lines, as Ctrl-C comes at any."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from typing import Any


def interrupted(run: Callable[[], object], at: int, files: tuple[str, ...]) -> KeyboardInterrupt | None:
    """Run with an interrupt at the given line, counted, of files that end so; return it, with its frames, if it came.

    Not in what finalizers call (``_release``): Python drops what is raised there.  Nor where a ``with`` is left: a
    signal comes after a call, and from the last one within until the call that leaves it there is none.
    """
    left = at

    def lines() -> Callable[[Any, str, object], Any]:
        """What sees the lines of one call."""
        came_from = 0

        def line(frame: Any, event: str, argument: object) -> Any:
            nonlocal left, came_from
            if event == "line":
                before, came_from = came_from, frame.f_lineno
                text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip()
                if not (text.startswith("with ") and before > frame.f_lineno):
                    left -= 1
                    if left == -1:
                        raise KeyboardInterrupt
            return line

        return line

    def called(frame: Any, event: str, argument: object) -> Any:
        code = frame.f_code
        return lines() if code.co_filename.endswith(files) and code.co_name != "_release" else None

    sys.settrace(called)
    try:
        run()
    except KeyboardInterrupt as error:
        return error
    finally:
        sys.settrace(None)
    return None

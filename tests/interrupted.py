"""Interrupts at chosen lines, as Ctrl-C comes at any."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def interrupted(run: Callable[[], object], at: int, files: tuple[str, ...]) -> KeyboardInterrupt | None:
    """Run with an interrupt at the given line, counted, of files that end so; return it, with its frames, if it came.

    Not in what finalizers call (``_release``): Python drops what is raised there.
    """
    left = at

    def line(frame: Any, event: str, argument: object) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left == -1:
                raise KeyboardInterrupt
        return line

    def called(frame: Any, event: str, argument: object) -> Any:
        code = frame.f_code
        return line if code.co_filename.endswith(files) and code.co_name != "_release" else None

    sys.settrace(called)
    try:
        run()
    except KeyboardInterrupt as error:
        return error
    finally:
        sys.settrace(None)
    return None

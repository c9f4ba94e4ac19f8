"""What lets a picture in a notebook ask its kernel for the edges of a vertex.

A page in a notebook's output reaches no kernel by itself.  anywidget (of the extra ``notebook``) brings a comm and runs
a script of ours in the notebook's page; that hands messages between the kernel and the pictures, which stand apart from
the page in frames.  Without anywidget, in other front ends and once the kernel is gone, pictures are as they are in
files: nothing is asked, and no vertex can be expanded.
"""

from __future__ import annotations

import functools
import sys
import uuid
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from graphdb.common.errors import GraphDBError
from graphdb.pictures import asset

Expand = Callable[[str], dict[str, Any]]
"""Finds the edges of a vertex by its IRI: what :meth:`Picture.data` has of them."""

_MOST = 50
"""Pictures that may ask, the last ones; each keeps what finds its edges."""


def registered(expand: Expand) -> str | None:
    """Let a picture ask ``expand``; return its id, or None where no kernel could answer."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:
        return None
    try:
        bridge = _bridge()
    except ImportError:
        return None
    return bridge.add(expand)


class Asked:
    """What a kernel's pictures ask for; ``publish`` is called with the ids of those that may."""

    def __init__(self, publish: Callable[[list[str]], None]) -> None:
        self._publish = publish
        self._expands: OrderedDict[str, Expand] = OrderedDict()

    def add(self, expand: Expand) -> str:
        """Let one more picture ask; return its id."""
        id = uuid.uuid4().hex
        self._expands[id] = expand
        while len(self._expands) > _MOST:
            self._expands.popitem(last=False)
        self._publish(list(self._expands))
        return id

    def answer(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a message of the page: a graph, or what is wrong; None to one that is not ours."""
        expand = self._expands.get(str(message.get("picture")))
        iri = message.get("expand")
        if expand is None or not isinstance(iri, str):
            return None
        found = {"picture": message["picture"], "number": message.get("number")}
        try:
            return {**found, "graph": expand(iri)}
        except GraphDBError as error:
            return {**found, "error": error.message}


@functools.cache
def _bridge() -> Asked:
    """The one bridge of this kernel."""
    import anywidget
    import traitlets

    class Bridge(anywidget.AnyWidget):
        """Has the script that runs in the notebook's page."""

        _esm = asset("bridge.js")
        pictures = traitlets.List(traitlets.Unicode()).tag(sync=True)

    widget = Bridge()
    asked = Asked(lambda ids: setattr(widget, "pictures", ids))

    def hear(_: Any, message: Any, __: Any) -> None:
        answer = asked.answer(message) if isinstance(message, dict) else None
        if answer is not None:
            widget.send(answer)

    widget.on_msg(hear)
    return asked

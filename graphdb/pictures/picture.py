"""A picture of vertices and edges: data for the page that draws them, and the page."""

from __future__ import annotations

import json
import os
import tempfile
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from graphdb.common.values.elements import Node, Relationship
from graphdb.pictures import MOST, asset
from graphdb.pictures.bridge import registered

_CAPTIONS = ("name", "title", "label", "prefLabel", "caption", "id")
"""Properties that may say what a vertex is called, in the order in which they are looked for."""

_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
"""What the page may reach: nothing but itself."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A graph as it is drawn.

    A notebook shows it; :meth:`show` opens it in a browser, :meth:`save` writes the page to a file.

    Attributes
    ----------
    nodes, relationships
        What is drawn.
    omitted
        How many vertices and edges are not, because there are too many.
    title
        What the page is called.
    expand
        Finds the edges of a vertex by its IRI, as a picture of them; None where nobody can be asked.
    """

    nodes: Sequence[Node]
    relationships: Sequence[Relationship]
    omitted: int = 0
    title: str = "graphdb"
    expand: Callable[[str], Picture] | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls,
        nodes: Sequence[Node],
        relationships: Sequence[Relationship],
        most: int = MOST,
        title: str = "graphdb",
        expand: Callable[[str], Picture] | None = None,
    ) -> Picture:
        """Return a picture of at most so many vertices, and so many of the edges between them."""
        shown = nodes[:most]
        there = {node.iri for node in shown}
        between = [edge for edge in relationships if edge.start in there and str(edge.end) in there][:most]
        return cls(shown, between, len(nodes) - len(shown) + len(relationships) - len(between), title, expand)

    def data(self) -> dict[str, Any]:
        """Return what the page draws, as JSON has it: ``nodes`` and ``links`` between them, by their IRIs."""
        nodes = [
            {
                "id": node.iri,
                "labels": list(node.labels),
                "caption": caption(node),
                "properties": _texts(node.properties),
            }
            for node in self.nodes
        ]
        links = [
            {"source": edge.start, "target": str(edge.end), "type": edge.type, "properties": _texts(edge.properties)}
            for edge in self.relationships
        ]
        return {"nodes": nodes, "links": links, "omitted": self.omitted}

    def html(self) -> str:
        """Return the page."""
        return self._page(None)

    def _page(self, live: str | None) -> str:
        """Return the page; with an id it asks for edges of vertices as :mod:`graphdb.pictures.bridge` hears it."""
        options = "" if live is None else f', graphdbLive("{live}")'
        data = json.dumps(self.data(), ensure_ascii=False).replace("<", "\\u003c")  # so that no text ends the script
        return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(self.title)}</title>
<style>{asset("picture.css")}</style>
</head>
<body class="page">
<main id="picture"></main>
<script>{asset("force-graph.min.js")}</script>
<script>{asset("picture.js")}</script>
<script>graphdbPicture(document.getElementById("picture"), {data}{options});</script>
</body>
</html>
"""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.html(), encoding="utf-8")

    def show(self) -> str:
        """Open the page in a browser, and return the path of the file, which is a temporary one."""
        with tempfile.NamedTemporaryFile(suffix=".html", prefix="graphdb-", delete=False) as file:
            file.write(self.html().encode())
        webbrowser.open(Path(file.name).as_uri())
        return file.name

    def _repr_html_(self) -> str:
        """The page in a frame within a notebook, whose kernel it may ask for more."""
        expand = self.expand
        live = None if expand is None else registered(lambda iri: expand(iri).data())
        frame = 'style="width: 100%; height: 520px; border: 1px solid #8884" sandbox="allow-scripts"'
        known = "" if live is None else f' data-graphdb="{live}"'
        return f'<iframe title="{escape(self.title)}" {frame}{known} srcdoc="{escape(self._page(live))}"></iframe>'

    @property
    def counts(self) -> str:
        """How much is drawn.

        >>> Picture([Node("_:a")], []).counts
        '1 vertex, 0 edges'
        """
        vertices = f"{len(self.nodes):,} vert" + ("ex" if len(self.nodes) == 1 else "ices")
        return f"{vertices}, {len(self.relationships):,} edge" + ("" if len(self.relationships) == 1 else "s")

    def __repr__(self) -> str:
        return f"<graphdb.Picture: {self.counts}>"


def caption(node: Node) -> str:
    """Return what a vertex is called: by a property, or the end of its IRI.

    >>> caption(Node("http://x.org/people#ada")), caption(Node("_:b1", (), {"ex:name": ["Ada", "A."]}))
    ('ada', 'Ada')
    """
    keys = {local(key): key for key in node.properties}
    for name in _CAPTIONS:
        if name in keys:
            value = node.properties[keys[name]]
            return str(value[0] if isinstance(value, list) and value else value)
    return local(node.iri)


def local(name: str) -> str:
    """Return the end of an IRI or of a prefixed name.

    >>> local("http://x.org/people#ada"), local("ex:Person"), local("Person")
    ('ada', 'Person', 'Person')
    """
    end = name.rstrip("/#")
    return end[max(map(end.rfind, "/#:")) + 1 :] or name


def _texts(properties: Mapping[str, object]) -> dict[str, str]:
    return {key: value if isinstance(value, str) else str(value) for key, value in properties.items()}

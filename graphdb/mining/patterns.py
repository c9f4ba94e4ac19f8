"""Patterns as mining finds them: written as MATCH takes them, and drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

NAMES = "abcdef"
"""The names of pattern vertices."""


@dataclass(frozen=True, slots=True, order=True)
class Pattern:
    """A connected pattern, its vertices in canonical order.

    Attributes
    ----------
    labels
        A number for the label of each vertex.
    edges
        (source, target, number of the label), sorted; without a direction the lower place comes first.
    directed
        Whether edges have a direction.
    """

    labels: tuple[int, ...]
    edges: tuple[tuple[int, int, int], ...]
    directed: bool = False

    def __len__(self) -> int:
        return len(self.labels)

    def text(
        self, vertex: Callable[[int], str] = lambda label: "", edge: Callable[[int], str] = lambda label: ""
    ) -> str:
        """Return the pattern as MATCH takes it: ``(a:A)-[:p]->(b), (b)-[:q]->(c)``.

        ``vertex`` writes what stands behind the name of a vertex with a label, such as ``":A"``; ``edge`` what stands
        in the brackets of an edge.
        """
        named = set[int]()

        def node(place: int) -> str:
            label = "" if place in named else vertex(self.labels[place])
            named.add(place)
            return f"({NAMES[place]}{label})"

        def line(source: int, target: int, label: int) -> str:
            inside = edge(label)
            arrow = f"-[{inside}]-" if inside else "--"
            return f"{node(source)}{arrow}{'>' if self.directed else ''}{node(target)}"

        return ", ".join([line(*each) for each in self.edges]) or node(0)

    def drawing(self) -> str:
        """Return a drawing in text: each vertex with those below it that it is joined to.

        >>> print(Pattern((0, 0, 0), ((0, 1, 0), (0, 2, 0), (1, 2, 0))).drawing())
        a-b-c-(a)
        """
        joined: dict[int, dict[int, str]] = {place: {} for place in range(len(self))}
        for source, target, _ in self.edges:
            both = target in joined[source] and joined[source][target] != ("->" if self.directed else "-")
            joined[source][target] = "<->" if both else "->" if self.directed else "-"
            joined[target][source] = "<->" if both else "<-" if self.directed else "-"
        lines: list[str] = []
        seen, drawn = {0}, set[tuple[int, int]]()

        def walk(place: int, text: str, indent: int) -> None:
            first = True
            while True:
                left = [other for other in sorted(joined[place]) if (place, other) not in drawn]
                if not left:
                    break
                other = left[0]
                drawn.update([(place, other), (other, place)])
                arrow = joined[place][other]
                if not first:
                    text = " " * indent
                first = False
                if other in seen:
                    lines.append(f"{text}{arrow}({NAMES[other]})")
                else:
                    seen.add(other)
                    text += f"{arrow}{NAMES[other]}"
                    walk(other, text, len(text))
            if first:
                lines.append(text)

        walk(0, NAMES[0], 1)
        return "\n".join(lines)

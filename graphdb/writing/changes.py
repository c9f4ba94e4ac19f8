"""What a statement changed, in numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Changes:
    """What a statement changed."""

    vertices_created: int = 0
    vertices_deleted: int = 0
    edges_created: int = 0
    edges_deleted: int = 0
    properties_set: int = 0
    labels_added: int = 0
    labels_removed: int = 0

    def __str__(self) -> str:
        parts = []
        for name in self.__slots__:
            if count := getattr(self, name):
                what, verb = name.split("_")
                parts.append(f"{count:,} {_ONE[what] if count == 1 else what} {verb}")
        return ", ".join(parts) if parts else "no changes"


_ONE = {"vertices": "vertex", "edges": "edge", "properties": "property", "labels": "label"}

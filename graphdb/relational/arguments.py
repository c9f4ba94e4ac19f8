"""The arguments of a statement, which note whether their values were looked at while it was prepared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


class Arguments(Mapping[str, object]):
    """Values by the names of parameters.

    What is prepared without a look at the values is right for other values of the same types, too.
    """

    __slots__ = ("looked_at", "unnoted")

    def __init__(self, values: Mapping[str, object]) -> None:
        self.unnoted = values
        """The values for what is found anew for other values anyway (candidates): no look at these is noted."""
        self.looked_at = False
        """Whether somebody has asked for a value."""

    def __getitem__(self, name: str) -> object:
        self.looked_at = True
        return self.unnoted[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.unnoted)

    def __len__(self) -> int:
        return len(self.unnoted)

    def __contains__(self, name: object) -> bool:
        return name in self.unnoted

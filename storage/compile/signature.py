"""The types of a kernel that Python calls, declared once: for the compiler, and for whoever calls the machine code.

``"i8[:, :], T[:], T, b1 -> i8, i8"`` are the types of the parameters, and of the results if there are any.  Numbers are
``i8`` (int64), ``f8`` (float64) and ``b1`` (bool); arrays have items of these or narrower types, and a colon for each
dimension.  ``T`` stands for the type of vertex ids, int32 or int64, and is the same in one call; a ``T`` that is no
array tells that type alone, and is passed as an array of it, whose items nobody reads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphdb.common.lazy import lazy

ITEMS = {
    "b1": np.bool_, "i1": np.int8, "u1": np.uint8, "i4": np.int32, "u4": np.uint32, "i8": np.int64, "u8": np.uint64,
    "f8": np.float64,
}  # fmt: skip
"""The types of items, as NumPy calls them."""

IDS = ("i4", "i8")
"""What ``T`` may be."""

_NUMBERS = ("i8", "f8", "b1")
_PARAMETER = re.compile(r"(\w+)(?:\[(:(?:, ?:)*)\])?$")


@dataclass(frozen=True, slots=True)
class Parameter:
    """``dimensions`` is 0 for a number; ``item`` a key of :data:`ITEMS`, or ``T``."""

    item: str
    dimensions: int = 0

    @property
    def is_object(self) -> bool:
        """Whether an array is passed, not a number."""
        return self.dimensions > 0 or self.item == "T"

    def __str__(self) -> str:
        return self.item + (f"[{', '.join(':' * self.dimensions)}]" if self.dimensions else "")


@dataclass(frozen=True)
class Signature:
    """Raises ValueError where a text is no signature (:meth:`parse`)."""

    parameters: tuple[Parameter, ...]
    results: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Read a declaration."""
        taken, _, given = text.partition("->")
        parameters = tuple(map(_parameter, re.split(r",(?![^\[]*\])", taken)))
        results = tuple(name.strip() for name in given.split(",")) if given else ()
        if any(result not in ("i8", "b1") for result in results) or "b1" in results[1:]:
            raise ValueError(f"results are i8 or one b1, not {given}")
        return cls(parameters, results)

    @lazy
    def variants(self) -> tuple[str, ...]:
        """What ``T`` may be: nothing (an empty name) where there is none."""
        return IDS if any(parameter.item == "T" for parameter in self.parameters) else ("",)

    def variant_of(self, arguments: Sequence[object]) -> str | None:
        """Return the variant that fits the arguments; None where none does."""
        if len(arguments) != len(self.parameters):
            return None
        for variant in self.variants:
            if all(
                _fits(parameter, variant, value) for parameter, value in zip(self.parameters, arguments, strict=True)
            ):
                return variant
        return None

    def __str__(self) -> str:
        taken = ", ".join(map(str, self.parameters))
        return f"{taken} -> {', '.join(self.results)}" if self.results else taken


def _parameter(text: str) -> Parameter:
    found = _PARAMETER.match(text.strip())
    if found is None or found[1] not in (*ITEMS, "T") or (not found[2] and found[1] not in (*_NUMBERS, "T")):
        raise ValueError(f"{text.strip()!r} is no type of a parameter")
    return Parameter(found[1], found[2].count(":") if found[2] else 0)


def _fits(parameter: Parameter, variant: str, value: object) -> bool:
    if not parameter.is_object:
        return isinstance(value, (float, np.floating) if parameter.item == "f8" else (int, np.integer, np.bool_))
    item = ITEMS[variant if parameter.item == "T" else parameter.item]
    if not isinstance(value, np.ndarray) or value.dtype != item:
        return False
    return parameter.dimensions == 0 or (
        value.ndim == parameter.dimensions and value.flags.c_contiguous and value.flags.aligned
    )

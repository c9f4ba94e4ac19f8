"""What a function is, whichever way it is computed: its names, parameters, result and behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "any", "boolean", "edge", "element", "float", "integer", "list", "literal", "long", "map", "named", "number",
    "path", "propertied", "scalar", "sized", "string", "temporal", "term", "vertex",
]  # fmt: skip
"""What a parameter takes, or a function yields.

``element`` is a vertex or an edge; ``named`` what has an IRI, or its text; ``propertied`` what has properties, or a
map; ``long`` a path, list or string; ``sized`` a list or string; ``scalar`` a number, string, boolean or temporal
value; ``literal`` a property or a vertex that is a literal; ``term`` a vertex, literals among them.
"""

Volatility = Literal["immutable", "stable", "volatile"]
"""Whether equal arguments yield equal values: always, within one statement (clocks), or never (random numbers)."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter; ``optional`` ones may be left out, the last one may be ``repeated``."""

    name: str
    kind: Kind
    optional: bool = False
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """One function.

    Attributes
    ----------
    name
        As it is documented; calls are not case-sensitive.
    group
        Where it stands in the reference.
    doc
        What it yields, in one line.
    aliases
        Other names, in lower case.
    strict
        Whether it is null where an argument is.
    late
        Whether the types of its arguments are looked at only when it runs: openCypher tells the two errors apart.
    """

    name: str
    parameters: tuple[Parameter, ...]
    result: Kind
    group: str
    doc: str
    aliases: tuple[str, ...] = ()
    volatility: Volatility = "immutable"
    strict: bool = True
    late: bool = False
    aggregate: bool = False

    @property
    def key(self) -> str:
        """Its name in lower case, by which its forms in SQL and Python are found."""
        return self.name.lower()

    @property
    def least(self) -> int:
        """The number of arguments that it takes at least."""
        return sum(not parameter.optional for parameter in self.parameters)

    @property
    def most(self) -> int | None:
        """The number of arguments that it takes at most; None where there is no bound."""
        return None if self.parameters and self.parameters[-1].repeated else len(self.parameters)

    def kind(self, place: int) -> Kind:
        """What the argument at a place (from 0) has to be."""
        return self.parameters[min(place, len(self.parameters) - 1)].kind

    def wrong_number(self, name: str, found: int) -> str | None:
        """Return what is wrong with a call by ``name`` with so many arguments, or None."""
        least, most = self.least, self.most
        if least <= found and (most is None or found <= most):
            return None
        wanted = f"at least {least}" if most is None else str(least) if least == most else f"{least} to {most}"
        return f"{name} takes {wanted} argument{'' if wanted == '1' else 's'}, found {found}"

    def __str__(self) -> str:
        """The call as the reference writes it: ``round(x[, digits])``."""
        text = ""
        for place, parameter in enumerate(self.parameters):
            name = (", " if place else "") + parameter.name + (", …" if parameter.repeated else "")
            text += f"[{name}]" if parameter.optional else name
        return f"{self.name}({text})"


def parameters(text: str) -> tuple[Parameter, ...]:
    """Read parameters: ``"text: string, length: integer?"``; ``?`` marks optional ones, ``...`` a repeated one."""
    found = []
    for part in filter(None, text.split(", ")):
        name, _, kind = part.partition(": ")
        bare = kind.rstrip("?.")
        found.append(Parameter(name, bare, kind.endswith("?"), kind.endswith("...")))  # type: ignore[arg-type]
    return tuple(found)

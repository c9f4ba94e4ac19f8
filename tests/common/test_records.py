"""Records do what Python's own dataclasses do: the same classes, defined by both decorators, are compared."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, ClassVar  # noqa: F401  which is looked for in a class's module

import pytest

from graphdb.common.classes import records

CLASSES = '''
from dataclasses import field
from typing import ClassVar

@dataclass({options})
class Plain:
    """Documented."""

    a: int
    b: list[int] = field(default_factory=list)
    c: str = field(default="c", compare=False)
    d: float = field(default=2.5, repr=False)
    shared: ClassVar[int] = 7

@dataclass({options})
class Derived(Plain):
    e: int = 4
    d: float = 1.5

@dataclass({options})
class Empty: ...

@dataclass({options})
class Single:
    a: int

@dataclass({options})
class Later:
    a: int
    b: int = field(init=False)
    c: int = field(default=3, init=False)
    d: dict[str, int] = field(default_factory=dict, init=False)
    e: int = field(kw_only=True)
    f: int = field(default=6, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "b", self.a + 1)

@dataclass({options})
class Own:
    a: int

    def __eq__(self, other: object) -> bool:
        return self.a == getattr(other, "a", None)

    def __repr__(self) -> str:
        return f"own {self.a}"

@dataclass({options})
class Hashed:
    a: int
    b: int = 2

    def __hash__(self) -> int:
        return self.a
'''
CALLS: list[tuple[tuple[object, ...], dict[str, object]]] = [
    ((), {}), ((1,), {}), ((1, [2]), {}), ((1,), {"c": "x"}), ((1, [2], "y", 3.0), {}), ((1, [2], "z", 3.0), {}),
    ((1,), {"e": 4}), ((1,), {"e": 4, "f": 5}), ((2,), {"e": 4}), ((1, 2, 3, 4, 5, 6), {}), ((1,), {"z": 1}),
    ((1,), {"a": 1}), ((1.0,), {}),
]  # fmt: skip
OPTIONS = (
    "", "eq=False", "slots=True", "frozen=True", "frozen=True, slots=True", "frozen=True, slots=True, eq=False",
    "frozen=True, slots=True, weakref_slot=True", "slots=True, match_args=False",
)  # fmt: skip


def attempted(act: Callable[..., object], *given: object, **named: object) -> object:
    """What comes of it: a value, or the kind and words of an error."""
    try:
        return act(*given, **named)
    except Exception as error:
        return type(error), str(error)


def observed(cls: Any) -> list[object]:
    """What a user sees of a class and of what is made of it."""
    parameters = [(p.name, p.kind, p.default is p.empty) for p in inspect.signature(cls).parameters.values()]
    said: list[object] = [parameters, [field.name for field in dataclasses.fields(cls)], cls.__hash__ is None]
    said += [getattr(cls, "__match_args__", None), vars(cls).get("__slots__"), getattr(cls, "shared", None)]
    made = []
    for given, named in CALLS:
        one = attempted(cls, *given, **named)
        if isinstance(one, cls):
            made.append(one)
        else:
            said.append(one)
    for one in made:
        said += [repr(one), dataclasses.asdict(one), [one == other for other in made], [one != other for other in made]]
        said.append(attempted(hash, one) if cls.__hash__ is not object.__hash__ else None)
        said.append(repr(attempted(dataclasses.replace, one, a=5)))
        for name in ("a", "b", "new"):
            again = copy.deepcopy(one)
            said += [type(again) is cls, dataclasses.asdict(again)]
            refused = [attempted(setattr, again, name, 9), attempted(delattr, again, name)]
            # Of what is no field of a class with slots, Python's own says that it is not of the class.
            said += refused if hasattr(one, name) else map(bool, refused)
    return said


@pytest.mark.parametrize("name", ["Plain", "Derived", "Empty", "Single", "Later", "Own", "Hashed"])
@pytest.mark.parametrize("options", OPTIONS)
def test_they_do_what_dataclasses_do(options: str, name: str) -> None:
    found = []
    for module in (records, dataclasses):
        names: dict[str, Any] = {"dataclass": module.dataclass, "__name__": __name__}
        exec("from __future__ import annotations\n" + CLASSES.replace("{options}", options), names)
        found.append(observed(names[name]))
    assert found[0] == found[1]
    assert len(found[0]) > 12

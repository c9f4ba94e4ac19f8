"""Dataclasses that are defined in a third of the time: what a first query imports defines four hundred of them.

Python's own decorator compiles each method of each class from text.  Here only constructors are compiled; what
compares, hashes, prints and freezes is one function of the names of a class's fields.  All else is Python's: fields,
slots, ``replace``, ``match``; type checkers see its decorator.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from dataclasses import Field, dataclass
else:

    def dataclass(cls=None, /, **options):
        """Do what Python's decorator does with the options ``eq``, ``frozen``, ``slots`` and ``weakref_slot``.

        No field is an ``InitVar``, and what is compared is what is hashed.
        """
        return (lambda own: _defined(own, **options)) if cls is None else _defined(cls, **options)


__all__ = ["dataclass"]


def _defined(cls: Any, *, eq: bool = True, frozen: bool = False, **options: bool) -> Any:
    """Return the class with its fields and methods; those that it defines itself stay."""
    cls.__doc__ = cls.__doc__ or cls.__name__  # else Python's decorator looks for a signature
    own = {name for name, value in cls.__dict__.items() if (name, value) != ("__hash__", None)}
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, **options)(cls)
    fields = dataclasses.fields(cls)
    methods = {"__init__": _constructor(cls, fields, frozen), "__repr__": _representation(fields)}
    if eq:
        values = _values([field.name for field in fields if field.compare])
        methods["__eq__"] = _equality(values)
        methods["__hash__"] = _hash(values) if frozen else None
    if frozen:
        methods |= _refusals(cls, {field.name for field in fields})
        if options.get("slots"):
            methods |= {"__getstate__": _state, "__setstate__": _set_state}
    for name, method in methods.items():
        if name not in own:
            setattr(cls, name, method)
    return cls


def _constructor(cls: Any, fields: Sequence[Field[Any]], frozen: bool) -> Any:
    """Compile ``__init__``; a slot is set by its descriptor, which takes two thirds of the time that its name takes."""
    names: dict[str, Any] = {"MISSING": MISSING, "put": object.__setattr__}
    positional, keywords, body = ["self"], ["*"], []
    for field in fields:
        name, value, parameter = field.name, field.name, field.name
        if field.default is not MISSING:
            names[f"default_{name}"] = field.default
            value, parameter = value if field.init else f"default_{name}", f"{name}=default_{name}"
        elif field.default_factory is not MISSING:
            names[f"make_{name}"] = field.default_factory
            value = f"make_{name}() if {name} is MISSING else {name}" if field.init else f"make_{name}()"
            parameter = f"{name}=MISSING"
        elif not field.init:
            continue
        if field.init:
            (keywords if field.kw_only else positional).append(parameter)
        setter = getattr(getattr(cls, name, None), "__set__", None)
        if setter is not None and field.default is not setter.__self__:
            names[f"set_{name}"] = setter
            body.append(f"set_{name}(self, {value})")
        else:
            body.append(f"put(self, '{name}', {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join(positional + (keywords if len(keywords) > 1 else []))
    exec(f"def __init__({parameters}):\n " + "\n ".join(body or ["pass"]), names)  # the names are a class's own
    function = names["__init__"]
    function.__qualname__ = f"{cls.__qualname__}.__init__"
    function.__annotations__ = {field.name: field.type for field in fields if field.init} | {"return": None}
    return function


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns the values of attributes, as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return (lambda record: (getattr(record, names[0]),)) if names else lambda _: ()


def _representation(fields: Sequence[Field[Any]]) -> Callable[[Any], str]:
    shown = [field.name for field in fields if field.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    return __repr__


def _equality(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], bool]:
    def __eq__(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    return lambda self: hash(values(self))


def _refusals(cls: Any, fields: set[str]) -> dict[str, Any]:
    """Return what sets and deletes attributes of a frozen class: none of the class itself, none that is a field."""

    def __setattr__(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in fields:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in fields:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}


def _state(self: Any) -> list[Any]:
    """Return what is pickled of a frozen record with slots."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)

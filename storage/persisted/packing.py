"""A derived structure as a description and arrays, and back: what is not described cannot be made.

Structures are frozen dataclasses of arrays, columns, numbers and texts.  Those that may be persisted are registered by
name (:func:`persistable`); their fields are described as text, and their arrays stand beside it.  Reading calls no code
but their constructors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow.types import DataType, Field

C = TypeVar("C", bound=type)

_CLASSES: dict[str, type] = {"DataType": DataType, "Field": Field}
"""What can be made, by name."""


class NotPackable(TypeError):
    """A structure has a part that is not to be persisted."""


def persistable(cls: C) -> C:
    """Register a dataclass whose instances may be persisted: its fields say all, and none of them is an identity."""
    _CLASSES[cls.__name__] = cls
    return cls


def packed(value: Any) -> tuple[Any, list[NDArray[Any]]]:
    """Return the description of a value, of what JSON has, and the arrays that it numbers.

    Raises
    ------
    NotPackable
        A part of it is of another type.
    """
    arrays: list[NDArray[Any]] = []
    return _described(value, arrays), arrays


def _described(value: Any, arrays: list[NDArray[Any]]) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is np.ndarray and not value.dtype.hasobject:
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if type(value) is tuple:
        return [_described(part, arrays) for part in value]
    if type(value) is arrow.Array:
        parts = (value.type, len(value), value.valid, value.data, value.offsets, value.children)
        return {"column": _described(parts, arrays)}
    name = type(value).__name__
    if _CLASSES.get(name) is type(value) and is_dataclass(value):
        return {"class": name, "fields": {each: _described(getattr(value, each), arrays) for each in _fields(value)}}
    raise NotPackable(name)


def unpacked(description: Any, arrays: Sequence[NDArray[Any]]) -> Any:
    """Return the value of a description.

    Raises
    ------
    KeyError, TypeError, ValueError, IndexError
        It describes nothing that can be made now.
    """
    if isinstance(description, list):
        return tuple(unpacked(part, arrays) for part in description)
    if not isinstance(description, dict):
        return description
    if "array" in description:
        return arrays[description["array"]]
    if "column" in description:
        return arrow.Array(*unpacked(description["column"], arrays))
    cls = _CLASSES[description["class"]]
    if set(description["fields"]) != set(_fields(cls)):
        raise ValueError(f"{description['class']} has other fields by now")
    return cls(**{name: unpacked(part, arrays) for name, part in description["fields"].items()})


def _fields(value: Any) -> list[str]:
    """Return the names of the fields that a value is made with, but for those that cache what follows from them."""
    return [field.name for field in fields(value) if field.init and field.default_factory is MISSING]

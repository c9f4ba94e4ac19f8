"""Arrow's types, as its C interface writes them: a format, and the fields of nested types.

https://arrow.apache.org/docs/format/CDataInterface.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from graphdb.common.lazy import lazy

_NUMPY = {
    "c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8", "e": "f2", "f": "f4",
    "g": "f8", "b": "?", "tdD": "i4", "tdm": "i8", "tts": "i4", "ttm": "i4", "ttu": "i8", "ttn": "i8", "tin": "V16",
    "tiM": "i4", "tiD": "i8",
}  # fmt: skip
_NAMES = {
    "n": "null", "b": "bool", "c": "int8", "C": "uint8", "s": "int16", "S": "uint16", "i": "int32", "I": "uint32",
    "l": "int64", "L": "uint64", "e": "float16", "f": "float32", "g": "float64", "z": "binary", "Z": "large_binary",
    "u": "string", "U": "large_string", "tdD": "date32", "tdm": "date64", "tin": "month_day_nano_interval",
}  # fmt: skip
_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}


class ArrowError(Exception):
    """Columns are not what they should be: their producer says so, or no type fits."""


@dataclass(frozen=True, slots=True)
class DataType:
    """A type.

    Attributes
    ----------
    format
        As the C interface writes it; of a dictionary, the format of its indices.
    fields
        The parts of a nested type.
    values
        The type of a dictionary's values; None for all others.
    extension, metadata
        The name and parameters of an extension type; empty for all others.
    """

    format: str
    fields: tuple[Field, ...] = ()
    values: DataType | None = None
    extension: str = ""
    metadata: str = ""

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """How NumPy sees one of its values, where all of them have the same size."""
        found = _NUMPY.get(self.format)
        if found is None:
            head, _, rest = self.format.partition(":")
            if head == "d":  # digits, scale, and the bits, if they are not 128
                *_, bits = rest.split(",") if rest.count(",") == 2 else ("128",)
                found = f"V{int(bits) // 8}"
            elif head == "w":
                found = f"V{int(rest)}"
            else:  # moments and durations
                found = "i8"
        return np.dtype(found)

    @property
    def is_fixed(self) -> bool:
        """Whether all of its values take the same number of bytes, and have no parts."""
        return self.format[0] not in "nuUzZ+v"

    @property
    def unit(self) -> str:
        """The unit of a moment, a duration or a time of day, as NumPy writes it."""
        return _UNITS[self.format[2]]

    @property
    def tz(self) -> str | None:
        """The time zone of a moment, if it has any."""
        return self.format.partition(":")[2] or None

    @property
    def scale(self) -> int:
        """How many digits of a decimal stand behind the point."""
        return int(self.format[2:].split(",")[1])

    @property
    def value_type(self) -> DataType:
        """The type of a list's items."""
        return self.fields[0].type

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __str__(self) -> str:
        if self.extension:
            return f"extension<{self.extension}>"
        if self.values is not None:
            return f"dictionary<{self.values}>"
        if is_list(self):
            return f"list<{self.value_type}>"
        if self.fields and self.format[1] != "w":
            kind = {"s": "struct", "m": "map", "u": "union"}[self.format[1]]
            return f"{kind}<{', '.join(f'{field.name}: {field.type}' for field in self.fields)}>"
        head, _, rest = self.format.partition(":")
        if head == "d":
            return f"decimal({rest.replace(',', ', ')})"
        if head[:2] == "ts":
            return f"timestamp[{self.unit}{', tz=' + rest if rest else ''}]"
        if head[:2] == "tt":
            return f"time{8 * self.dtype.itemsize}[{self.unit}]"
        if head[:2] == "tD":
            return f"duration[{self.unit}]"
        if head == "w":
            return f"fixed_size_binary[{rest}]"
        if head == "+w":
            return f"fixed_size_list<{self.value_type}>[{rest}]"
        return _NAMES.get(self.format, self.format)


@dataclass(frozen=True, slots=True)
class Field:
    """A named part of a nested type, or a column of a table."""

    name: str
    type: DataType

    def with_name(self, name: str) -> Field:
        """Return it under another name."""
        return replace(self, name=name)


@dataclass(frozen=True)
class Schema:
    """The columns of a table."""

    fields: tuple[Field, ...]

    @lazy
    def places(self) -> dict[str, int]:
        """The numbers of columns by their names, of the first that has one."""
        return {field.name: at for at, field in reversed(list(enumerate(self.fields)))}

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [field.name for field in self.fields]

    @property
    def types(self) -> list[DataType]:
        """The types of the columns."""
        return [field.type for field in self.fields]

    def index(self, at: int | str) -> int:
        """Return the number of a column that is given by its number or name; raises KeyError."""
        return self.places[at] if isinstance(at, str) else at

    def field(self, at: int | str) -> Field:
        """Return a column by its number or name."""
        return self.fields[self.index(at)]

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


NULL = DataType("n")
BOOL = DataType("b")
INT32 = DataType("i")
INT64 = DataType("l")
UINT64 = DataType("L")
FLOAT16 = DataType("e")
FLOAT32 = DataType("f")
FLOAT64 = DataType("g")
STRING = DataType("u")
LARGE_STRING = DataType("U")
BINARY = DataType("z")
DATE = DataType("tdD")
TIMESTAMP = DataType("tsu:")
"""Moments without a zone, in microseconds."""
TIME = DataType("ttu")
"""Times of day in microseconds."""
DURATION = DataType("tDu")
HUGE = DataType("d:38,0")
"""Integers of 38 digits."""

_OF_NUMPY = {np.dtype(value).str: DataType(key) for key, value in _NUMPY.items() if key[0] != "t"}


def of_numpy(dtype: np.dtype[np.generic]) -> DataType:
    """Return the type of an array's values.

    Raises
    ------
    TypeError
        Arrow has none for them.
    """
    found = _OF_NUMPY.get(dtype.newbyteorder("=").str)
    if found is not None:
        return found
    if dtype.kind == "M":
        unit = np.datetime_data(dtype)[0]  # type: ignore[arg-type]
        if unit == "D":
            return DATE
        if unit in ("s", "ms", "us", "ns"):
            return DataType(f"ts{unit[0]}:")
    raise TypeError(f"no column holds values of NumPy's type {dtype}")


def fixed_binary(size: int) -> DataType:
    """Return the type of byte strings of one size."""
    return DataType(f"w:{size}")


def decimal(digits: int, scale: int) -> DataType:
    """Return a type of decimal numbers, at most 38 digits."""
    return DataType(f"d:{digits},{scale}")


def list_of(type: DataType) -> DataType:
    """Return the type of lists."""
    return DataType("+l", (Field("l", type),))


def struct(fields: Mapping[str, DataType] | Iterable[tuple[str, DataType]]) -> DataType:
    """Return the type of structs."""
    pairs = fields.items() if isinstance(fields, Mapping) else fields
    return DataType("+s", tuple(Field(name, type) for name, type in pairs))


def schema(fields: Mapping[str, DataType] | Iterable[tuple[str, DataType]] | Iterable[Field]) -> Schema:
    """Return the schema of a table."""
    pairs = fields.items() if isinstance(fields, Mapping) else fields
    return Schema(tuple(pair if isinstance(pair, Field) else Field(*pair) for pair in pairs))


def dictionary(indices: DataType, values: DataType) -> DataType:
    """Return the type of values that are numbers of a dictionary's."""
    return DataType(indices.format, values=values)


def is_plain(type: DataType) -> bool:
    """Whether it is neither a dictionary nor an extension."""
    return type.values is None and not type.extension


def is_list(type: DataType) -> bool:
    """Whether its values are lists; maps, and lists of one length, are others."""
    return type.format in ("+l", "+L")


def is_struct(type: DataType) -> bool:
    """Whether its values are structs."""
    return type.format == "+s"


def is_union(type: DataType) -> bool:
    """Whether its values are of several types."""
    return type.format.startswith("+u")


def has_unions(fields: Iterable[Field]) -> bool:
    """Whether some of the fields, or something within them, is of several types."""
    return any(is_union(field.type) or has_unions(field.type) for field in fields)


def is_nested(type: DataType) -> bool:
    """Whether its values have parts."""
    return type.format[0] == "+"


def is_integer(type: DataType) -> bool:
    """Whether its values are integers of at most 64 bits."""
    return is_plain(type) and type.format in "cCsSiIlL"


def is_floating(type: DataType) -> bool:
    """Whether its values are floating-point numbers."""
    return is_plain(type) and type.format in "efg"


def is_string(type: DataType) -> bool:
    """Whether its values are texts, with small or large offsets."""
    return is_plain(type) and type.format in "uU"


def is_null(type: DataType) -> bool:
    """Whether it has no values."""
    return type.format == "n"


def is_date(type: DataType) -> bool:
    """Whether its values are dates as days."""
    return type.format == "tdD"


def is_timestamp(type: DataType) -> bool:
    """Whether its values are moments."""
    return type.format.startswith("ts")


def is_decimal(type: DataType) -> bool:
    """Whether its values are decimal numbers."""
    return type.format.startswith("d:")

"""What PEP 249 calls type objects and constructors."""

from __future__ import annotations

from datetime import date, datetime, time


class TypeObject:
    """Equal to the names of the types in a description that are of one kind."""

    def __init__(self, name: str, *types: str) -> None:
        self._name = name
        self._types = frozenset(types)

    def __eq__(self, other: object) -> bool:
        return other in self._types if isinstance(other, str) else other is self

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return self._name


STRING = TypeObject("STRING", "STRING")
BINARY = TypeObject("BINARY", "BYTES")
NUMBER = TypeObject("NUMBER", "INTEGER", "DECIMAL", "FLOAT", "BOOLEAN")
DATETIME = TypeObject("DATETIME", "DATE", "LOCALDATETIME", "DATETIME", "LOCALTIME", "TIME", "DURATION")
ROWID = TypeObject("ROWID", "NODE")
"""A vertex: its IRI is what finds it again."""

Date, Time, Timestamp = date, time, datetime
Binary = bytes


def DateFromTicks(ticks: float) -> date:
    """Return the local date of seconds since 1970."""
    return date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> time:
    """Return the local time of day of seconds since 1970."""
    return datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime:
    """Return the local date and time of seconds since 1970."""
    return datetime.fromtimestamp(ticks)

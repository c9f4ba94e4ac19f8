"""Keys of unions: SQL that is the same for numbers that are equal, whatever their types.

A key is what the numbers that are equal have in common: the float that they are, or (of what no float is exactly) a
decimal.  A decimal is a float if it is the shortest one read as it.  DuckDB hashes and compares a union by each of its
members, and so it does a key: it has columns only for the types that values have.
"""

from __future__ import annotations

from graphdb.common.values.types import MEMBERS, NUMERIC, Base

_EXACT = 1 << 53
"""All integers up to here are floats, and no fractions are from here on."""


def key_of_union(union: str, bases: frozenset[Base] | None = None) -> str:
    """Return SQL of a struct that is one for equal values of a union: the float or the decimal that a number is, and
    what is none.  Of null all its parts are null.
    """
    there = [base for base in MEMBERS if bases is None or base in bases]
    member = {base: f"({union}).{MEMBERS[base][0]}" for base in there}
    parts = {MEMBERS[base][0]: member[base] for base in there if base not in NUMERIC}
    decimal = MEMBERS[Base.DECIMAL][1]
    floats, exact = [], []
    if Base.FLOAT not in there:  # a decimal holds all others
        exact = [f"CAST({member[base]} AS {decimal})" for base in there if base in NUMERIC]
    else:
        floats.append(member[Base.FLOAT])
        if Base.INTEGER in there:
            whole = member[Base.INTEGER]
            floats.append(f"CASE WHEN {_is_float(whole)} THEN CAST({whole} AS DOUBLE) END")
            exact.append(f"CASE WHEN NOT ({_is_float(whole)}) THEN CAST({whole} AS {decimal}) END")
        if Base.DECIMAL in there:
            near = _nearest(member[Base.DECIMAL])
            floats.append(near)
            exact.append(f"CASE WHEN {near} IS NULL THEN {member[Base.DECIMAL]} END")
    parts |= {name: f"coalesce({', '.join(of)})" for name, of in (("f", floats), ("e", exact)) if of}
    packed = ", ".join(f'"{name}" := {sql}' for name, sql in parts.items())
    return f"struct_pack({packed})"  # without a CASE around it, DuckDB computes only once what stands there twice


def key_type(bases: frozenset[Base]) -> str:
    """Return the DuckDB type of the keys of a union that has some members."""
    parts = {MEMBERS[base][0]: MEMBERS[base][1] for base in MEMBERS if base in bases - NUMERIC}
    if Base.FLOAT in bases:
        parts["f"] = MEMBERS[Base.FLOAT][1]
    if bases & NUMERIC - {Base.FLOAT}:
        parts["e"] = MEMBERS[Base.DECIMAL][1]
    fields = ", ".join(f'"{name}" {sql}' for name, sql in parts.items())
    return f"STRUCT({fields})"


def _is_float(whole: str) -> str:
    """Return SQL of whether a float is an integer exactly."""
    return f"{whole} BETWEEN {-_EXACT} AND {_EXACT} OR CAST(CAST({whole} AS DOUBLE) AS HUGEINT) = {whole}"


def _nearest(exact: str) -> str:
    """Return SQL of the float of which a decimal is the shortest text that is read as it; NULL if it is of none."""
    decimal = MEMBERS[Base.DECIMAL][1]
    # Of 15 digits at most it always is, and the quotient of two integers that floats hold is rounded but once.
    millionths = f"round(CAST({exact} AS DOUBLE) * 1e6)"
    is_short = f"TRY_CAST({millionths} AS DECIMAL(15, 0)) * 0.000001 = {exact}"
    near = f"CAST(CAST({exact} AS VARCHAR) AS DOUBLE)"  # of the text: the nearest, however many digits it has
    same = (
        f"CASE WHEN abs({near}) < {_EXACT} THEN TRY_CAST(CAST({near} AS VARCHAR) AS {decimal}) "
        f"ELSE TRY_CAST(CAST({near} AS HUGEINT) AS {decimal}) END = {exact}"
    )
    return f"CASE WHEN {is_short} THEN {millionths} / 1e6 WHEN {same} THEN {near} END"

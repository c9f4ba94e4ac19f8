"""Exact decimals: Python's operations round to the 28 digits of its context, where DuckDB has 38."""

from __future__ import annotations

from decimal import Context, Decimal

DIGITS = 38
"""The digits of a decimal in DuckDB."""

BEFORE, AFTER = 20, 18
"""The digits before and after the point of a decimal that is in the data."""

EXACT = Context(prec=100)
"""What computes sums, products and rests of two decimals without rounding them."""


def shortest(value: Decimal) -> str:
    """Return a decimal's digits without an exponent, and without zeros that say nothing.

    >>> shortest(Decimal("-12.50")), shortest(Decimal("1E+3")), shortest(Decimal("-0.0"))
    ('-12.5', '1000', '0')
    """
    text = f"{value:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text if value else "0"


def shortest_sql(sql: str) -> str:
    """Return SQL for the same of a decimal in DuckDB, which has as many zeros as its type's scale."""
    text = f"CAST({sql} AS VARCHAR)"
    return f"CASE WHEN contains({text}, '.') THEN rtrim(rtrim({text}, '0'), '.') ELSE {text} END"


def fits(value: Decimal, before: int = BEFORE, after: int = AFTER) -> bool:
    """Whether a decimal needs no more than so many digits before and after its point.

    >>> fits(Decimal("123.4500"), 3, 2), fits(Decimal("0.001"), 3, 2), fits(Decimal("NaN"), 3, 2)
    (True, False, False)
    """
    if not value:
        return True
    if not value.is_finite() or not -after <= value.adjusted() < before:
        return False
    return len(shortest(value).partition(".")[2]) <= after


def no_decimal(value: Decimal) -> str:
    """Return what is wrong with a decimal that the data cannot have: read again, it would be a float."""
    return f"{value} does not fit a decimal of {BEFORE} digits before and {AFTER} after the point"

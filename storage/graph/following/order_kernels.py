"""The loop behind :mod:`.partitions`: changes of entries sorted, and of each entry the last one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry, kernel

Ints = NDArray[np.int64]

DIGIT = 11
"""Bits of a digit: the counts of all its values fit the first cache."""
SOURCE, TARGET, CODE = range(3)
"""What the parts of a number are."""


@kernel
def _sort_by_digit(given: Ints, written: Ints, first: int, bits: int, counts: Ints) -> None:
    """Write numbers by the value of one digit, those that have the same one as they are."""
    mask = (1 << bits) - 1
    for value in range(mask + 1):
        counts[value] = 0
    for i in range(len(given)):
        counts[given[i] >> first & mask] += 1
    at = 0
    for value in range(mask + 1):
        at, counts[value] = at + counts[value], at
    for i in range(len(given)):
        value = given[i] >> first & mask
        written[counts[value]] = given[i]
        counts[value] += 1


@entry("i8[:], i8[:], i8[:], i8[:], i8[:], i8[:], i8[:], i8[:], i8[:], i8[:, :] -> i8")
def sort_changes(
    source: Ints,
    target: Ints,
    code: Ints,
    comes: Ints,
    least: Ints,
    widths: Ints,
    numbers: Ints,
    spare: Ints,
    counts: Ints,
    found: Ints,
) -> int:
    """Sort changes by source, target and code, digit by digit (radix sort); of equal ones only the last one stays.

    Parameters
    ----------
    source, target, code, comes
        int64 [rows], in the order in which they happened.
    least, widths
        [3]: the least value of each of the first three, and how many bits their differences from it have; together
        with those of the number of a row at most 63.
    numbers, spare, counts
        [rows], [rows] and [2 ** DIGIT], for use.
    found
        [4, rows]: the same columns, written; returned is how many rows they have.
    """
    rows, own = len(source), 0
    while rows >> own:
        own += 1
    target_at = own + widths[CODE]
    source_at = target_at + widths[TARGET]
    for i in range(rows):
        high = source[i] - least[SOURCE] << source_at | target[i] - least[TARGET] << target_at
        numbers[i] = high | code[i] - least[CODE] << own | i
    first, high, moved = own, source_at + widths[SOURCE], False
    while first < high:
        bits = min(DIGIT, high - first)
        if moved:
            _sort_by_digit(spare, numbers, first, bits, counts)
        else:
            _sort_by_digit(numbers, spare, first, bits, counts)
        moved = not moved
        first += bits
    ordered = spare if moved else numbers
    count = 0
    for i in range(rows):
        number = ordered[i]
        if i + 1 < rows and ordered[i + 1] >> own == number >> own:
            continue
        found[SOURCE, count] = (number >> source_at) + least[SOURCE]
        found[TARGET, count] = (number >> target_at & (1 << widths[TARGET]) - 1) + least[TARGET]
        found[CODE, count] = (number >> own & (1 << widths[CODE]) - 1) + least[CODE]
        found[3, count] = comes[number & (1 << own) - 1]
        count += 1
    return count

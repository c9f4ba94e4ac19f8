"""Values that consist of several as columns: maps, edges and paths, and lists of names by bits."""

from __future__ import annotations

import numpy as np

from graphdb.common import arrow
from graphdb.relational.vectors.numbers import numeric, truth


def field_of(structs: arrow.Array, at: int) -> arrow.Array:
    """Return a field of structs; null where these are."""
    found = structs.field(at).decoded()
    if structs.valid is None:
        return found
    valid = structs.valid if found.valid is None else structs.valid & found.valid
    return arrow.Array(found.type, len(found), valid, found.data, found.offsets, found.children)


def struct_of(operands: list[arrow.Array]) -> arrow.Array:
    """Return maps and lists as structs of their values, without their keys."""
    there, *fields = operands
    some = truth(there)
    fields = [field.decoded() for field in fields]
    return arrow.struct_array(fields, [f"f{i}" for i in range(len(fields))], None if some.all() else some)


def names_of_bits(operands: list[arrow.Array]) -> arrow.Array:
    """Return the lists of the names whose bits are set; null where these are."""
    bits, *names = operands
    there, count = bits.is_valid(), len(bits)
    chosen = (np.where(there, numeric(bits), 0)[:, None] >> np.arange(len(names))) & 1
    rows, which = np.nonzero(chosen)
    items = arrow.concat_arrays(names).take(which * count + rows)
    ends = np.append(0, np.cumsum(chosen.sum(axis=1)))
    return arrow.list_array(ends, items, None if there.all() else there)


def edges(operands: list[arrow.Array]) -> arrow.Array:
    """Return edges of their codes, starts, ends and ordinals."""
    code, start, end, ordinal = map(numeric, operands)
    label = arrow.numbers(code >> 1, provenance=operands[0].provenance)
    return arrow.struct_array([label, *map(arrow.numbers, (start, end, ordinal))], ["label", "start", "end", "ordinal"])


def edges_of_both(operands: list[arrow.Array]) -> arrow.Array:
    """Return edges as above, of which the lowest bit of a code says that it leads from the second end to the first."""
    code, one, other, ordinal = operands
    forward = numeric(code) & 1 == 0
    start, end = (np.where(forward, *map(numeric, ends)) for ends in ((one, other), (other, one)))
    return edges([code, arrow.numbers(start), arrow.numbers(end), ordinal])


def paths(operands: list[arrow.Array]) -> arrow.Array:
    """Return paths of one length, which may be 0, of their vertices and then of the codes of their edges."""
    vertices, rows = len(operands) // 2 + 1, len(operands[0])
    lists = []
    for parts in (operands[:vertices], operands[vertices:]):
        items = np.empty((rows, len(parts)), np.int64)
        for i, part in enumerate(parts):
            items[:, i] = numeric(part)
        lists.append(arrow.list_array(np.arange(rows + 1) * len(parts), arrow.numbers(items.reshape(-1))))
    return arrow.struct_array(lists, ["vertices", "codes"])

"""Columns for whoever reads Arrow's C interface, without a copy, by nanoarrow.

A consumer gives memory back whenever it likes and in any thread: what it calls then is machine code of nanoarrow's,
which holds the arrays of NumPy until then.  Batches are whole before they are handed
over, so that no code of Python's runs while others read.
https://arrow.apache.org/docs/format/CDataInterface.html and …/CDataInterface/PyCapsuleInterface.html
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.arrow.arrays import Array
from graphdb.common.arrow.types import ArrowError, DataType, Schema

if TYPE_CHECKING:
    from nanoarrow._array import CArray
    from nanoarrow._schema import CSchema

_NULLABLE = 2
_SCHEMAS = 256
"""Types whose structures are cached."""


def exported_schema(type: DataType) -> object:
    """Return the capsule of a type; a table's is that of its rows as structs."""
    return _schema(type).__arrow_c_schema__()


def exported_stream(schema: Schema, batches: Sequence[Sequence[Array]]) -> object:
    """Return the capsule of a stream of batches, the columns of each.

    Raises
    ------
    ArrowError
        The columns of a batch have not the same length.
    """
    from nanoarrow._array_stream import CArrayStream

    type = DataType("+s", schema.fields)
    found = []
    for columns in batches:
        cast = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
        length = len(cast[0]) if cast else 0
        if any(len(column) != length for column in cast):
            raise ArrowError("the columns of a batch have not the same length")
        found.append(_array(Array(type, length, children=tuple(cast))))
    stream = CArrayStream.from_c_arrays(found, _schema(type).__deepcopy__(), move=True, validate=False)
    return stream.__arrow_c_stream__()


@lru_cache(_SCHEMAS)
def _schema(type: DataType, name: str = "", entries: bool = False) -> CSchema:
    """Return the structure of a type; of the ``entries`` of a map, which as their keys are never null."""
    from nanoarrow._schema import CSchemaBuilder

    made = CSchemaBuilder.allocate().set_format(type.format).set_name(name).set_flags(0 if entries else _NULLABLE)
    made.allocate_children(len(type.fields))
    for i, field in enumerate(type.fields):
        made.set_child(i, None, _schema(field.type, field.name, type.format == "+m" or (entries and i == 0)))
    if type.values is not None:
        made.set_dictionary(_schema(type.values))
    if type.extension:
        made.append_metadata({"ARROW:extension:name": type.extension, "ARROW:extension:metadata": type.metadata})
    return made.finish()


def _array(array: Array) -> CArray:
    from nanoarrow._array import CArray, CArrayBuilder

    schema = _schema(array.type)
    made = CArray.allocate(schema)
    builder = CArrayBuilder(made).init_from_schema(schema)
    _fill(made, builder, array)
    builder.finish("none")
    return made


def _fill(made: CArray, builder: Any, array: Array) -> None:
    """Fill structures, whose parts are there already, with an array."""
    from nanoarrow._array import CArrayBuilder
    from nanoarrow._buffer import CBuffer

    nulls = array.null_count
    builder.set_length(len(array)).set_null_count(nulls)
    for at, buffer in enumerate(_buffers(array, nulls)):
        if buffer is not None and buffer.nbytes:
            builder.set_buffer(at, CBuffer.from_pybuffer(np.ascontiguousarray(buffer).view(np.uint8)), True)
    if array.type.values is not None:
        _fill(made.dictionary, CArrayBuilder(made.dictionary), array.children[0])
        return
    for i, child in enumerate(array.children):
        part = made.child(i)
        _fill(part, CArrayBuilder(part), child)


def _buffers(array: Array, nulls: int) -> list[NDArray[Any] | None]:
    """Return the buffers that a type has, in their order."""
    format = array.type.format
    found: list[NDArray[Any] | None] = []
    if format != "n" and not format.startswith("+u"):
        found.append(np.packbits(array.valid, bitorder="little") if nulls and array.valid is not None else None)
    if array.offsets is not None:
        found.append(array.offsets)
    if format == "b" and array.data is not None:
        found.append(np.packbits(array.data, bitorder="little"))
    elif array.data is not None:
        found.append(array.data)
    return found

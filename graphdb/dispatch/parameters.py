"""What callers give for the parameters of a text: values by name, or by position."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from graphdb.common.arguments import is_missing
from graphdb.common.errors import ParameterError

Parameters: TypeAlias = Mapping[str, object] | Sequence[object]
"""Values for ``$name``; or, in a list or tuple, for ``$1``, ``$2`` and so on, and for SQL's ``?``."""


def by_name(parameters: Parameters | None, named: Mapping[str, object]) -> Mapping[str, object]:
    """Return the values of parameters by their names, which are numbers for those by position.

    >>> by_name(["a", "b"], {"x": 3})
    {'1': 'a', '2': 'b', 'x': 3}

    Columns of data frames and arrays are lists, data frames lists of maps; what is missing to pandas or NumPy is null.

    Raises
    ------
    ParameterError
        They are neither a mapping of names, nor a list or tuple.
    """
    if parameters is None:
        given = named
    elif isinstance(parameters, Mapping):
        given = {**parameters, **named}
        if not all(isinstance(name, str) for name in given):
            name = next(name for name in given if not isinstance(name, str))
            hint = "values for $1, $2 … are a list: query(text, [value, value])"
            raise ParameterError(f"names of parameters are texts, found {name!r}", hint=hint)
    elif isinstance(parameters, (list, tuple)):
        given = {**{str(i): value for i, value in enumerate(parameters, 1)}, **named}
    else:
        raise _neither(parameters)
    if not given or _PLAIN.issuperset(map(type, given.values())):
        return given
    return {name: _listed(value) for name, value in given.items()}


_PLAIN = frozenset({str, int, float, bool, type(None), list, tuple, dict})


def _listed(value: object) -> object:
    """Return a column or array as a list, a data frame as a list of maps, and what is missing as None."""
    if is_missing(value):
        return None
    dtype: Any = getattr(value, "dtype", None)
    if type(value).__module__ == "numpy" and dtype.kind in ("M", "m") and getattr(value, "ndim", None):
        value = cast(Any, value).astype(f"{dtype.kind}8[us]")  # of nanoseconds it would list integers
    if hasattr(value, "to_dict") and hasattr(value, "to_records"):  # a data frame of pandas
        return _with_nulls(value, cast(Any, value).dtypes).to_dict("records")
    if (
        hasattr(value, "to_frame") and hasattr(value, "isna") and getattr(value, "nlevels", 1) == 1
    ):  # a column of pandas
        return _with_nulls(value, [dtype]).to_list()
    if not hasattr(value, "__len__") or isinstance(value, memoryview):
        return value
    for method in ("to_dicts", "to_pylist", "to_list", "tolist"):  # of Polars, Arrow, pandas, NumPy
        if (found := getattr(value, method, None)) is not None:
            return found()
    return value


def _with_nulls(data: Any, dtypes: Iterable[Any]) -> Any:
    """Return a data frame or column of pandas with None for what is missing; numbers that are NaN stay."""
    floats = [getattr(dtype, "kind", "") == "f" for dtype in dtypes]
    missing = data.isna()
    missing = missing & (np.logical_not(floats) if data.ndim > 1 else not floats[0])
    return data.astype(object).where(~missing, None) if np.asarray(missing).any() else data


def _neither(parameters: object) -> ParameterError:
    return ParameterError(
        f"parameters are a dictionary or a list, found {type(parameters).__name__}", hint="query(text, {'name': value})"
    )

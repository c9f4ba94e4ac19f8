"""The types that columns of texts show: those of all their values, wherever in a table these stand."""

from __future__ import annotations

from itertools import cycle, islice

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from graphdb.storage.loaders.tables import delimited
from graphdb.storage.loaders.tables.headers import Column
from tests.fuzz import scaled

FIRST = {
    "BIGINT": ["0", "-7", "999999999999999999"],
    "HUGEINT": ["1234567890123456789", "-9223372036854775808", "12"],
    "DOUBLE": ["1.5", ".5", "1e3", "-inf", "3"],
    "BOOLEAN": ["true", "FALSE"],
    "DATE": ["2020-01-31"],
    "TIMESTAMP": ["2020-01-31 10:00:00", "2020-01-31T10:00:00.123456", "2020-01-31"],
    "TIMESTAMPTZ": ["2020-01-31T10:00:00Z", "2020-01-31 10:00:00+01:00"],
    "TIME": ["10:00:00", "23:59:59.5"],
    "": [],
}
"""Values by the type that they show together."""

LATER = [
    *(value for values in FIRST.values() for value in values),
    "-0",
    "007",
    "9223372036854775807",
    "1" * 38,
    "1" * 39,
]
LATER += ["9" * 400, "2020-02-30", "25:00:00", "a", "", "NaN", "1.", "١", "1e999", " 1", "true "]


@settings(max_examples=scaled(25), deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(
    st.lists(
        st.tuples(st.sampled_from(list(FIRST)), st.lists(st.sampled_from(LATER), max_size=2)), min_size=1, max_size=70
    )
)
def test_types_of_long_tables(drawn: list[tuple[str, list[str]]]) -> None:
    """What comes behind the rows that are looked at first is asked in another way, and answered alike."""
    columns = {
        f"c{number}": [*islice(cycle(FIRST[type] or [None]), delimited._FIRST), *later, *[None] * (3 - len(later))]
        for number, (type, later) in enumerate(drawn)
    }
    with pytest.MonkeyPatch.context() as patch, duckdb.connect() as connection:
        patch.setattr(delimited, "_LONG", delimited._FIRST)
        chosen = ", ".join(f"unnest(${name}::VARCHAR[]) AS {name}" for name in columns)
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"CREATE TABLE t AS SELECT {chosen}", columns)
        every = delimited._shown(connection, "t", list(columns))
        found = delimited.types(connection, "t", [Column(name, "", name) for name in columns])
        assert found == {name: type for name, type in every.items() if type not in ("", "VARCHAR")}
        for number, (type, later) in enumerate(drawn):
            if not later:
                assert found.get(f"c{number}", "") == type
        for name, type in found.items():
            assert connection.execute(f"SELECT count({delimited.of_sort(name, type)}) FROM t").fetchall()


@pytest.mark.parametrize(("type", "value"), [("BIGINT", "1" * 19), ("DATE", "2020-02-30"), ("DOUBLE", "1e5x")])
def test_a_value_of_another_type_is_an_error(type: str, value: str) -> None:
    with duckdb.connect() as connection, pytest.raises(duckdb.InvalidInputException, match="another type"):
        connection.execute(f"SELECT {delimited.of_sort('$value', type)}", {"value": value}).fetchall()

"""ORDER BY behind a projection that gives names of before to other columns: the new columns are meant."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

import graphdb
from tests.fuzz import scaled
from tests.oracle.routes import in_python

NAMES = ("x", "y", "z")
ROWS = st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=6)
KEYS = st.lists(st.sampled_from(["x", "y", "z", "x + 10 * y", "-z", "y - x"]), max_size=2)


@settings(max_examples=scaled(25), deadline=None)
@given(
    ROWS, st.sampled_from(list(permutations(NAMES))), KEYS, st.sampled_from(["", "DISTINCT ", "count"]), st.booleans()
)
def test_new_names_hide_old_ones(
    rows: list[tuple[int, int, int]], sources: tuple[str, ...], keys: list[str], kind: str, last: bool
) -> None:
    made = [dict(zip(NAMES, row, strict=True)) for row in rows]
    found = [tuple(row[source] for source in sources) for row in made]
    if kind:
        found = list(Counter(found))
    order = [*keys, *NAMES]  # a whole order
    found.sort(key=lambda row: [eval(key, {}, dict(zip(NAMES, row, strict=True))) for key in order])
    counted = ", count(*) AS n" if kind == "count" else ""
    items = ", ".join(f"{source} AS {name}" for source, name in zip(sources, NAMES, strict=True))
    projected = f"{kind.replace('count', '')}{items}{counted} ORDER BY {', '.join(order)}"
    text = "UNWIND $rows AS m WITH m.x AS x, m.y AS y, m.z AS z "
    text += f"RETURN {projected}" if last else f"WITH {projected} RETURN collect([x, y, z]) AS rows"
    with graphdb.connect(threads=1) as db:
        for answer in (db.query(text, rows=made).fetchall(), in_python(db, text, {"rows": made})):
            assert [tuple(row[:3]) for row in (answer if last else answer[0][0])] == found

"""SQL of the durations that texts say, in whole numbers, as most are written.

:func:`graphdb.common.values.temporal_build.parse_duration` reads all there are: with fractions of months, in weeks,
with a sign before the whole.
"""

from __future__ import annotations

from graphdb.common.values.types import DURATION, sql_type

_WHOLE = "(?:(-?[0-9]{{1,9}}){})?"
_DATE, _CLOCK = ("".join(map(_WHOLE.format, units)) for units in ("YMD", "HM"))
_SECONDS = r"(?:(-?)([0-9]{1,9})(?:\.([0-9]{1,9}))?S)?"
_PATTERN = f"P{_DATE}(?:T{_CLOCK}{_SECONDS})?"
_PARTS = ("years", "months", "days", "hours", "minutes", "sign", "seconds", "fraction")


def duration_of(text: str) -> tuple[str, str]:
    """Return SQL of whether a text (SQL) is such a duration, and of the duration that it is then."""
    names = ", ".join(f"'{part}'" for part in _PARTS)
    found = f"regexp_extract({text}, '^{_PATTERN}$', [{names}])"
    years, months, days, hours, minutes, seconds = (
        f"coalesce(TRY_CAST(({found}).{part} AS BIGINT), 0)" for part in _PARTS if part not in ("sign", "fraction")
    )
    below = f"CAST(rpad(({found}).fraction, 9, '0') AS BIGINT)"
    back = f"({found}).sign = '-'"  # of -1.5 seconds: two back, and half a second
    whole = f"CASE WHEN {back} THEN -{seconds} - CASE WHEN {below} > 0 THEN 1 ELSE 0 END ELSE {seconds} END"
    rest = f"CASE WHEN {back} AND {below} > 0 THEN 1000000000 - {below} ELSE {below} END"
    value = (
        f"CAST(struct_pack(months := {years} * 12 + {months}, days := {days}, "
        f"seconds := {hours} * 3600 + {minutes} * 60 + {whole}, nanoseconds := {rest}) AS {sql_type(DURATION)})"
    )
    return f"regexp_full_match({text}, '{_PATTERN}') AND right({text}, 1) NOT IN ('P', 'T')", value

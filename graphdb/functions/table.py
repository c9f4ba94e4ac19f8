"""The table of functions: arity, types, completion and the reference all come from here.

How a function is computed stands elsewhere, by the signature's key: its form in SQL in :mod:`graphdb.sql.functions`,
its form in Python in :mod:`graphdb.evaluate.builtins.scalar`.  Every function has a form in Python; where it has none
in SQL, SQL calls that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from graphdb.common.errors import nearest
from graphdb.functions.signature import Kind, Signature, Volatility, parameters
from graphdb.grammar.spelling import ARITIES, SAME_AS

_CLOCK: Volatility = "stable"


def _rows() -> Iterator[Signature]:
    group = ""

    def row(
        name: str,
        takes: str,
        result: Kind,
        doc: str,
        *aliases: str,
        volatility: Volatility = "immutable",
        strict: bool = True,
        late: bool = False,
        aggregate: bool = False,
    ) -> Signature:
        return Signature(name, parameters(takes), result, group, doc, aliases, volatility, strict, late, aggregate)

    group = "elements"
    yield row("labels", "v: term", "list", "The labels of a vertex, sorted.")
    yield row("type", "e: edge", "string", "The label of an edge, as a name.")
    yield row("predicate", "e: edge", "vertex", "The label of an edge, as a vertex.")
    yield row("properties", "x: propertied", "map", "All properties of a vertex or an edge; a map as it is.")
    yield row("keys", "x: propertied", "list", "The names of the properties, or the keys of a map.")
    yield row("id", "x: element", "integer", "The number of a vertex or an edge in this file.")
    yield row("elementId", "x: element", "string", "The same number as text.")
    yield row("startNode", "e: edge", "vertex", "The vertex that an edge leaves.")
    yield row("endNode", "e: edge", "vertex", "The vertex that an edge enters.")
    group = "RDF"
    yield row(
        "iri", "x: named", "any", "A vertex's IRI, or that of an edge's label; of a text, the vertex with that IRI."
    )
    yield row("graphs", "e: edge", "list", "The IRIs of the named graphs that an edge is in, sorted.")
    yield row("lang", "x: literal", "string", "The language tag of a literal.")
    yield row("datatype", "x: literal", "string", "The IRI of a literal's datatype.")
    yield row("sameTerm", "a: term, b: term", "boolean", "Whether two vertices are one RDF term.")
    group = "paths"
    yield row("nodes", "p: path", "list", "The vertices of a path, in order.")
    yield row("relationships", "p: path", "list", "The edges of a path, in order.", "rels")
    yield row("length", "p: long", "integer", "The number of edges of a path, or of items or characters.")
    group = "lists"
    yield row("size", "x: sized", "integer", "The number of items of a list, or of characters of a text.")
    yield row("head", "list: list", "any", "The first item, or null.")
    yield row("last", "list: list", "any", "The last item, or null.")
    yield row("tail", "list: list", "list", "All items but the first.")
    yield row("reverse", "x: any", "any", "A list or a text from its end to its beginning.")
    yield row(
        "range", "from: integer, to: integer, step: integer?", "list",
        "The integers from one to another, both included.", strict=False, late=True,
    )  # fmt: skip
    yield row("isEmpty", "x: any", "boolean", "Whether a list, a map or a text has nothing in it.")
    group = "texts"
    yield row("toUpper", "text: string", "string", "The text in capital letters.", "upper")
    yield row("toLower", "text: string", "string", "The text in small letters.", "lower")
    yield row("trim", "text: string", "string", "The text without blanks at its ends.")
    yield row(
        "bTrim", "text: string, characters: string?", "string", "Without blanks, or these characters, at its ends."
    )
    yield row("lTrim", "text: string, characters: string?", "string", "The same, at its beginning.")
    yield row("rTrim", "text: string, characters: string?", "string", "The same, at its end.")
    yield row(
        "normalize", "text: string, form: string?", "string", "The text in a normal form of Unicode, by default NFC."
    )
    yield row(
        "replace", "text: string, old: string, new: string", "string", "The text with each `old` replaced by `new`."
    )
    yield row("split", "text: string, by: string", "list", "The parts of a text between the places where `by` stands.")
    yield row(
        "substring",
        "text: string, from: integer, length: integer?",
        "string",
        "Characters from a place on, counted from 0.",
    )
    yield row("left", "text: string, n: integer", "string", "The first characters.")
    yield row("right", "text: string, n: integer", "string", "The last characters.")
    yield row("charLength", "text: string", "integer", "The number of characters.", "char_length", "character_length")
    group = "numbers"
    yield row("abs", "x: number", "number", "The number without its sign.")
    yield row("sign", "x: number", "integer", "-1, 0 or 1.")
    yield row("ceil", "x: number", "float", "The smallest whole number that is not less.", "ceiling")
    yield row("floor", "x: number", "float", "The largest whole number that is not greater.")
    yield row("round", "x: number, digits: integer?", "float", "Rounded to so many decimal places, halves up.")
    yield row("sqrt", "x: number", "float", "The square root.")
    yield row("exp", "x: number", "float", "e to this power.")
    yield row("log", "x: number", "float", "The natural logarithm.", "ln")
    yield row("log10", "x: number", "float", "The logarithm to base 10.")
    for name, doc in {
        "sin": "The sine.", "cos": "The cosine.", "tan": "The tangent.", "cot": "The cotangent.",
        "asin": "The arc sine.", "acos": "The arc cosine.", "atan": "The arc tangent.",
    }.items():  # fmt: skip
        yield row(name, "x: number", "float", doc)
    yield row("atan2", "y: number, x: number", "float", "The angle of the point (x, y), in radians.")
    for name, doc in {
        "sinh": "The hyperbolic sine.", "cosh": "The hyperbolic cosine.", "tanh": "The hyperbolic tangent.",
        "coth": "The hyperbolic cotangent.", "degrees": "Radians as degrees.", "radians": "Degrees as radians.",
        "haversin": "Half of the versed sine.",
    }.items():  # fmt: skip
        yield row(name, "x: number", "float", doc)
    yield row("pi", "", "float", "The circle's number.")
    yield row("e", "", "float", "Euler's number.")
    yield row("rand", "", "float", "A random number from 0 up to 1, another for each row.", volatility="volatile")
    yield row("isNaN", "x: number", "boolean", "Whether this is not a number.")
    group = "conversion"
    for name, result in {"Integer": "integer", "Float": "float", "Boolean": "boolean", "String": "string"}.items():
        yield row(f"to{name}", "x: scalar", result, f"The value as {result}; null where a text says something else.")  # type: ignore[arg-type]
        yield row(f"to{name}OrNull", "x: any", result, "The same, null for what cannot be converted.")  # type: ignore[arg-type]
        yield row(f"to{name}List", "list: list", "list", "Each item converted, null where it cannot be.")
    group = "choice"
    yield row("coalesce", "a: any...", "any", "The first value that is not null.", strict=False)
    yield row("exists", "x: any", "boolean", "Whether this is not null.", strict=False)
    group = "identity"
    yield row("randomUUID", "", "string", "A random identifier, another for each row.", volatility="volatile")
    group = "dates and times"
    for name in ("date", "localtime", "time", "localdatetime", "datetime"):
        yield row(
            name, "x: any?", "temporal", "Made of a text, a map or another value; without any, now.", volatility=_CLOCK
        )
        yield row(
            f"{name}.truncate",
            "unit: string, x: temporal, parts: map?",
            "temporal",
            "Cut down to a unit.",
            strict=False,
        )
        for clock in ("transaction", "statement", "realtime"):
            yield row(f"{name}.{clock}", "zone: any?", "temporal", "When the statement began.", volatility=_CLOCK)
    yield row(
        "datetime.fromEpoch", "seconds: integer, nanoseconds: integer?", "temporal", "The moment so long after 1970."
    )
    yield row("datetime.fromEpochMillis", "milliseconds: integer", "temporal", "The moment so long after 1970.")
    yield row("duration", "x: any", "temporal", "Made of a text or a map.")
    yield row("duration.between", "from: temporal, to: temporal", "temporal", "In months, days and seconds.", late=True)
    yield row("duration.inMonths", "from: temporal, to: temporal", "temporal", "In whole months.", late=True)
    yield row("duration.inDays", "from: temporal, to: temporal", "temporal", "In whole days.", late=True)
    yield row("duration.inSeconds", "from: temporal, to: temporal", "temporal", "In seconds.", late=True)
    yield row("timestamp", "", "integer", "Milliseconds since 1970 when the statement began.", volatility=_CLOCK)
    group = "aggregates"
    for name, takes, result, doc in (
        ("count", "x: any", "integer", "How many values are not null; `count(*)` counts rows."),
        ("sum", "x: any", "any", "The sum of numbers or durations."),
        ("avg", "x: any", "any", "The mean of numbers or durations."),
        ("min", "x: any", "any", "The first value in the order of all values."),
        ("max", "x: any", "any", "The last value in the order of all values."),
        ("collect", "x: any", "list", "A list of the values."),
        ("stDev", "x: any", "float", "The standard deviation of a sample."),
        ("stDevP", "x: any", "float", "The standard deviation of a population."),
        ("percentileCont", "x: any, p: any", "float", "The percentile, interpolated."),
        ("percentileDisc", "x: any, p: any", "number", "The nearest value to the percentile."),
    ):
        yield row(name, takes, result, doc, strict=False, aggregate=True)  # type: ignore[arg-type]


SIGNATURES: tuple[Signature, ...] = tuple(_rows())
"""All functions, in the order of the reference."""

SIGNATURE_OF: Mapping[str, Signature] = {
    name: signature for signature in SIGNATURES for name in (signature.key, *signature.aliases)
}
"""Functions by all their names in lower case."""

VOLATILE: frozenset[str] = frozenset(s.key for s in SIGNATURES if s.volatility == "volatile")
"""Functions, in lower case, that yield another value each time."""

NAMES: tuple[str, ...] = tuple(sorted({*(s.name for s in SIGNATURES), *SAME_AS, *ARITIES}, key=str.lower))
"""Every name that a call may have, as the reference writes it: what the shell completes."""


def scalar(name: str) -> Signature | None:
    """Return the function of a name in lower case that is no aggregate."""
    found = SIGNATURE_OF.get(name)
    return None if found is None or found.aggregate else found


_ELSEWHERE: Mapping[str, str] = {
    name: hint
    for names, hint in (
        ("concat string_concat", "texts are joined by ||"),
        ("if iif decode", "write CASE WHEN … THEN … ELSE … END"),
        ("ifnull nvl", "did you mean coalesce()?"),
        ("isnull", "write a.x IS NULL, or coalesce(a.x, 0) for another value"),
        ("has hasproperty isnotnull", "write a.x IS NOT NULL"),
        ("any all none single", "whether a condition holds of items: any(x IN list WHERE x > 1)"),
        ("filter extract", "a list of what is left, and made, of another one: [x IN list WHERE x > 1 | x * 2]"),
        ("label", "labels(a) are those of a vertex, type(e) is that of an edge"),
        ("cast convert", "toInteger(…), toFloat(…), toBoolean(…), toString(…) and date(…) convert values"),
        ("point distance", "there are no points: properties that are numbers say where something is"),
        ("len array_length list_length strlen", "did you mean size()?"),
        ("now current_timestamp getdate sysdate", "did you mean datetime()?"),
        ("today current_date curdate", "did you mean date()?"),
        ("array_agg group_concat string_agg", "did you mean collect()?"),
        ("str string", "did you mean toString()?"),
        ("int integer", "did you mean toInteger()?"),
    )
    for name in names.split()
}
"""Functions of SQL and Python, and what is theirs here."""


_METHODS = {"startswith": "a.x STARTS WITH 'A'", "endswith": "a.x ENDS WITH 'A'", "contains": "a.x CONTAINS 'A'"}
"""Methods and functions of other languages that are operators here."""


def did_you_mean(name: str) -> str | None:
    """Return the hint for a name that no function has."""
    if name.lower() in _ELSEWHERE:
        return _ELSEWHERE[name.lower()]
    space, _, last = name.lower().rpartition(".")
    if space.split(".")[0] in ("apoc", "gds", "algo"):
        return "functions of plugins are not here; docs/language/functions.md has those that are"
    if last in _METHODS:
        return f"write {_METHODS[last]}"
    if space and last in SIGNATURE_OF:
        return f"a function stands before its value: {SIGNATURE_OF[last].name}({name[: len(space)]})"
    near = nearest(name.lower(), [*SIGNATURE_OF])
    return f"did you mean {SIGNATURE_OF[near[0]].name}()?" if near else None

"""Roles and types of a table's columns: headers in the convention of property-graph imports, and names as IRIs.

::

    :ID  :ID(Person)  name:ID        the vertex of the row; in brackets the group of its identifiers
    :LABEL                           its labels, separated by ';' (or a list)
    :START_ID  :END_ID               the ends of the row's edge, which may name a group too
    :TYPE                            its edge label
    :REIFIER                         the resource that the edge is called by, if it has one
    :REIFIER_GRAPH                   the named graph in which that resource stands for the edge
    :ASSERTED                        false where the edge is only spoken of (reified), and not in the graph
    :GRAPH                           the named graph that the row's triples are in; the default graph where it is empty
    :VALUE  :DATATYPE  :LANGUAGE     instead of an :END_ID: a literal, which is a property of :START_ID
    :IGNORE                          nothing
    age:int  since                   a property, with or without its type
    names:string[]                   several values of a property, separated by ';' (or a list)
    names:list<string>               one value: the list of these, in their order
    id:ID(Person){long}              ids that are integers, also as a property; as {id-type: long}
    :ID(Person){label:Person}        ids as Neo4j's incremental imports have them; it says nothing here
    born:datetime{epoch_ms}          a date or time as a number since 1970: epoch_s, epoch_ms, epoch_us
    foaf:name:string                 one whose name has a colon: with its type (an IRI such as http://x/name needs none)

Columns that are named otherwise are described by a :class:`Mapping`, by name or by position.  A name without namespace
lives in the database's own, and so do identifiers that are no IRIs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field, replace
from typing import NoReturn, TypeAlias

from graphdb.common.errors import LoadError, nearest
from graphdb.common.values.terms import DEFAULT_NAMESPACE, default_iri, default_name

MOST_COLUMNS = 10_000
"""Columns of a table, at most: DuckDB binds them in a time that grows by their square, and does not stop meanwhile."""

IRI = r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*"
BLANK = r"_:[^\x00-\x20<>\"{}|^`\\]+"
TERM = r"<<\( (<[^<>]*>|_:\S+) <[^<>]*> .+ \)>>"
RDF_TEXT = f"{BLANK}|{TERM}"
"""What stands for a vertex as it does in RDF: blank nodes and triple terms."""

_UNWRITABLE = r"[\x00-\x1F\x7F\uFFFE\uFFFF]"
"""What a name in a header or an attribute cannot have: C cuts it at the first of them, XML has no word for others."""

_TYPES = {"int": "BIGINT", "long": "BIGINT", "integer": "BIGINT", "short": "BIGINT", "byte": "BIGINT",
          "float": "DOUBLE", "double": "DOUBLE", "boolean": "BOOLEAN", "bool": "BOOLEAN", "string": "VARCHAR",
          "char": "VARCHAR", "date": "DATE", "datetime": "TIMESTAMPTZ", "localdatetime": "TIMESTAMP", "time": "TIME",
          "localtime": "TIME", "duration": "INTERVAL", "point": "VARCHAR"}  # fmt: skip
_CALLED = {
    **dict.fromkeys(("text", "str", "varchar", "uuid", "json", "object", "category"), "string"),
    **dict.fromkeys(("number", "numeric", "decimal", "real", "float32", "float64"), "float"),
    **dict.fromkeys(("bigint", "int8", "int16", "int32", "int64", "uint64"), "long"),
    **dict.fromkeys(("timestamp", "datetime64"), "localdatetime"),
    "timestamptz": "datetime",
    "interval": "duration",
}
"""What types are called elsewhere."""
_ROLES = {"ID", "LABEL", "START_ID", "END_ID", "TYPE", "IGNORE", "REIFIER", "REIFIER_GRAPH", "ASSERTED", "GRAPH",
          "VALUE", "DATATYPE", "LANGUAGE"}  # fmt: skip
IDENTIFIERS = {"ID", "START_ID", "END_ID"}
"""The roles of columns that name vertices."""

_EPOCHS = {"epoch_s": 1_000_000, "epoch_ms": 1_000, "epoch_us": 1}
"""Units of numbers that are times since 1970, in microseconds."""

_HEADER = re.compile(
    r"(?P<name>.*?):(?P<word>\w+)(?:<(?P<item>\w+)>)?(?P<list>\[\])?(?:\((?P<group>[^()]*)\))?"
    r"(?:\{\s*(?:id-type\s*:\s*)?(?P<option>[^{}]*?)\s*\})?",
    re.DOTALL,
)
_LABELLED = re.compile(r"label\s*:[^,]*[^,\s](?:\s*,\s*id-type\s*:\s*)?|\s*,\s*label\s*:[^,]*[^,\s]")
"""What Neo4j calls the label whose vertices an id is a key of: they get labels as all others do."""

_LABEL = re.compile(r"(?!urn:)[^\W\d][\w .-]*(?::[^\W\d][\w .-]*)+")
"""Several labels as patterns have them, ``Post:Message``: no IRI."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a delimited text is written.

    Parameters
    ----------
    delimiter
        What separates columns; by default the most frequent of ``,`` ``;`` ``|`` and tabs in the header.
    quote
        What texts may be in, doubled where it is part of one; ``""`` for none.
    null
        The text of a missing value.
    header
        Whether the first row has the names of the columns.
    list_delimiter
        What separates the values of a list, and labels.
    """

    delimiter: str | None = None
    quote: str = '"'
    null: str = ""
    header: bool = True
    list_delimiter: str = ";"

    def __post_init__(self) -> None:
        """Refuse what DuckDB does not read: a `LoadError`."""
        if self.delimiter == r"\t":  # as statements of SQL, and shells, have a tab
            object.__setattr__(self, "delimiter", "\t")
        texts = {name: getattr(self, name) for name in ("delimiter", "quote", "null", "list_delimiter")}
        for name, text in texts.items():
            if not (isinstance(text, str) or (text is None and name == "delimiter")):
                raise LoadError(f"{name} is {text!r}", hint="it is a text")
        if not isinstance(self.header, bool):
            raise LoadError(f"header is {self.header!r}", hint="it is true or false")
        for name in ("delimiter", "quote"):
            text = texts[name]
            if text is not None and (len(text) > 1 or text in ("\n", "\r", "\0") or (not text and name == "delimiter")):
                raise LoadError(f"{name} is {text!r}", hint="it is one character, and no end of a line")
        if not self.list_delimiter:
            raise LoadError("list_delimiter is ''", hint="it is a text of one character or more")


@dataclass(frozen=True, slots=True)
class Mapping:
    """What the columns of a table are, where their headers do not say it.

    ``columns`` gives columns other headers: a mapping by name, or one header for each column, by position (None leaves
    a column its own).  ``label`` is a label of every vertex, or several (``"Post:Message"``, or a list), beside those
    that a column gives; ``type`` the label of every edge, where no column gives it.
    """

    columns: MappingABC[str, str] | Sequence[str | None] = field(default_factory=dict)
    label: str | Sequence[str] | None = None
    type: str | None = None
    known: set[str] = field(default_factory=set, compare=False)
    """The names of the columns that were read so far: one mapping may be for several tables."""
    dialect: Dialect = field(default_factory=Dialect)
    roles: set[str] = field(default_factory=set, compare=False)
    """The roles of the columns that were read so far."""

    def __post_init__(self) -> None:
        """Refuse what is no mapping: a `LoadError`."""
        several = isinstance(self.label, Sequence) and not isinstance(self.label, str)
        names = list(self.label or ()) if several else [] if self.label is None else [self.label]
        for what, name in (*(("label", name) for name in names), ("type", self.type)):
            if not (isinstance(name, str) and name) and not (what == "type" and name is None):
                raise LoadError(f"{what} is {name!r}", hint=f"it is a name: {what}='Person'")
        if isinstance(self.columns, MappingABC):
            texts = all(isinstance(text, str) for pair in self.columns.items() for text in pair)
        else:
            texts = isinstance(self.columns, list | tuple) and all(
                text is None or isinstance(text, str) for text in self.columns
            )
        if not texts:
            raise LoadError(
                f"columns is {self.columns!r}",
                hint="it gives headers by name, columns={'person': ':ID'}, or by position, columns=[':ID', 'name']",
            )

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of every vertex.

        >>> Mapping(label="Post:Message").labels, Mapping(label="http://x/Post").labels
        (('Post', 'Message'), ('http://x/Post',))
        """
        if self.label is None:
            return ()
        if not isinstance(self.label, str):
            return tuple(dict.fromkeys(self.label))
        several = _LABEL.fullmatch(self.label)
        return tuple(dict.fromkeys(self.label.split(":"))) if several else (self.label,)

    def header(self, name: str) -> str | None:
        """Return the header that a column of this name gets, if it is given one by name."""
        return self.columns.get(name) if isinstance(self.columns, MappingABC) else None

    def read(self, names: Sequence[str]) -> list[Column]:
        """Return what the columns of these names are.

        Names that come again, in whatever case, get a number: DuckDB would not tell them apart.

        Raises
        ------
        LoadError
            They are more than :data:`MOST_COLUMNS`, or others than the mapping describes.
        """
        if len(names) > MOST_COLUMNS:
            raise LoadError(
                f"the table has {len(names):,} columns, and may have {MOST_COLUMNS:,}",
                hint="load edges, or a table of (vertex, property, value), instead of a matrix",
            )
        self.known.update(names)
        headers = self._by_position(names) if not isinstance(self.columns, MappingABC) else self.columns
        seen = Counter(name.lower() for name in names)
        unique = [name if seen[name.lower()] == 1 else f"{name} ({number})" for number, name in enumerate(names, 1)]
        if isinstance(headers, MappingABC):
            headers = [headers.get(name, name) for name in names]
        found = [Column.read(column, header) for column, header in zip(unique, headers, strict=True)]
        self.roles.update(column.role for column in found)
        return found

    def _by_position(self, names: Sequence[str]) -> list[str]:
        """The headers of columns of these names, where one is given for each."""
        given = list(self.columns)
        if len(given) != len(names):
            raise LoadError(
                f"columns gives {len(given)} header{'s' if len(given) != 1 else ''}, but the table has"
                f" {len(names)} column{'s' if len(names) != 1 else ''}: {', '.join(names)}",
                hint="one header for each column, in their order; ':IGNORE' leaves one out",
            )
        return [name if header is None else header for header, name in zip(given, names, strict=True)]

    def beside(self, others: Sequence[Mapping]) -> Mapping:
        """Return it as one of several: a column need be in one of the tables whose mappings name the same columns."""
        known = next((other.known for other in others if other.columns == self.columns), self.known)
        return replace(self, known=known)

    def check(self) -> None:
        """Refuse columns, and labels of vertices or of edges, that none of the tables had: a `LoadError`."""
        edges = "START_ID" in self.roles
        if self.type is not None and "ID" in self.roles and not edges:
            self._refuse_label("type", "label", "edges", "vertices", self.type)
        if self.label is not None and edges and "ID" not in self.roles:
            self._refuse_label("label", "type", "vertices", "edges", ":".join(self.labels))
        for name in self.columns if isinstance(self.columns, MappingABC) else ():
            if self.known and name not in self.known:
                found = ", ".join(sorted(self.known))
                close = nearest(name, self.known)
                hint = f"did you mean '{close[0]}'?" if close else f"the columns are {found}"
                raise LoadError(f"there is no column '{name}'", hint=hint)

    def without_roles(self, columns: Sequence[str], source: str | None) -> LoadError:
        """Return the error that no columns, of these names, say what a row is, with what the names suggest."""
        shown = ", ".join(columns[:_NAMED])
        shown += f" and {len(columns) - _NAMED:,} more" if len(columns) > _NAMED else ""
        lone = sorted(self.roles & {"START_ID", "END_ID"})
        if len(lone) == 1:
            other = "END_ID" if lone == ["START_ID"] else "START_ID"
            return LoadError(f"a column is :{lone[0]}, and none is :{other}: {shown}", source=source)
        headers = _likely(columns)
        stated = f"state columns={headers!r}"
        if headers and all(re.fullmatch(r"[^\W\d]\w*", name) for name in headers):
            pairs = ", ".join(f"{name}: '{header}'" for name, header in headers.items())
            stated += f"; LOAD '…' COLUMNS {{{pairs}}}"
        hint = f"name columns :ID, or :START_ID and :END_ID, or {stated}" if headers else None
        return LoadError(f"no column says which vertex or edge a row is: {shown}", source=source, hint=hint)

    @staticmethod
    def _refuse_label(given: str, meant: str, of: str, there: str, name: str) -> NoReturn:
        """Refuse a label of what no table has."""
        raise LoadError(
            f"{given}='{name}' labels {of}, and the tables have {there} only",
            hint=f"{there} are labelled by {meant}='{name}'; LOAD '…' AS {meant.upper()} {name}",
        )


_NAMED = 20
"""Columns that an error names, at most."""

_ENDS = (
    *(("from", "to"), ("source", "target"), ("source", "destination"), ("src", "dst"), ("src", "dest")),
    *(("start", "end"), ("head", "tail"), ("subject", "object")),
)
"""What columns are called whose values are the ends of an edge."""


def _likely(columns: Sequence[str]) -> dict[str, str]:
    """Return the headers that columns without any may be meant to have, by their names.

    >>> _likely(["from", "to", "w"]), _likely(["SourceId", "target_id"])
    ({'from': ':START_ID', 'to': ':END_ID'}, {'SourceId': ':START_ID', 'target_id': ':END_ID'})
    >>> _likely(["name", "id"]), _likely(["name"]), _likely([])
    ({'id': ':ID'}, {'name': ':ID'}, {})
    """
    ends = {re.sub(r"[\W_]?(id|node)$", "", name.lower()): name for name in reversed(columns)}
    for start, end in _ENDS:
        if start in ends and end in ends:
            return {ends[start]: ":START_ID", ends[end]: ":END_ID"}
    called = [name for name in columns if name.lower() == "id"] or list(columns)
    return {called[0]: ":ID"} if called else {}


_Names: TypeAlias = list[str]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its name there, what it is (a role or ``""`` for a property), property, group, type.

    ``list`` says that it has several values, ``ordered`` that these are one list; ``epoch`` is the number of
    microseconds in the unit of a number that is a time since 1970, if it is one.
    """

    column: str
    role: str
    name: str = ""
    group: str = ""
    type: str | None = None
    list: bool = False
    ordered: bool = False
    epoch: int | None = None

    @property
    def stated(self) -> str | None:
        """The type that is stated, with the unit of one that is counted since 1970: see :mod:`.values`."""
        return f"{self.type}@{self.epoch}" if self.epoch else self.type

    @classmethod
    def read(cls, column: str, header: str) -> Column:
        """Read a header.

        >>> Column.read("x", "age:int").name, Column.read("x", ":END_ID(Person)").group
        ('age', 'Person')
        >>> Column.read("x", "id:ID{label:Person, id-type: long}") == Column.read("x", "id:ID{long}")
        True
        >>> Column.read("x", "at:date{epoch_ms}").stated, Column.read("x", "id:ID(Person){long}").type
        ('DATE@1000', 'BIGINT')
        """
        found = _HEADER.fullmatch(header)
        word, name, option = (found["word"], found["name"], found["option"]) if found else ("", "", None)
        if found and not found["item"] and (word in _ROLES or (not name and word.upper() in _ROLES)):
            role = word.upper()
            of_ids = role in IDENTIFIERS
            option = _LABELLED.sub("", option) if option and of_ids else option
            type = cls._id_type(header, found, option) if option and of_ids else None
            if option and not type:
                cls._refuse_option(header, found, "ids have types", ["long"] if of_ids else [])
            return cls(column, role, name, found["group"] or "", type)
        if found and word.lower() == "list" and found["item"] and name:
            item = _TYPES.get(found["item"].lower())
            if item is None:
                cls._refuse(header, found, "item")
            epoch = cls._epoch(header, found, item)
            return cls(column, "", name, type=item, list=True, ordered=True, epoch=epoch)
        if found and word.lower() in _TYPES and name and not found["item"]:
            type = _TYPES[word.lower()]
            return cls(column, "", name, type=type, list=bool(found["list"]), epoch=cls._epoch(header, found, type))
        if found and ":" not in name:
            cls._refuse(header, found)
        return cls(column, "", header)

    @classmethod
    def _id_type(cls, header: str, found: re.Match[str], option: str) -> str:
        """The type of ids that a header states."""
        type = _TYPES.get(option.lower())
        if type not in ("BIGINT", "VARCHAR"):
            cls._refuse_option(header, found, "ids are", ["long", "string"])
        return type

    @classmethod
    def _epoch(cls, header: str, found: re.Match[str], type: str) -> int | None:
        """The unit that a header states."""
        if not found["option"]:
            return None
        unit = _EPOCHS.get(found["option"].lower())
        if type not in ("TIMESTAMPTZ", "TIMESTAMP", "DATE"):
            cls._refuse_option(header, found, "", [])
        if unit is None:
            cls._refuse_option(header, found, "datetime, localdatetime and date can be", list(_EPOCHS))
        return unit

    @staticmethod
    def _refuse_option(header: str, found: re.Match[str], what: str, options: _Names) -> NoReturn:
        """Refuse what a header has in braces: a `LoadError`."""
        near = nearest(found["option"], options)
        hint = f"did you mean {{{near[0]}}}?" if near else f"{what} {', '.join(f'{{{each}}}' for each in options)}"
        raise LoadError(
            f"unknown option '{found['option']}' of a column", text=header, position=found.start("option"),
            hint=hint if options else f":{found['word']} has none",
        )  # fmt: skip

    @staticmethod
    def _refuse(header: str, found: re.Match[str], part: str = "word") -> NoReturn:
        """Refuse a header with something behind its colon that is neither a role nor a type: a `LoadError`."""
        name, word = found["name"], found[part]
        known: Collection[str] = _TYPES if name else _ROLES
        kind = "type" if name else "role"
        meant = _CALLED.get(word.lower()) if name else None
        near = [meant] if meant else [word.upper()] if word.upper() in _ROLES else nearest(word, known)
        hint = f"did you mean {name}:{near[0]}?" if near else f"the {kind}s are {', '.join(sorted(known))}"
        if name:
            hint += f"; a property that is called '{header}' is written with its type: {header}:string"
        raise LoadError(f"unknown {kind} '{word}' of a column", text=header, position=found.start(part), hint=hint)


def name_iri(name: str) -> str:
    """Return the IRI of a label or key: itself, or the name in the database's own namespace."""
    if re.fullmatch(IRI, name):
        return name
    return default_iri(name)


def bare_name(iri: str) -> str:
    """Return what :func:`name_iri` makes this IRI of: without our own namespace, where that is no other term.

    A name that files cannot have (nothing, or with control characters) keeps its namespace, and with it its escapes.

    >>> [bare_name(iri) for iri in ("urn:graphdb:name", "urn:graphdb:x:y", "http://x/y", "urn:graphdb:%00")]
    ['name', 'urn:graphdb:x:y', 'http://x/y', 'urn:graphdb:%00']
    """
    name = default_name(iri) if iri.startswith(DEFAULT_NAMESPACE) else iri
    writable = name and not re.search(_UNWRITABLE, name) and not re.fullmatch(RDF_TEXT, name)
    return name if writable and name_iri(name) == iri else iri

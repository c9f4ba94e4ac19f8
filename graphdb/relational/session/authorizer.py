"""What SQL of a user's may do: everything that DuckDB lets it, but write to our tables, or put something in our place.

A statement is read as DuckDB's own tokenizer reads it.  One that can write may name the schema of our tables only where
it reads, after FROM, JOIN or USING; what else it could mean there is not asked, so nothing new in DuckDB's grammar gets
past.  The search path, which expressions can set, is looked at after it was set.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graphdb.common.duckdb.errors import database_name
from graphdb.common.duckdb.open_files import any_has_other_names, refuse_other_name
from graphdb.common.errors import AccessError, ParameterError
from graphdb.storage.file.verify import SCHEMA, is_called

_READS = frozenset(("FROM", "JOIN", "USING"))
"""What stands before a table that is read."""

_QUERIES = frozenset(
    "ANALYZE DESC DESCRIBE EXPORT FROM PIVOT SELECT SHOW SUMMARIZE TABLE UNPIVOT VACUUM VALUES WITH (".split()
)
"""What statements begin with that write nothing, unless they have a part that does."""

_WRITES = frozenset(("DELETE", "INSERT", "MERGE", "TRUNCATE", "UPDATE"))
"""What such a part begins with: ``WITH x AS (DELETE …) SELECT …``."""

_ADVERBS = frozenset("OR REPLACE TEMP TEMPORARY LOCAL GLOBAL PERSISTENT UNIQUE IF NOT EXISTS".split())
"""What may stand around the kind of what is created."""

_AROUND_VIEW = _ADVERBS | {"VIEW", "TABLE", "RECURSIVE"}
"""What may stand between what is done to a view and its name."""

_CHANGES_VIEW = re.compile(r"\b(?:VIEW|ALTER)\b", re.IGNORECASE)
"""What stands in a statement that changes a view."""

_BEFORE_NAMES = frozenset("SCHEMA EXISTS USE .".split())
"""After what a text is taken for a name: ``DROP SCHEMA 'x'``."""

_OPAQUE = "json_execute_serialized_sql"
"""The function that runs statements nobody can read."""

_SCHEME = re.compile(r"duckdb:|file:(?://)?", re.IGNORECASE)
"""What may stand before the path of a file."""

_BEFORE_PATH = frozenset("DATABASE OR REPLACE IF NOT EXISTS".split())
"""What may stand between ATTACH and the path."""

_PARAMETERS = frozenset("$?")

_READ_DATABASE = "read_duckdb"
"""The function that reads tables of other files."""

_SUFFIXES = (".duckdb", ".ddb", ".db")
"""What the names of databases end in that may stand for a table."""

_TABLES = "the tables of graphdb are closed to SQL that writes"
_TEMPORARY = f"temporary tables and views whose names begin with '{SCHEMA}' are graphdb's own"
_HINT = (
    "patterns with CREATE, SET and DELETE, LOAD and PREFIX change the graph; to read these tables in SQL that writes, "
    "name them after FROM or JOIN"
)


@dataclass(frozen=True, slots=True)
class _Token:
    """A keyword (``word`` in capitals), a name or text (without its quotes), or a sign."""

    word: str
    kind: str
    position: int

    def names(self, name: str) -> bool:
        """Whether it is this name, as DuckDB compares them."""
        return self.kind == "identifier" and self.word.lower() == name.lower()

    def is_one_of(self, words: frozenset[str]) -> bool:
        """Whether it is one of some keywords, or signs."""
        return self.kind in ("keyword", "operator") and self.word in words


def authorize(sql: str, home: str) -> None:
    """Check that a statement writes neither to our tables nor in their place.

    Parameters
    ----------
    home
        What DuckDB calls the database.

    Raises
    ------
    AccessError
        It would.
    """
    tokens = _tokens(sql)
    if not tokens:
        return
    for at, token in enumerate(tokens):
        if _OPAQUE in token.word.lower():
            raise AccessError(f"{_OPAQUE} runs what cannot be read", text=sql, position=token.position)
        if token.kind == "keyword" and token.word == "CREATE":
            _refuse_shadows(sql, tokens[at + 1 :])
    _refuse_databases(sql, tokens, home)
    if tokens[0].is_one_of(_QUERIES) and not any(token.is_one_of(_WRITES) for token in tokens):
        return
    if tokens[0].word == "COPY" and _copies_out(tokens):
        return
    for at, token in enumerate(tokens):
        text = at > 0 and token.word.lower() == SCHEMA and tokens[at - 1].is_one_of(_BEFORE_NAMES)
        if (token.names(SCHEMA) or text) and not _is_read(tokens, at):
            raise AccessError(_TABLES, text=sql, position=token.position, hint=_HINT)


def authorize_files(sql: str, values: Iterable[object]) -> None:
    """Check that a statement, and the ``values`` of its parameters, name no open database by another hard link.

    DuckDB knows files by their names: it would read and write the file as a second database, and give up the lock on it
    when it closes that.

    Raises
    ------
    StorageError
        They do.
    AccessError
        A path is computed, or a pattern, so that nobody can say which file it is, while an open database has another
        hard link.
    """
    if not any_has_other_names():
        return
    tokens = _tokens(sql)
    given = [part for value in values for part in (value if isinstance(value, list) else (value,))]
    texts = [token.word for token in tokens if token.kind in ("string_const", "identifier")]
    texts += [value for value in given if isinstance(value, str)]
    for text in texts:
        refuse_other_name(_SCHEME.sub("", text))
    patterns = any(glob.has_magic(text) and text.lower().endswith(_SUFFIXES) for text in texts)
    hidden = tokens[0] if tokens and patterns else None
    if tokens and tokens[0].word == "ATTACH":
        path = next((token for token in tokens[1:] if token.word.upper() not in _BEFORE_PATH), tokens[0])
        if path.kind != "string_const" and not path.is_one_of(_PARAMETERS):
            hidden = path
    for at, token in enumerate(tokens):
        if token.names(_READ_DATABASE):
            written = _are_written(tokens[at + 1 :]) and tokens[0].word != "PREPARE"
            hidden = hidden if written and not any(map(glob.has_magic, texts)) else token
    if hidden is not None:
        raise AccessError(
            "the path is computed, or a pattern, and a database that is open here has another hard link",
            text=sql,
            position=hidden.position,
            hint="write the path as a text, or give it as a parameter",
        )


def _are_written(tokens: list[_Token]) -> bool:
    """Whether the first of some arguments is a text, a list of texts, or a parameter: nothing computes it."""
    words = "".join("'" if token.kind == "string_const" else token.word for token in tokens)
    return re.match(r"\(('|\['(,')*\]|\$\w+|\?)[,)]", words) is not None


def authorize_name(parts: Sequence[str], temporary: bool = False) -> None:
    """Check the name of a table that is made, part by part.

    Raises
    ------
    AccessError
        It is among our tables.
    ParameterError
        It has a NUL character: DuckDB would end it there.
    """
    if any("\0" in part for part in parts):
        raise ParameterError("the name of the table has a NUL character", hint="leave the character out of it")
    if any(part.lower() == SCHEMA for part in parts[:-1]):
        raise AccessError(_TABLES, hint="give it a name of its own")
    if (temporary or parts[0].lower() == "temp") and parts[-1].lower().startswith(SCHEMA):
        raise AccessError(_TEMPORARY, hint="give it another name")


@dataclass(frozen=True, slots=True)
class ViewChange:
    """That a statement drops, renames or replaces a view, whose name begins at ``position``."""

    verb: str
    parts: tuple[str, ...]
    position: int


def view_change(sql: str) -> ViewChange | None:
    """Return which view a statement drops, renames or replaces, EXPLAIN ANALYZE of it, which runs it, included."""
    if _CHANGES_VIEW.search(sql) is None:
        return None
    tokens = _tokens(sql)
    words = [token.word.upper() for token in tokens]
    at = next((i for i, word in enumerate(words) if word in ("ALTER", "CREATE", "DROP")), None)
    if at is None or (at > 0 and words[0] != "EXPLAIN"):
        return None
    named = at + 1
    while named < len(tokens) and words[named] in _AROUND_VIEW:
        named += 1
    said = set(words[at + 1 : named])
    replaces = words[at] != "CREATE" or ("REPLACE" in said and not said & {"TEMP", "TEMPORARY"})
    kind = "VIEW" in said or (words[at] == "ALTER" and "TABLE" in said)  # which renames views, too
    if not (kind and replaces) or named == len(tokens):
        return None
    parts = tokens[named : named + 1]
    while named + 2 < len(tokens) and tokens[named + 1].word == ".":
        named += 2
        parts.append(tokens[named])
    return ViewChange(words[at], tuple(part.word for part in parts), parts[0].position)


def authorize_path(schemas: Sequence[str]) -> None:
    """Check the schemas that SQL is in.

    Raises
    ------
    AccessError
        Ours is among them.
    """
    if any(schema.lower() == SCHEMA for schema in schemas):
        raise AccessError(
            f"SQL cannot be in the schema '{SCHEMA}', whose tables are closed to SQL that writes",
            hint=f"SELECT … FROM {SCHEMA}.triple reads them",
        )


def _refuse_shadows(sql: str, tokens: list[_Token]) -> None:
    """Refuse a macro by the name of a function that our SQL calls, and temporary things by names like ours."""
    adverbs = set()
    kind, at = "", 0
    while at < len(tokens) and (tokens[at].word.upper() in _ADVERBS or not kind):
        if tokens[at].word.upper() in _ADVERBS:
            adverbs.add(tokens[at].word.upper())
        else:
            kind = tokens[at].word.upper()
        at += 1
    parts = tokens[at : at + 1]
    while at + 2 < len(tokens) and tokens[at + 1].word == ".":
        at += 2
        parts.append(tokens[at])
    if not parts:
        return
    name = parts[-1]
    if kind in ("MACRO", "FUNCTION") and is_called(name.word):
        raise AccessError(
            f"'{name.word}' is a function that graphdb calls, and a macro of this name would stand in for it",
            text=sql,
            position=name.position,
            hint="give it another name",
        )
    temporary = adverbs & {"TEMP", "TEMPORARY"} or (len(parts) > 1 and parts[0].word.lower() == "temp")
    if temporary and name.word.lower().startswith(SCHEMA):
        raise AccessError(_TEMPORARY, text=sql, position=name.position, hint="give it another name")


def _refuse_databases(sql: str, tokens: list[_Token], home: str) -> None:
    """Refuse to take the database away, and to run in it what makes another: that has tables of ours, too."""
    words = [token.word.upper() for token in tokens]
    if words[0] == "DETACH" and any(word == home.upper() for word in words):
        raise AccessError(f"'{home}' is the database itself", text=sql, position=0, hint="close() closes it")
    if words[0] == "ATTACH" and "AS" not in words:
        for token in tokens[1:]:
            if database_name(token.word.rpartition(":")[2]).lower() == SCHEMA:
                raise AccessError(
                    f"a database that is called '{SCHEMA}' would be taken for the schema of graphdb's tables",
                    text=sql,
                    position=token.position,
                    hint="give it another name: ATTACH … AS other",
                )
    into = words[words.index("TO") + 1 :][:1] if "TO" in words else []
    if words[:3] == ["COPY", "FROM", "DATABASE"] and into == [home.upper()]:
        raise AccessError(
            "another database cannot be copied into this one, which has a graph of its own",
            text=sql,
            position=0,
            hint="connect to the other one, or load what export() writes of it",
        )
    if words[0] == "IMPORT" or (words[0] in ("PRAGMA", "CALL") and {"IMPORT_DATABASE", "COPY_DATABASE"} & set(words)):
        raise AccessError(
            "a script that makes a database cannot be run in this one, which has a graph of its own",
            text=sql,
            position=0,
            hint="DuckDB itself can run it, on a new file",
        )


def _copies_out(tokens: list[_Token]) -> bool:
    """Whether a COPY writes a file: what is copied, a query in parentheses or a table, stands before TO."""
    depth = 0
    for token in tokens:
        depth += (token.word == "(") - (token.word == ")")
        if depth == 0 and token.is_one_of(frozenset(("TO", "FROM"))):
            return token.word == "TO" and not any(token.is_one_of(_WRITES) for token in tokens)
    return False


def _is_read(tokens: list[_Token], at: int) -> bool:
    """Whether the name that has this part stands where a table is read."""
    while at >= 2 and tokens[at - 1].word == ".":
        at -= 2
    if not at or not tokens[at - 1].is_one_of(_READS):
        return False
    return not (at > 1 and tokens[at - 1].word == "FROM" and tokens[at - 2].is_one_of(_WRITES))


def _tokens(sql: str) -> list[_Token]:
    """Return the tokens of a statement, comments left out."""
    import duckdb

    data = sql.encode()
    found = duckdb.tokenize(sql)
    ends = [start for start, _ in found[1:]] + [len(data)]
    made = []
    for (start, kind), end in zip(found, ends, strict=True):
        if kind == duckdb.token_type.comment:
            continue
        text = data[start:end].decode(errors="replace").strip()
        position = start if sql.isascii() else len(data[:start].decode(errors="replace"))
        made.append(_token(text, kind.name, position))
    return made


_QUOTED = re.compile(r"""(?:[eE]?'(.*)'|"(.*)"|`(.*)`|(\$\w*\$)(.*)\4)""", re.DOTALL)


def _token(text: str, kind: str, position: int) -> _Token:
    if kind == "keyword":
        return _Token(text.upper(), kind, position)
    quoted = _QUOTED.fullmatch(text)
    if quoted is None:
        sign = text in (".", ",", "(", ")")  # of which the tokenizer takes some for numbers
        return _Token(text, "operator" if sign else kind, position)
    if quoted[4] is not None:
        return _Token(quoted[5], kind, position)
    mark = text.strip("eE")[0]
    return _Token(next(part for part in quoted.groups() if part is not None).replace(mark * 2, mark), kind, position)

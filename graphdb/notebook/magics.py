"""The magics of IPython: a line or a cell is a statement, and its result what the cell shows.

``%cypher [options] MATCH …`` and ``%%cypher [options]`` over lines of statements.  Options:

``-d NAME``
    The variable with the database; by default ``db``, or the only database among the variables; where there is none,
    one in memory is opened as ``db``.
``-o NAME``
    A variable that the result is assigned to.
``-g``
    Show the vertices, edges and paths of the result as a picture.

A parameter ``$name`` has the value of the variable ``name``; SQL finds results and data frames by their names.
"""

from __future__ import annotations

import re
from typing import Any

from IPython.core.magic import Magics, line_cell_magic, magics_class

from graphdb.common.errors import ParameterError
from graphdb.database import Database
from graphdb.grammar.parser import split
from graphdb.opening import connect
from graphdb.pictures.picture import Picture
from graphdb.relational.session.embedded import variables_of_caller
from graphdb.results.result import Result

_OPTION = re.compile(r"\s*-(?:(?P<picture>g)|(?P<name>[do])\s+(?P<value>[^\W\d]\w*))(?=\s|$)")

_USAGE = "%cypher [-d DATABASE] [-o NAME] [-g] MATCH … RETURN …"


@magics_class
class CypherMagics(Magics):
    """``%cypher`` and ``%%cypher``."""

    @line_cell_magic
    def cypher(self, line: str, cell: str | None = None) -> Result | Picture | None:
        """Run a statement: ``%cypher [-d DATABASE] [-o NAME] [-g] MATCH … RETURN …``, or a cell below ``%%cypher``.

        ``-d NAME``: the variable with the database, by default ``db`` or the only one.  ``-o NAME``: assign the result
        to this variable.  ``-g``: show the result as a picture.  ``$name`` in the statement has the value of the
        variable ``name``, and SQL finds results and data frames by their names.
        """
        options: dict[str, str] = {}
        at = 0
        while (found := _OPTION.match(line, at)) is not None:
            options["picture" if found["picture"] else found["name"]] = found["value"] or ""
            at = found.end()
        text = line[at:] if cell is None else f"{line[at:]}\n{cell}"
        if (unknown := re.match(r"\s*-[a-z]\b[^\n]*", text)) is not None and unknown[0].strip() != "-h":
            raise ParameterError(f"the option {unknown[0].strip()} cannot be read", hint=_USAGE)
        if not split(text) or text.strip() == "-h":  # --help is a comment
            raise ParameterError("there is no statement", hint=_USAGE)
        assert self.shell is not None
        variables: dict[str, Any] = self.shell.user_ns
        database = self._database(variables, options.get("d"))
        named = database.prepare(text).parameters
        missing = [name for name in named if name not in variables]
        if missing:
            raise ParameterError(f"no variable has the value of ${missing[0]}", hint=f"{missing[0]} = …")
        with variables_of_caller(variables):
            result = database.query(text, {name: variables[name] for name in named})
        if "o" in options:
            variables[options["o"]] = result
        if "picture" in options:
            return result.graph()
        return result if "o" not in options else None

    def _database(self, variables: dict[str, Any], name: str | None) -> Database:
        if name is not None:
            if not isinstance(variables.get(name), Database):
                raise ParameterError(f"the variable {name} is no database", hint=f"{name} = graphdb.connect()")
            found: Database = variables[name]
            return found
        own = {key: value for key, value in variables.items() if isinstance(value, Database) and key[0] != "_"}
        if "db" in own:
            return own["db"]
        databases = list({id(value): value for value in own.values()}.values())
        if len(databases) > 1:
            raise ParameterError(
                f"several variables are databases: {', '.join(sorted(own))}", hint=f"%cypher -d {min(own)} MATCH …"
            )
        if databases:
            return databases[0]
        if "db" in variables:
            raise ParameterError("no variable is a database", hint="graph = graphdb.connect()")
        variables["db"] = opened = connect()
        print("db = graphdb.connect()  # in memory")  # noqa: T201
        return opened

"""The procedures of a database, what a statement's calls mean, and the calls themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from graphdb.common.errors import BindError, ExecutionError, GraphDBError, ParseError, TypeMismatchError, nearest
from graphdb.common.values.elements import Node, Path, Relationship
from graphdb.procedures.answers import Answer, Unfit, answer_of
from graphdb.procedures.signature import Field, Signature
from graphdb.procedures.types import NotOfType

if TYPE_CHECKING:
    from graphdb.common.duckdb.connection import Connection
    from graphdb.grammar import syntax as ast
    from graphdb.pattern.names import Names
    from graphdb.snapshot.edges import Edges
    from graphdb.storage.triples import TripleStore


class Seen(Protocol):
    """What a procedure of ours sees of the database."""

    @property
    def connection(self) -> Connection:
        """The connection to DuckDB."""

    @property
    def names(self) -> Names:
        """The names of the database."""

    @property
    def edges(self) -> Edges:
        """The edges that have properties."""

    @property
    def store(self) -> TripleStore:
        """The triples."""


@dataclass(frozen=True, slots=True)
class Procedure:
    """A function that statements can call.

    It takes the arguments by their places; one of ours, which ``sees`` the database, that before them.
    """

    signature: Signature
    function: Callable[..., object]
    description: str = ""
    sees: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call in a statement, whose names mean something."""

    procedure: Procedure
    clause: ast.ProcedureClause
    text: str
    yields: tuple[tuple[int, Field], ...]
    """For each item of YIELD, which of the procedure's columns it is."""

    @property
    def arguments(self) -> tuple[ast.Expression, ...]:
        """The expressions of its arguments."""
        return self.clause.arguments or ()

    def fitted(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the values of arguments as the signature has them.

        Raises
        ------
        TypeMismatchError
            One is of another type.
        """
        found: list[Any] = []
        for field, value, node in zip(self.procedure.signature.parameters, arguments, self.arguments, strict=False):
            try:
                found += field.type.fitted([value])
            except NotOfType:
                shown = "null" if value is None else repr(value)
                raise self.unlike(field, shown, node) from None
        return found

    def unlike(self, field: Field, found: str, node: ast.Expression) -> TypeMismatchError:
        """Return the error for an argument that is of another type."""
        message = f"'{field.name}' of {self.procedure.signature.name} is {field.type}, found {found}"
        return TypeMismatchError(message, text=self.text, position=node.span.start)


class Procedures:
    """The procedures of a database, by their names."""

    def __init__(self) -> None:
        self._named: dict[str, Procedure] = {}
        self._answers: dict[tuple[object, ...], Answer] = {}
        """Those of the statement under way: the same call is not made twice."""
        self.caller: int | None = None
        """The thread that is in a procedure's function."""

    def __iter__(self) -> Iterator[Procedure]:
        """Yield all of them in the order of their names."""
        return iter([self._named[name] for name in sorted(self._named)])

    def add(self, procedure: Procedure, replace: bool = False) -> None:
        """Make a procedure known.

        Raises
        ------
        GraphDBError
            Another one has its name.
        """
        name = procedure.signature.name
        former = self._named.get(name)
        if former is not None and (not replace or former.sees):
            hint = None if former.sees else "replace it: replace=True"
            raise GraphDBError(f"there is a procedure '{name}' already", hint=hint)
        self._named[name] = procedure

    def remove(self, name: str) -> None:
        """Forget a procedure.

        Raises
        ------
        GraphDBError
            There is none of that name, or it is one that every database has.
        """
        if name not in self._named or self._named[name].sees:
            near = nearest(name, [each.signature.name for each in self if not each.sees])
            raise GraphDBError(
                f"no procedure '{name}' was registered", hint=f"did you mean '{near[0]}'?" if near else None
            )
        del self._named[name]

    def knows(self, name: str) -> bool:
        """Whether there is a procedure of that name."""
        return name in self._named

    def find(self, clause: ast.ProcedureClause, text: str) -> Procedure:
        """Return the procedure that is called.

        Raises
        ------
        BindError
            There is none of that name.
        """
        found = self._named.get(clause.name)
        if found is None:
            near = nearest(clause.name, self._named)
            hint = f"did you mean {' or '.join(repr(name) for name in near)}?" if near else None
            if clause.name.partition(".")[0].lower() in ("apoc", "gds", "algo"):
                hint = "procedures of plugins are not here; CALL dbms.procedures() lists those that are"
            hint = hint or "CALL dbms.procedures() lists them"
            position = clause.named.start
            raise BindError(f"unknown procedure '{clause.name}'", text=text, position=position, hint=hint)
        return found

    def bound(self, clause: ast.ProcedureClause, text: str) -> Call:
        """Return what a call means.

        Raises
        ------
        BindError, ParseError
            There is no such procedure, it takes other arguments, or it does not yield what is asked for.
        """
        procedure = self.find(clause, text)
        signature = procedure.signature
        count, most = len(clause.arguments or ()), len(signature.parameters)
        if not signature.required <= count <= most:
            wanted = str(most) if signature.required == most else f"{signature.required} to {most}"
            message = f"{signature.name} takes {wanted} argument{'' if wanted == '1' else 's'}, found {count}"
            raise BindError(message, text=text, position=clause.named.start, hint=f"it is {signature}")
        places = {field.name: (number, field) for number, field in enumerate(signature.columns)}
        if places and clause.yields is None:
            hint = f"write YIELD {', '.join(places)}"
            position = clause.span.end
            raise ParseError("a call among other clauses names what it yields", text=text, position=position, hint=hint)
        for item in clause.yields or ():
            if item.column not in places:
                near = nearest(item.column, places) or list(places)[:1]
                hint = f"did you mean '{near[0]}'?" if near else "it yields nothing"
                message = f"{signature.name} does not yield '{item.column}'"
                raise BindError(message, text=text, position=item.span.start, hint=hint)
        return Call(procedure, clause, text, tuple(places[item.column] for item in clause.yields or ()))

    # --- calling

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Remember the answers of the calls of one statement, whichever way it runs in the end."""
        try:
            yield
        finally:
            self._answers.clear()

    def answer(self, call: Call, arguments: Sequence[Any], seen: Seen, check: Callable[[], None]) -> Answer:
        """Return what a call yields for some arguments, of which the function is asked once in a statement.

        Raises
        ------
        TypeMismatchError
            An argument is not of its type.
        ExecutionError
            The function failed, or returned what it does not yield.
        """
        procedure, clause = call.procedure, call.clause
        given = call.fitted(arguments)
        key = (clause.span.start, *map(_key, given))
        found = self._answers.get(key)
        if found is not None:
            return found

        def asked() -> None:
            try:
                check()
            except GraphDBError as error:
                raise _Stopped(error) from None

        check()
        name, place = procedure.signature.name, {"text": call.text, "position": clause.named.start}
        try:
            if procedure.sees:  # one of ours, whose errors are the statement's
                try:
                    returned = procedure.function(seen, *given)
                except GraphDBError as error:
                    raise _Stopped(error) from None
            else:
                with self._calling():
                    returned = procedure.function(*given)
                    if isinstance(returned, Iterator):  # its function runs while it is read
                        found = answer_of(returned, procedure.signature.columns, asked)
            found = found or answer_of(returned, procedure.signature.columns, asked)
        except Unfit as error:
            raise ExecutionError(f"procedure {name} {error}", **place) from None  # type: ignore[arg-type]
        except _Stopped as stop:
            raise stop.error from None
        except Exception as error:
            what = error.message if isinstance(error, GraphDBError) else f"{type(error).__name__}: {error}"
            raise ExecutionError(f"procedure {name} failed: {what}", **place) from error  # type: ignore[arg-type]
        self._answers[key] = found
        return found

    @contextmanager
    def _calling(self) -> Iterator[None]:
        self.caller = threading.get_ident()
        try:
            yield
        finally:
            self.caller = None


class _Stopped(Exception):
    """The statement must stop, which is no failure of the function."""

    def __init__(self, error: GraphDBError) -> None:
        self.error = error


def _key(value: Any) -> object:
    """Return what two equal arguments have in common, and no others: 1 is neither 1.0 nor true."""
    match value:
        case list() | tuple():
            return (list, *map(_key, value))
        case dict():
            return (dict, *((name, _key(value[name])) for name in sorted(value)))
        case Node():
            return Node, value.iri
        case Relationship():
            return Relationship, value.type, value.start, str(value.end), _key(dict(value.properties))
        case Path():
            return Path, *map(_key, value.nodes), *map(_key, value.relationships)
    return type(value), repr(value)

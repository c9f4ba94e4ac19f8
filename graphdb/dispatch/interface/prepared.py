"""Prepared statements: a text that is parsed and checked once, and run with parameters of its own each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphdb.dispatch.parameters import Parameters
    from graphdb.results.result import Result


class PreparedStatement:
    """A statement, or several, of one text: see :meth:`graphdb.database.Database.prepare`.

    Attributes
    ----------
    text
        What was prepared.
    parameters
        The names of the parameters that the text has, in their order.
    """

    __slots__ = ("_query", "parameters", "text")

    def __init__(self, query: Callable[..., Result], text: str, parameters: tuple[str, ...]) -> None:
        self._query = query
        self.text = text
        self.parameters = parameters

    def __repr__(self) -> str:
        return f"PreparedStatement({self.text!r})"

    def run(self, parameters: Parameters | None = None, timeout: float | None = None, **named: object) -> Result:
        """Run it with these values for its parameters; as :meth:`graphdb.database.Database.query` does.

        What was planned for other values serves for these where their types are the same.

        Raises
        ------
        GraphDBError
            With the place in the text, and what would be right.
        """
        return self._query(self.text, parameters, timeout, **named)

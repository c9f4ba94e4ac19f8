"""The server of the page: on this machine alone, for whoever has the token.

Everything but the page itself needs the token, in a header that no other site can send; requests for another host than
this one are refused, so that no name that is made to point here reaches it.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
import tempfile
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, urlsplit

from graphdb.common.errors import ExecutionError
from graphdb.workbench.session import Session

if TYPE_CHECKING:
    from graphdb.database import Database

PORT = 7575
"""The port that is taken where it is free, so that the page keeps its address."""

_MOST = 16 << 20
"""Bytes of a request that is no file."""

_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)

_ASSETS = {
    "/": ("graphdb.workbench", "index.html"),
    **{f"/{name}": ("graphdb.workbench", name) for name in ("workbench.js", "workbench.css")},
    **{
        f"/codemirror/{name}": ("graphdb.workbench", f"codemirror/{name}")
        for name in (
            "codemirror.js", "codemirror.css", "show-hint.js", "show-hint.css", "lint.js", "lint.css", "cypher.js",
            "matchbrackets.js", "closebrackets.js",
        )
    },
    **{f"/{name}": ("graphdb.pictures", name) for name in ("force-graph.min.js", "picture.js", "picture.css")},
}  # fmt: skip
"""What is served without the token: the page, in which nothing of the database is."""


class Workbench:
    """A server for one database, which stays its owner's; a context manager.

    Parameters
    ----------
    port
        Where it listens, on the loopback interface; 0 for any, None for :data:`PORT` or, where that is taken, any.
    history
        The file of earlier statements; None for none.

    Raises
    ------
    ExecutionError
        The port is taken, or not for this user.
    """

    def __init__(self, database: Database, port: int | None = None, history: Path | None = None) -> None:
        self.token = secrets.token_urlsafe(24)
        self._folder = tempfile.TemporaryDirectory(prefix="graphdb-")
        self._session = Session(database, Path(self._folder.name), history)
        workbench = self

        class Handler(_Handler):
            session, token = workbench._session, workbench.token

        try:
            self._server = _Server(("127.0.0.1", PORT if port is None else port), Handler)
        except OSError as error:
            if port is not None:
                self._folder.cleanup()
                hint = "choose another port, or none: then it is one that is free"
                raise ExecutionError(f"cannot listen on port {port}: {error.strerror}", hint=hint) from error
            self._server = _Server(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        """The address of the page, with the token; browsers send what is behind ``#`` to nobody."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/#{self.token}"

    def serve(self) -> None:
        """Answer requests until :meth:`close`, or Ctrl-C."""
        self._server.serve_forever(poll_interval=0.2)

    def start(self) -> None:
        """Answer requests in a thread of its own."""
        threading.Thread(target=self.serve, daemon=True).start()

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    session: Session
    token: str
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        """Send a part of the page."""
        if not self._is_for_us():
            return
        found = _ASSETS.get(urlsplit(self.path).path)
        if found is None:
            self._send(HTTPStatus.NOT_FOUND, b"", "text/plain")
            return
        package, name = found
        body = (files(package) / "assets" / name).read_bytes()
        self._send(HTTPStatus.OK, body, f"{_TYPES[name.rpartition('.')[2]]}; charset=utf-8")

    def do_POST(self) -> None:
        """Answer a question of the page."""
        if not self._is_for_us():
            return
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
            self._refuse(
                HTTPStatus.FORBIDDEN, "the token is missing or wrong: open the address that graphdb ui printed"
            )
            return
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,18}", length):
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "the request does not say its length")
            return
        size = int(length)
        parts = urlsplit(self.path)
        if parts.path == "/api/load":
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            name, label, type = query.get("name", ""), query.get("label"), query.get("type")
            answer = self.session.load(name, self.rfile, size, label, type)
            self.close_connection |= "error" in answer  # what is left of the file is not read
            self._reply(answer)
            return
        if size > _MOST:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too large")
            return
        try:
            asked = json.loads(self.rfile.read(size) or b"{}")
            if not isinstance(asked, dict):
                raise ValueError
        except (ValueError, RecursionError):
            self._refuse(HTTPStatus.BAD_REQUEST, "the request is no JSON")
            return
        try:
            answer = self.session.answer(parts.path.removeprefix("/api/"), asked)
        except KeyError:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such action")
            return
        self._reply(answer)

    def _is_for_us(self) -> bool:
        host = self.headers.get("Host", "").rpartition(":")[0]
        if host in ("127.0.0.1", "localhost"):
            return True
        self._refuse(HTTPStatus.FORBIDDEN, "the request is for another host")
        return False

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self.close_connection = True  # what is left of the request is not read
        self._send(status, json.dumps({"error": {"message": message}}).encode(), "application/json")

    def _reply(self, answer: dict[str, Any]) -> None:
        body = json.dumps(answer, ensure_ascii=False).encode(errors="backslashreplace")  # as JSON has lone surrogates
        self._send(HTTPStatus.OK, body, "application/json")

    def _send(self, status: HTTPStatus, body: bytes, type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing: requests are no news."""

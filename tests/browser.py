"""Headless Chromium, driven by its own protocol: pages as their users see them.

It is used where it is installed (Debian's package is ``chromium``); the websocket is Tornado's, which Jupyter needs.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar
from urllib.request import urlopen

T = TypeVar("T")

CHROMIUM = os.environ.get("GRAPHDB_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


class Browser:
    """One page; what it asked for over a network is in ``requests``, what it wrote to its console in ``messages``."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"]
        arguments += ["--remote-debugging-port=0", f"--user-data-dir={folder}", "--window-size=1100,700"]
        arguments += ["--disable-features=IsolateSandboxedIframes"]  # this one protocol reaches frames, too
        arguments += ["--disable-background-networking", "--disable-component-update", "--disable-sync", "about:blank"]
        self.process = subprocess.Popen([CHROMIUM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port = self._waited(lambda: (folder / "DevToolsActivePort").read_text().split()[0])
        pages = self._waited(
            lambda: [p for p in json.load(urlopen(f"http://127.0.0.1:{port}/json")) if p["type"] == "page"]
        )
        self._loop = asyncio.new_event_loop()
        from tornado.websocket import websocket_connect

        async def connect() -> Any:
            return await websocket_connect(pages[0]["webSocketDebuggerUrl"], max_message_size=1 << 28)

        self._socket = self._run(connect())
        self._number = 0
        self.requests: list[str] = []
        self.messages: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.command(f"{domain}.enable")

    @staticmethod
    def _waited(read: Any, seconds: float = 60) -> Any:
        end = time.monotonic() + seconds
        while True:
            try:
                return read()
            except Exception:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(asyncio.wait_for(work, 90))

    def command(self, method: str, **parameters: Any) -> Any:
        """Send a command, and return its result."""
        return self._run(self._command(method, parameters))

    async def _command(self, method: str, parameters: dict[str, Any]) -> Any:
        self._number += 1
        number = self._number
        await self._socket.write_message(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(await self._socket.read_message())
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        found = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(found["request"]["url"])
            case "Runtime.exceptionThrown":
                self.messages.append(json.dumps(found["exceptionDetails"])[:2000])
            case "Runtime.consoleAPICalled":
                self.messages.append(str([each.get("value") for each in found["args"]]))
            case "Log.entryAdded":
                self.messages.append(found["entry"]["text"])

    def open(self, url: str) -> None:
        """Go to a page."""
        self.command("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def do(self, script: str) -> Any:
        """Run a script, wait for what it promises, and return its value."""
        found = self.command("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, script: str, seconds: float = 30) -> Any:
        """Wait until a script's value is true, and return it."""
        end = time.monotonic() + seconds
        while not (found := self.do(script)):
            assert time.monotonic() < end, (script, self.messages)
            time.sleep(0.1)
        return found

    def type(self, text: str) -> None:
        """Type text where the cursor is, key by key."""
        for character in text:
            self.command("Input.dispatchKeyEvent", type="keyDown", text=character, key=character)
            self.command("Input.dispatchKeyEvent", type="keyUp", key=character)

    def press(self, key: str, modifiers: int = 0) -> None:
        """Press a key; ``modifiers``: 1 for Alt, 2 for Ctrl, 8 for Shift."""
        codes = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38}
        about = {"key": key, "code": key, "windowsVirtualKeyCode": codes.get(key, 0), "modifiers": modifiers}
        if key == "Enter" and not modifiers:
            about["text"] = "\r"
        self.command("Input.dispatchKeyEvent", type="keyDown", **about)
        self.command("Input.dispatchKeyEvent", type="keyUp", **about)

    def mouse(self, x: float, y: float, kind: str = "mouseMoved", **more: Any) -> None:
        """Move the mouse, or press (``mousePressed``) and release its button."""
        self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def screenshot(self, path: Path) -> None:
        """Write what is seen to a file."""
        path.write_bytes(base64.b64decode(self.command("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        """End it."""

        async def close() -> None:
            self._socket.close()
            await asyncio.sleep(0.05)

        self._run(close())
        self._loop.close()
        self.process.terminate()
        self.process.wait(30)

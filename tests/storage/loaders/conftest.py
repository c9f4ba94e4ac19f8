"""What tests of loaders that write files ask for: an empty database, and a folder of their own to be in."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

import graphdb


@pytest.fixture
def db() -> Any:
    with graphdb.connect() as database:
        yield database


@pytest.fixture
def in_a_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

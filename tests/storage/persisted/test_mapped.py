"""What does not fit into memory is mapped from a file without a name, until the graph changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from graphdb.storage.persisted import files, store
from graphdb.storage.persisted.store import NOTHING, PersistedStructures

Ints = NDArray[np.int64]


@pytest.fixture
def owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PersistedStructures:
    monkeypatch.setattr(store, "SLOW", 0.0)
    return PersistedStructures(str(tmp_path / "graph.duckdb"), lambda: False, threading.RLock())


def deriving(made: list[int], size: int = 1 << 18) -> Callable[[], Ints]:
    def derive() -> Ints:
        made.append(size)
        return np.arange(size)

    return derive


def test_what_is_derived_a_second_time_is_mapped(owner: PersistedStructures, tmp_path: Path) -> None:
    state, made = owner.of_state(), list[int]()
    found = [state.get_or_derive(("column", 1), deriving(made)) for _ in range(4)]
    assert len(made) == 2
    assert all(np.array_equal(each, np.arange(1 << 18)) for each in found)
    assert found[2] is found[3] is found[1]
    assert state.has(("column", 1))
    assert not state.has(("column", 2))
    assert not [*tmp_path.iterdir()], "the file has no name"
    owner.of_state().get_or_derive(("column", 1), deriving(made))
    assert len(made) == 3, "it belongs to one state of the graph"


def test_what_takes_more_than_its_memory_is_mapped_at_once(owner: PersistedStructures) -> None:
    state, made = owner.of_state(), list[int]()
    size = (1 << 18) * 8
    for memory, key in ((size, "fits"), (size - 1, "does not")):
        found = state.get_or_derive((key,), deriving(made), memory)
        assert np.array_equal(found, np.arange(1 << 18))
        assert store.own_bytes(found) == (size if key == "fits" else 0)
        assert (state.get_or_derive((key,), deriving(made), memory) is found) == (key != "fits")
    assert len(made) == 3


def test_what_depends_on_a_setting_is_not_found_again(owner: PersistedStructures) -> None:
    state, made = owner.of_state(), list[int]()
    for _ in range(3):
        state.get_or_derive(("column", 1), deriving(made))
    owner.stop()
    assert not state.may_map
    for _ in range(3):
        state.get_or_derive(("column", 1), deriving(made))
    assert len(made) == 5


def test_what_cannot_be_mapped_is_derived_each_time(
    owner: PersistedStructures, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, made = owner.of_state(), list[int]()
    for _ in range(3):
        state.get_or_derive(("small",), deriving(made, 10))
    assert len(made) == 3, "a handful of bytes is worth no file"
    monkeypatch.setattr(store, "_free", lambda folder: 1 << 20)
    for _ in range(3):
        state.get_or_derive(("large",), deriving(made))
    assert len(made) == 6, "a quarter of what the disk has left is taken, at most"
    monkeypatch.undo()
    monkeypatch.setattr(store, "SLOW", 0.0)
    monkeypatch.setattr(files, "_MOST_MAPPED", len(files._maps))
    for _ in range(3):
        state.get_or_derive(("another",), deriving(made))
    assert len(made) == 9, "each mapping has a file descriptor"
    for _ in range(3):
        NOTHING.get_or_derive(("column", 1), deriving(made))
    assert len(made) == 12

"""Room for arrays: in memory up to a number of bytes, then in files without names, whose pages may be given back."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from graphdb.storage.persisted import files, room
from graphdb.storage.persisted.room import NoRoom, Room


def test_arrays_are_in_memory_while_there_is_some(tmp_path: Path) -> None:
    some = Room(tmp_path, 1000, lambda: 1 << 20)
    first, second, third = some.zeros(100, np.int64), some.zeros((50, 2), np.int32), some.zeros(25, np.int64)
    assert [files.unmapped_bytes(each) for each in (first, second, third)] == [800, 0, 200]
    assert second.shape == (50, 2)
    assert not second.any()
    assert not third.any()
    second[:] = np.arange(100).reshape(50, 2)
    some.give_back()
    assert np.array_equal(second.ravel(), np.arange(100))
    assert not os.listdir(tmp_path)


def test_bytes_are_added_piece_by_piece(tmp_path: Path) -> None:
    pieces = [np.arange(size, dtype=np.uint8) for size in (3, 0, 40, 200, 7)]
    for memory in (0, 100, 1 << 20):
        texts = Room(tmp_path, memory, lambda: 1 << 20).texts()
        for piece in pieces:
            texts.add(piece)
        assert len(texts) == 250
        assert np.array_equal(texts.array(), np.concatenate(pieces))
    assert len(Room(None, 0).texts().array()) == 0


def test_columns_come_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_OFTEN", 2)
    batches = [(np.arange(at, at + 7), np.arange(at, at + 7) ** 2) for at in range(0, 70, 7)]
    for memory in (0, 1 << 20):
        first, second = Room(tmp_path, memory, lambda: 1 << 20).columns(batches, 100, 2)
        assert np.array_equal(first, np.arange(70))
        assert np.array_equal(second, np.arange(70) ** 2)
    with pytest.raises(NoRoom):
        Room(tmp_path, 1 << 20).columns(batches, 69, 2)


def test_there_may_be_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = Room(tmp_path, 100, lambda: 1000), Room(None, 100), Room(tmp_path / "none", 100, lambda: 1 << 20)
    for each in full:
        assert len(each.zeros(100, bool)) == 100
        with pytest.raises(NoRoom):
            each.zeros(1001, bool)
        with pytest.raises(NoRoom):
            each.texts().add(np.zeros(1001, np.uint8))
    monkeypatch.setattr(files, "_MOST_MAPPED", len(files._maps))
    with pytest.raises(NoRoom):
        Room(tmp_path, 0, lambda: 1 << 20).zeros(10, bool)

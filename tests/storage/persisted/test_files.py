"""Structures in files: what is read is what was written, or nothing."""

from __future__ import annotations

import os
import random
import stat
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphdb.common import arrow
from graphdb.snapshot.columns import ValueColumn
from graphdb.storage.graph.derived.closure import Forest, forest_of
from graphdb.storage.graph.derived.orientation import Oriented, orient
from graphdb.storage.graph.edges import EdgeTable
from graphdb.storage.graph.pcsr import Direction, Layer, Partition, build_partition
from graphdb.storage.persisted import files
from graphdb.storage.persisted.packing import NotPackable, packed


def same(a: Any, b: Any) -> bool:
    """Whether two values have equal parts, arrays of the same type among them."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, arrow.Array):
        return all(
            same(getattr(a, name), getattr(b, name)) for name in ("type", "valid", "data", "offsets", "children")
        ) and len(a) == len(b)
    if is_dataclass(a):
        return all(same(getattr(a, each.name), getattr(b, each.name)) for each in fields(a) if each.init)
    return bool(a == b)


def partition(direction: Direction, layer: Layer | None = None) -> Partition:
    rng = np.random.default_rng(5)
    edges = np.unique(rng.integers(0, 90, (400, 2)), axis=0)
    return build_partition(7, edges[:, 0].copy(), edges[:, 1].copy(), direction, 300, layer=layer)


def forest() -> Forest:
    return forest_of(np.arange(1, 60), np.arange(1, 60) // 2, "out", 100, np.int32)


def column(values: list[str]) -> ValueColumn:
    return ValueColumn.of(np.arange(len(values)) * 2, np.arange(len(values), dtype=np.int32), arrow.array(values))


def edge_table() -> EdgeTable:
    starts, ends = np.arange(50), np.arange(50)[::-1].copy()
    return EdgeTable.of_triples((3, 4), lambda label: (starts, ends), 80, np.int32)


VALUES = {
    "out": partition("out"),
    "hashed": partition("in", "hashed"),
    "both": partition("both"),
    "forest": forest(),
    "oriented": orient(partition("both"), 300),
    "texts": column(["", "a", "ä" * 1000, "Ω"] * 3),
    "no texts": column([]),
    "edges": edge_table(),
    "bytes": np.arange(13, dtype=np.uint8),
    "truth": np.array([True, False, True]),
    "one number": np.array([2.5]),
    "nothing": np.empty(0, np.int32),
    "large": np.arange(300_001, dtype=np.int64),
    "two": (np.arange(5, dtype=np.int32), np.array([[1, 2], [3, 4]])),
    "moments": arrow.array([None, 3, 4]),
}


@pytest.mark.parametrize("name", VALUES)
def test_what_was_written_is_read(tmp_path: Path, name: str) -> None:
    files.write(tmp_path, "x", VALUES[name])
    assert same(files.read(tmp_path, "x"), VALUES[name])
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["x"]


def test_who_changes_an_array_changes_no_file(tmp_path: Path) -> None:
    files.write(tmp_path, "x", VALUES["large"])
    found = files.read(tmp_path, "x")
    found[:] = -1
    assert same(files.read(tmp_path, "x"), VALUES["large"])


def test_a_mapped_array_outlives_its_file(tmp_path: Path) -> None:
    files.write(tmp_path, "x", VALUES["large"])
    found = files.read(tmp_path, "x")
    files.write(tmp_path, "x", np.zeros(400_000))
    (tmp_path / "x").unlink()
    assert same(found, VALUES["large"])


def test_descriptors_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MOST_MAPPED", len(files._maps) + 3)
    files.write(tmp_path, "x", VALUES["large"])
    before = len(os.listdir("/proc/self/fd"))
    found = [files.read(tmp_path, "x") for _ in range(9)]
    assert len(os.listdir("/proc/self/fd")) <= before + 3
    assert all(same(each, VALUES["large"]) for each in found)
    mapped = len(files._maps)
    del found
    assert len(files._maps) <= mapped - 3


@pytest.mark.parametrize("value", [object(), np.array([object()]), [1, 2], {"a": 1}, np.int64(3), lambda: 0])
def test_what_is_not_registered_is_not_written(tmp_path: Path, value: object) -> None:
    with pytest.raises(NotPackable):
        files.write(tmp_path, "x", value)
    assert not os.listdir(tmp_path)


def test_a_partition_that_changes_in_place_is_not_written() -> None:
    from graphdb.storage.graph.following.partitions import with_gaps

    with pytest.raises(NotPackable):
        packed(with_gaps(partition("out")))


@pytest.mark.parametrize("name", ["both", "texts", "large"])
def test_damage_is_found(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever bit is another, and wherever the file ends: it is not read, or its padding was hit."""
    files.write(tmp_path, "x", VALUES[name])
    monkeypatch.setattr(files, "_start", lambda: b"the next start  ")
    whole, rng = (tmp_path / "x").read_bytes(), random.Random(7)
    refused = 0
    for _ in range(300):
        at, damaged = rng.randrange(len(whole)), bytearray(whole)
        damaged[at] ^= 1 << rng.randrange(8)
        (tmp_path / "x").write_bytes(damaged)
        found = files.read(tmp_path, "x")
        assert found is None or same(found, VALUES[name])
        refused += found is None
    assert refused > 250
    for content in (b"", whole[:20], whole[:-1], whole[: len(whole) // 2], whole + b"\0" * 64, bytes(len(whole))):
        (tmp_path / "x").write_bytes(content)
        assert files.read(tmp_path, "x") is None
    page = bytearray(whole)
    page[4096:8192] = bytes(4096)  # as a disk leaves it that lost its power
    (tmp_path / "x").write_bytes(page)
    assert files.read(tmp_path, "x") is None


def test_arrays_are_added_up_once_for_each_start_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written since needs no sum; without the system's word, each reading does."""
    added: list[int] = []
    sum_of = files._sum
    monkeypatch.setattr(files, "_sum", lambda data: added.append(len(data)) or sum_of(data))
    for start, sums in ((b"the first start ", 0), (b"the second start", 1), (bytes(16), 2)):
        monkeypatch.setattr(files, "_start", lambda start=start: start)
        if not sums:
            files.write(tmp_path, "x", VALUES["large"])
        added.clear()
        assert same(files.read(tmp_path, "x"), VALUES["large"])
        assert same(files.read(tmp_path, "x"), VALUES["large"])
        assert len(added) == sums
        assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o600


def test_the_system_names_its_start() -> None:
    assert len(files._start()) == 16
    assert any(files._start()) == Path("/proc/sys/kernel/random/boot_id").exists()


def test_fields_of_another_version_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphdb.storage.persisted import packing

    files.write(tmp_path, "x", VALUES["oriented"])
    monkeypatch.setitem(packing._CLASSES, "Oriented", Forest)
    assert files.read(tmp_path, "x") is None
    monkeypatch.delitem(packing._CLASSES, "Oriented")
    assert files.read(tmp_path, "x") is None
    monkeypatch.setitem(packing._CLASSES, "Oriented", Oriented)
    assert same(files.read(tmp_path, "x"), VALUES["oriented"])


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o604])
def test_a_file_that_others_may_use_is_not_read(tmp_path: Path, mode: int) -> None:
    files.write(tmp_path, "x", VALUES["both"])
    (tmp_path / "x").chmod(mode)
    assert files.read(tmp_path, "x") is None


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    files.write(tmp_path, "x", VALUES["both"])
    (tmp_path / "y").symlink_to(tmp_path / "x")
    assert files.read(tmp_path, "y") is None
    (tmp_path / "folder").mkdir()
    assert files.read(tmp_path, "folder") is None


def test_what_cannot_be_finished_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write(tmp_path, "x", VALUES["both"])

    def full(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        files.write(tmp_path, "x", VALUES["large"])
    assert os.listdir(tmp_path) == ["x"]
    assert same(files.read(tmp_path, "x"), VALUES["both"])

"""Entries: kernels that run without Numba once they were compiled, with the same results."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphdb
from graphdb.storage.arrays import batch_kernels
from graphdb.storage.compile import native
from graphdb.storage.compile.native import Native, key_of, types_of

KEYS = np.array([5, 1 << 40 | 7, 1 << 40 | 7, 3 << 32], np.uint64)


def test_a_load_in_a_new_process_imports_no_numba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import sys, graphdb\n"
        "with graphdb.connect() as db:\n"
        "    print(db.load(sys.argv[1]).new_triples, 'numba' in sys.modules)\n"
    )
    file = tmp_path / "test.nt"
    file.write_text('<ex:a> <ex:p> "b" .\n<ex:a> <ex:p> <ex:c> .\n')
    with graphdb.connect() as db:
        db.load(file)  # compiles where that was never done
    printed = subprocess.run([sys.executable, "-c", program, file], capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["2", str(not native.usable())]
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert not native.usable(), "what Numba shall do differently, Numba does"


def test_entries_return_what_numba_returns() -> None:
    kernel: object = batch_kernels.histogram
    triples, labels = np.array([[0, 3, 0], [1, 5, 1], [2, 3, 2]], np.uint32), np.full((8, 2), -1, np.int64)
    found = kernel.made(triples, 0, labels.copy(), 0)  # type: ignore[attr-defined]
    assert found == batch_kernels.histogram(triples, 0, labels.copy(), 0) == (3, 2)
    for keys in (KEYS, KEYS[:0], np.repeat(KEYS, 2)[::2]):  # the last is no array in C order, and goes through Numba
        objects = np.full(len(keys), 9, np.uint32)
        batch_kernels.targets(keys, objects)
        assert objects.tolist() == (keys & np.uint64(0xFFFFFFFF)).tolist()


def test_types_are_those_that_numba_infers() -> None:
    from numba import typeof

    frozen = np.frombuffer(b"12345678", np.uint8)
    report = [3, np.int64(3), np.uint64(3), 0.5, KEYS, frozen, np.zeros((2, 3)), np.zeros((0, 2), np.int32), KEYS[:1]]
    assert key_of(report) == types_of(tuple(map(typeof, report))) is not None
    others = [True, np.int32(1), None, (1,), KEYS[::2], np.zeros((2, 3)).T]
    for other in others:
        assert key_of([other]) is None
        assert types_of((typeof(other),)) is None


def test_code_is_cached_until_a_source_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys, objects = KEYS.copy(), np.empty(len(KEYS), np.uint32)
    batch_kernels.targets(keys, objects)
    key = key_of([keys, objects])
    assert key is not None
    code = batch_kernels.targets._native._read()[key]  # type: ignore[attr-defined]
    function = batch_kernels.targets._function  # type: ignore[attr-defined]
    source = tmp_path / "source.py"
    source.write_text("one")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    native._folder.cache_clear()

    def fresh() -> Native:
        native._state.cache_clear()
        return Native(function, lambda: {str(source)})

    assert fresh().find(key) is None
    kept = fresh()
    kept.keep(key, code)
    kept.keep(("i8",), None)
    for reader in (kept, fresh()):
        found = reader.find(key)
        assert found is not None
        found(keys, objects[::-1].copy())
        assert reader.knows(("i8",))
        assert reader.find(("i8",)) is None, "what Numba must run"
    source.write_text("another")
    assert not fresh().knows(key)
    [file] = (tmp_path / "cache").rglob("*.nbc")
    for damaged in (b"", b"no pickle", pickle.dumps(3)):
        file.write_bytes(damaged)
        assert not fresh().knows(key)
    native._folder.cache_clear()
    native._state.cache_clear()

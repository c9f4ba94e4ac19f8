"""Machine code on disk: it belongs to the user, is whole, and was made from the present sources, or is made again."""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import struct
import subprocess
import sys
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import pytest

from graphdb.common import compiling
from graphdb.common.errors import NotSupportedError
from graphdb.execute.search import search_kernels
from graphdb.storage.arrays import batch_kernels
from graphdb.storage.compile import build, jit, library, sources, warm
from graphdb.storage.compile.cache import Cache
from graphdb.storage.compile.entries import Entry
from tests.stops import PATIENCE

cache = Cache("kernels", 16)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own for machine code."""
    monkeypatch.setenv("GRAPHDB_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "kernels"


def test_what_was_written_is_read(place: Path) -> None:
    assert cache.read("a-1.o") is None
    cache.write("a-1.o", b"code")
    assert cache.read("a-1.o") == b"code"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE((place / "a-1.o").stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"code", b"\0" * 40, hashlib.sha256(b"code").digest() + b"cod"])
def test_what_is_damaged_is_not_read(place: Path, content: bytes) -> None:
    cache.write("a-1.o", b"code")
    (place / "a-1.o").write_bytes(content)
    assert cache.read("a-1.o") is None


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o604])
def test_a_file_that_others_may_use_is_not_read(place: Path, mode: int) -> None:
    cache.write("a-1.o", b"code")
    (place / "a-1.o").chmod(mode)
    assert cache.read("a-1.o") is None


def test_a_link_is_not_followed(place: Path) -> None:
    cache.write("a-1.o", b"code")
    (place / "b-1.o").symlink_to(place / "a-1.o")
    assert cache.read("b-1.o") is None


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o750, 0o705])
def test_a_folder_that_others_may_use_is_not_used(place: Path, mode: int) -> None:
    cache.write("a-1.o", b"code")
    place.chmod(mode)
    assert cache.objection() is not None
    assert cache.read("a-1.o") is None
    cache.write("b-1.o", b"code")
    assert not (place / "b-1.o").exists()


def test_a_folder_below_one_that_others_can_change_is_not_used(place: Path) -> None:
    cache.write("a-1.o", b"code")
    place.parent.chmod(0o777)
    assert "another user can change" in str(cache.objection())
    assert cache.read("a-1.o") is None
    place.parent.chmod(0o1777)  # as /tmp: there nobody replaces what is another's
    assert cache.read("a-1.o") == b"code"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_belongs_to_another_user_is_not_read(place: Path) -> None:
    cache.write("a-1.o", b"code")
    os.chown(place / "a-1.o", 12345, -1)
    assert cache.read("a-1.o") is None
    cache.write("a-1.o", b"code")
    os.chown(place, 12345, -1)
    assert cache.objection() == "it belongs to another user"
    assert cache.read("a-1.o") is None


def test_those_used_longest_ago_are_dropped(place: Path) -> None:
    """A file that is read counts as used, whenever it was written."""
    for number in range(16):
        cache.write(f"a-{number}.o", b"code")
        os.utime(place / f"a-{number}.o", (number, number))
    assert cache.count() == 16
    assert cache.read("a-3.o") == b"code"
    cache.write("b-1.o", b"code")
    assert {file.name for file in place.iterdir()} == {"b-1.o", "a-3.o", *(f"a-{number}.o" for number in range(4, 16))}
    for number in range(100):
        cache.write(f"c-{number}.o", b"code")
        assert cache.count() <= 16
    assert cache.read("c-99.o") == b"code"


def _fresh(kernel: Any) -> Entry:
    """The same kernel, as a process has it that did not call it yet."""
    assert isinstance(kernel, Entry)
    return Entry(kernel.function, kernel.signature, lambda entry, variant: None)


def test_code_is_made_once_for_the_same_sources(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    targets = batch_kernels.targets
    assert isinstance(targets, Entry)
    made: list[str] = []
    compiled = jit._compiled

    def note(entry: Entry, variant: str) -> bytes:
        made.append(entry.symbol)
        return compiled(entry, variant)

    monkeypatch.setattr(jit, "_compiled", note)
    assert not jit.cached(targets, "")
    first = jit.make(targets, "")
    assert jit.cached(targets, "")
    assert jit.make(targets, "") == first
    assert made == ["storage_arrays_batch_kernels__targets"]
    monkeypatch.setattr(sources, "stamp", lambda modules: "another")
    assert not jit.cached(targets, "")
    [file] = place.glob("*.o")
    assert first == file.read_bytes()[32:]


def test_a_kernel_is_made_from_what_it_imports() -> None:
    found = sources.sources("graphdb.execute.search.search_kernels")
    assert {"graphdb.execute.search.check_kernels", "graphdb.storage.graph.pcsr_kernels"} <= found, "what it calls"
    assert {"graphdb.execute.search.frame", "graphdb.storage.compile.emit"} <= found, "constants, and the compiler"
    assert all(sources.path_of(module).exists() for module in found)


def test_a_changed_source_has_another_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "some_kernels.py"
    monkeypatch.setattr(sources, "path_of", lambda module: file)
    stamps = set()
    for text in ("one", "two", "one"):
        file.write_text(text)
        sources._digest.cache_clear()
        stamps.add(sources.stamp(frozenset(["graphdb.some_kernels"])))
    sources._digest.cache_clear()
    assert len(stamps) == 2


def test_without_numba_the_error_says_what_to_install(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "available", lambda: False)
    with pytest.raises(NotSupportedError, match="Numba is not installed") as caught:
        jit.make(batch_kernels.targets, "")  # type: ignore[arg-type]
    assert "graphdb-duckdb[jit]" in str(caught.value)


def test_every_level_has_code_of_its_own() -> None:
    from graphdb.storage.compile.emit import lower, object_code

    entry = batch_kernels.targets
    assert isinstance(entry, Entry)
    module = lower([(entry, "")])
    objects = {level: object_code(module, level) for level in library.LEVELS["x86_64"]}
    assert all(code.startswith(b"\x7fELF") for code in objects.values())
    assert len(set(objects.values())) == len(objects)
    assert all(entry.symbol.encode() in code for code in objects.values())


@pytest.mark.skipif(platform.machine() != "x86_64", reason="relocations are those of x86-64")
def test_code_and_constants_may_lie_anywhere() -> None:
    """Beside CUDA's reservations LLVM finds no place near; where code names places by 32 bits, it aborts the process."""
    import llvmlite.binding as llvm

    absolute = 1  # R_X86_64_64
    entry = search_kernels.count_all
    assert isinstance(entry, Entry)
    sections = llvm.ObjectFileRef.from_data(jit.make(entry, "i4")).sections()
    data = [section.data() for section in sections if b".rela" in (section.name() or b"")]
    kinds = {struct.unpack_from("<QQq", each, at)[1] & 0xFFFFFFFF for each in data for at in range(0, len(each), 24)}
    assert kinds == {absolute}


def test_a_kernel_that_makes_an_array_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core.errors import NumbaError

    from graphdb.storage.compile.emit import lower
    from graphdb.storage.compile.signature import Signature

    def makes(count: int) -> int:
        return len(np.zeros(count, np.int64))

    def lies(count: int) -> bool:
        return count > 3

    monkeypatch.setattr("graphdb.storage.compile.entries.entries", {})  # these are none of the kernels
    with pytest.raises(NumbaError, match=r"NRT required|array passed into"):
        lower([(Entry(makes, Signature.parse("i8 -> i8"), lambda entry, variant: None), "")])
    with pytest.raises(TypeError, match="declares nothing"):
        lower([(Entry(lies, Signature.parse("i8"), lambda entry, variant: None), "")])
    with pytest.raises(ValueError, match="declares 2 parameters"):
        Entry(makes, Signature.parse("i8, i8"), lambda entry, variant: None)


def test_levels_are_what_the_processor_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GRAPHDB_KERNELS", raising=False)
    monkeypatch.setattr(library, "HOME", tmp_path)
    monkeypatch.setattr(library.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(library, "_flags", lambda: library._V3)
    assert library.level() is None, "there is no library"
    for level in library.LEVELS["x86_64"]:
        (tmp_path / f"kernels-{level}.so").touch()
    assert library.level() == "x86-64-v3"
    monkeypatch.setattr(library, "_flags", lambda: library._V3 - {"avx2"})
    assert library.level() == "x86-64-v2"
    assert library.levels() == ["x86-64-v2"]
    assert build.levels_of("x86_64", here=True) == ["x86-64-v2"]
    assert build.levels_of("x86_64", here=False) == [*library.LEVELS["x86_64"]]
    monkeypatch.setattr(library, "_flags", lambda: library._V4)
    assert library.level() == "x86-64-v4"
    assert build.levels_of("x86_64", here=True) == ["x86-64-v4", "x86-64-v2"]
    assert build.levels_of("aarch64", here=True) == ["aarch64"]
    (tmp_path / "kernels-x86-64-v4.so").unlink()
    assert library.level() == "x86-64-v3"
    monkeypatch.setattr(library, "_flags", lambda: {"sse2"})
    assert library.level() is None
    monkeypatch.setattr(library, "_flags", lambda: library._V3)
    monkeypatch.setenv("GRAPHDB_KERNELS", "x86-64-v2")
    assert library.level() == "x86-64-v2"
    monkeypatch.setenv("GRAPHDB_KERNELS", "jit")
    assert library.level() is None


def test_a_library_that_is_none_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(library, "HOME", tmp_path)
    monkeypatch.setattr(library, "level", lambda: "x86-64-v3")
    library.loaded.cache_clear()
    (tmp_path / "kernels-x86-64-v3.so").write_bytes(b"\x7fELF and no more")
    try:
        assert library.loaded() is None
        assert not library.bind(_fresh(batch_kernels.targets))
    finally:
        library.loaded.cache_clear()


def test_arrays_are_laid_out_as_machine_code_reads_them() -> None:
    from graphdb.storage.compile import layout

    assert layout.holds()


def test_missing_kernels_are_counted(place: Path) -> None:
    absent, total = warm.missing()
    assert total > 80
    if library.loaded() is None:
        assert len(absent) == total
        assert len({(found.symbol, found.variant) for found in absent}) == total


def test_what_takes_long_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: Queue[str] = Queue()
    monkeypatch.setattr(compiling._State, "tell", staticmethod(heard.put))
    monkeypatch.setattr(compiling, "_AFTER", PATIENCE)
    with compiling.announced("search"):
        assert compiling.now() == "search"
    assert compiling.now() is None
    assert heard.empty(), "what is quick is not mentioned"
    monkeypatch.setattr(compiling, "_AFTER", 0.01)
    with compiling.announced("search"):
        assert heard.get(timeout=PATIENCE) == "compiling search (once for this machine)…"
    assert heard.empty()


def test_a_fork_waits_for_no_lock_of_another_thread(place: Path) -> None:
    """Neither for that of LLVM's calls, nor for one on a file, whose descriptor it has from its parent."""
    code = """
import os, signal, threading
import llvmlite.binding as llvm
from graphdb.storage.compile import jit
taken, freed = threading.Event(), threading.Event()
def compile():
    with jit.disk.locked("a-1.o"):
        with llvm.ffi.lib._lock:
            taken.set()
            freed.wait(0.2)
        freed.wait(0.2)
thread = threading.Thread(target=compile)
thread.start()
taken.wait()
child = os.fork()
if not child:
    signal.alarm(5)
    llvm.get_host_cpu_name()
    with jit.disk.locked("a-1.o"):
        os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "7", ran.stderr

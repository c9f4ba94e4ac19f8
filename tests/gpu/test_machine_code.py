"""Where device code comes from: archives in a wheel, the user's cache, the compiler; and what ends a compilation."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from graphdb.common.errors import DeviceError, QueryTimeout
from graphdb.execute.host import HostExecutor
from graphdb.gpu import build
from graphdb.gpu.code import archive, launch, machine_code
from graphdb.gpu.code.archive import Archive
from graphdb.gpu.code.compiler import Cancel, Cancelled
from graphdb.gpu.code.machine_code import MachineCode, Source
from graphdb.gpu.counting import run
from graphdb.incremental.device import layout
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.compile.cache import Cache
from tests import emulator, nvrtc
from tests.gpu.executors import EMULATED
from tests.gpu.patterns import PATTERNS, graph_of, pattern_of

HOST = HostExecutor(1)
assert layout  # declares modules, too


class Written:
    """A compiler that answers with what it was asked for, once it may, and notes what that was."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may = threading.Event()
        self.may.set()
        self.fails = False

    def target(self, capability: int) -> str:
        return f"sm_{capability}"

    def compile(self, text: str, options: tuple[str, ...], target: str, cancel: Cancel | None = None) -> bytes:
        self.asked.append(text)
        while not self.may.wait(0.01):
            if cancel is not None and cancel.is_set():
                raise Cancelled
        if self.fails:
            raise DeviceError("this does not compile")
        return f"{target} {text}".encode()


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A cache of one's own."""
    monkeypatch.setenv("GRAPHDB_CACHE_DIR", str(tmp_path / "cache"))
    return Cache("device", 8)


def source(text: str) -> Source:
    return Source("join", text, ())


def made(code: MachineCode, wanted: Source, check: Callable[[], None] | None = None) -> bytes:
    """What a device asks for."""
    return code.ready(wanted) or code.compiled(wanted, check)


# --- archives


def test_every_module_that_no_query_changes_is_compiled_ahead() -> None:
    assert build.undeclared() == set()
    names = {name for name, _ in build.modules()}
    assert names == {path.stem for path in launch_folder().rglob("*.cu")} - {"count_nested", "search"}


def test_an_archive_holds_what_the_compiler_makes(tmp_path: Path) -> None:
    """Of the same text and options, whoever calls it."""
    library = nvrtc.library()
    variants = {name: launch.VARIANTS[name] for name in ("clique", "distinct", "filter", "search")}
    with mock.patch.dict(launch.VARIANTS, variants, clear=True):
        wanted, paths = build.modules(), build.build(tmp_path, library, ("sm_90", "compute_90"), 2)
    assert {name for name, _ in wanted} == {"clique", "distinct", "filter"}
    for path, starts in zip(paths, (b"\x7fELF", b"//"), strict=True):
        found = Archive(path)
        assert (found.target, found.version, len(found)) == (path.stem, library.version, len(wanted))
        for (name, digest), (text, options) in wanted.items():
            code = found.read(digest)
            assert code is not None
            assert code.startswith(starts)
            assert name != "filter" or code == library.compile(text, options, path.stem)


def launch_folder() -> Path:
    return Path(launch.__file__).parents[1] / "kernels"


def test_the_same_code_makes_the_same_archive(tmp_path: Path) -> None:
    for name in ("a", "b"):
        archive.write(tmp_path / name, (13, 0), {("join", "1"): b"code" * 100, ("filter", "2"): b"more"})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    found = Archive(tmp_path / "a")
    assert ("1" in found, "3" in found, found.read("2"), found.read("3")) == (True, False, b"more", None)


def test_a_digest_knows_text_and_options() -> None:
    digests = {archive.digest("a", ()), archive.digest("b", ()), archive.digest("a", ("-DID=int",))}
    assert len(digests) == 3
    assert archive.digest("a", ()) == source("a").digest


@pytest.mark.parametrize(
    ("capability", "target"),
    [
        *((70, None), (75, "sm_75"), (80, "sm_80"), (86, "sm_80"), (89, "sm_80"), (90, "sm_90"), (103, "sm_100")),
        *((110, None), (120, "sm_120"), (121, "sm_120"), (130, "compute_120")),
    ],
)
def test_which_archive_fits_a_device(tmp_path: Path, capability: int, target: str | None) -> None:
    """Machine code runs on later devices of its major version, PTX on all later ones; nothing runs on earlier ones."""
    for name in archive.targets("x86_64"):
        (tmp_path / f"{name}.zip").touch()
    found = archive.fitting(capability, tmp_path)
    assert (found and found.stem) == target


def test_what_is_damaged_or_for_a_later_driver_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_code.archive, "fitting", lambda capability: tmp_path / "sm_90.zip")
    assert machine_code.carried(90, 13) is None
    (tmp_path / "sm_90.zip").write_bytes(b"PK nothing")
    assert machine_code.carried(90, 13) is None
    code = np.random.default_rng(1).integers(0, 200, 2000).astype(np.uint8).tobytes()
    archive.write(tmp_path / "sm_90.zip", (13, 0), {("join", "1"): code})
    assert machine_code.carried(90, 12) is None
    found = machine_code.carried(90, 14)
    assert found is not None
    assert found.read("1") == code
    whole = (tmp_path / "sm_90.zip").read_bytes()
    for at in range(100, 1500, 100):
        (tmp_path / "sm_90.zip").write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])
        damaged = machine_code.carried(90, 13)
        assert damaged is not None
        assert damaged.read("1") is None


# --- the compiler


def test_a_compilation_ends_when_it_is_cancelled() -> None:
    library = nvrtc.library()
    if library.version < (12, 8):
        pytest.skip("this NVRTC cannot be cancelled")
    cancel = Cancel()
    threading.Timer(0.2, cancel.set).start()
    text, options = launch.source("join"), launch.defines({"ID": "int"})
    with pytest.raises(Cancelled):
        library.compile(text + "\n" + "".join(_copies(40)), options, "sm_90", cancel)


def _copies(count: int) -> Iterator[str]:
    """Kernels that take long to compile, as many as wanted."""
    for number in range(count):
        yield f'extern "C" __global__ void slow_{number}(float *x) {{ for (int i = 0; i < 64; ++i) {{'
        yield "".join(f"x[{k} + i] = x[{k * 7 + number} + i] * x[i] + {k};" for k in range(300)) + "}}\n"


def test_the_compilers_words_are_in_the_error() -> None:
    with pytest.raises(DeviceError, match="this_is_no_type"):
        nvrtc.library().compile('extern "C" __global__ void k(this_is_no_type x) {}', (), "sm_90")


def test_a_device_that_came_after_the_compiler_gets_the_nearest_code() -> None:
    library = nvrtc.library()
    with mock.patch.object(library, "architectures", (75, 80, 86, 90)):
        targets = [library.target(capability) for capability in (75, 86, 89, 90, 103)]
    assert targets == ["sm_75", "sm_86", "sm_86", "sm_90", "compute_90"]
    assert b".target sm_90" in library.compile("__global__ void k() {}", (), "compute_90")


# --- the cache, and threads


def test_a_module_is_compiled_once(disk: Cache) -> None:
    """In a process, and for the processes after it; code of another compiler or another driver is left alone."""
    nvcc = Written()
    code = MachineCode(None, disk, "a", lambda: nvcc, 90)  # type: ignore[arg-type,return-value]
    assert code.ready(source("x")) is None
    assert [made(code, source(text)) for text in ("x", "y", "x")] == [b"sm_90 x", b"sm_90 y", b"sm_90 x"]
    again = MachineCode(None, disk, "a", lambda: nvcc, 90)  # type: ignore[arg-type,return-value]
    assert made(again, source("x")) == b"sm_90 x"
    assert nvcc.asked == ["x", "y"]
    assert again.origins == {"archive": 0, "cache": 1, "compiler": 0}
    for made_by, capability in (("b", 90), ("a", 80)):
        other = MachineCode(None, disk, made_by, lambda: nvcc, capability)  # type: ignore[arg-type,return-value]
        assert made(other, source("x")) == f"sm_{capability} x".encode()
    assert nvcc.asked == ["x", "y", "x", "x"]


def test_what_the_driver_does_not_take_is_compiled_anew(disk: Cache) -> None:
    nvcc = Written()
    code = MachineCode(None, disk, "a", lambda: nvcc, 90)  # type: ignore[arg-type,return-value]
    for _ in range(2):
        code.compiled(source("x"), anew=True)
    assert nvcc.asked == ["x", "x"]


def test_who_stops_waiting_leaves_the_compiler_to_others(disk: Cache) -> None:
    nvcc = Written()
    nvcc.may.clear()
    code = MachineCode(None, disk, "a", lambda: nvcc, 90)  # type: ignore[arg-type,return-value]

    def check() -> None:
        raise QueryTimeout("too long")

    for _ in range(3):
        with pytest.raises(QueryTimeout):
            made(code, source("x"), check)
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(made(code, source("x")))) for _ in range(4)]
    for thread in threads:
        thread.start()
    nvcc.may.set()
    for thread in threads:
        thread.join()
    assert found == [b"sm_90 x"] * 4
    assert nvcc.asked == ["x"]


def test_an_error_is_raised_and_not_remembered(disk: Cache) -> None:
    nvcc = Written()
    nvcc.fails = True
    code = MachineCode(None, disk, "a", lambda: nvcc, 90)  # type: ignore[arg-type,return-value]
    with pytest.raises(DeviceError, match="does not compile"):
        made(code, source("x"))
    nvcc.fails = False
    assert made(code, source("x")) == b"sm_90 x"


def test_results_in_memory_and_on_disk_are_bounded(disk: Cache) -> None:
    nvcc = Written()
    code = MachineCode(None, disk, "a", lambda: nvcc, 90)  # type: ignore[arg-type,return-value]
    with mock.patch.object(machine_code, "MOST", 4):
        for number in range(40):
            made(code, source(str(number)))
            assert len(code._compilations) <= 5
            assert disk.count() <= disk.most
    assert made(code, source("39")) == b"sm_90 39"
    assert len(nvcc.asked) == 40


def test_compilations_end_with_their_owner(disk: Cache) -> None:
    nvcc = Written()
    nvcc.may.clear()
    code = MachineCode(None, disk, "a", lambda: nvcc, 90)  # type: ignore[arg-type,return-value]
    compilation = code._begun(source("x"))
    code.cancel()
    assert isinstance(compilation.done.exception(60), Cancelled)
    assert disk.count() == 0


ENDING = """
import sys, threading
from pathlib import Path
from typing import Any
sys.path.insert(0, {root!r})
from graphdb.gpu.code import compiler
from graphdb.gpu.code import launch
from graphdb.gpu.code import machine_code
import graphdb.gpu.executor
from graphdb.storage.compile.cache import Cache
disk = Cache("device", 8)
found = compiler.Compiler(compiler.find())
code = machine_code.MachineCode(None, disk, "a", lambda: found, 90)
begun = code._begun(machine_code.Source("join", launch.source("join"), ("-DID=int",)))
assert not begun.done.done()
print("left")
"""


def test_a_process_ends_while_its_compiler_runs(disk: Cache) -> None:
    script, nvrtc_version = ENDING.format(root=str(Path(__file__).resolve().parents[2])), nvrtc.library().version
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "left\n", "")
    if nvrtc_version >= (12, 8):
        assert disk.count() == 0, "it was cancelled"


# --- on a device


@EMULATED
@pytest.mark.parametrize("taken", [True, False])
def test_a_device_loads_what_the_wheel_carries(tmp_path: Path, taken: bool) -> None:
    """While it opens, in a thread; what the driver does not take is compiled."""
    members = {}
    for (name, digest), (text, options) in build.modules().items():
        if name in ("answer", "clique", "filter", "join", "sums"):
            code = emulator.Compiler().compile(text, options, "sm_90") if taken else b"for another driver"
            members[name, digest] = code
    archive.write(tmp_path / "sm_90.zip", (13, 0), members)
    with emulator.installed():
        from graphdb.gpu.executor import GpuExecutor

        code = MachineCode(Archive(tmp_path / "sm_90.zip"), None, "emulated", emulator.Compiler, 90)  # type: ignore[arg-type]
        with mock.patch.object(machine_code, "for_devices", return_value=code):
            executor = GpuExecutor(0, memory_limit=1 << 30)
        for thread in threading.enumerate():
            if thread.name == "graphdb-device-code":
                thread.join()
        graph, label = graph_of(40, 160, 1)
        for edges in (((0, 1), (0, 2), (1, 2)), PATTERNS["diamond"]):
            plan = make_plan(pattern_of(edges, label), graph, counting="never")
            assert executor.count(plan) == HOST.count(plan)
        assert code.origins["archive"] > 0
        assert bool(code.origins["compiler"]) != taken


@EMULATED
def test_modules_on_a_device_are_bounded() -> None:
    with emulator.installed(), mock.patch.object(launch, "MODULES", 3):
        from graphdb.gpu.executor import GpuExecutor

        executor = GpuExecutor(0, memory_limit=1 << 30)
        graph, label = graph_of(30, 120, 2)
        for _ in range(2):
            for name in ("diamond", "4-cycle", "4-wheel", "diamond closed by a vertex"):
                plan = make_plan(pattern_of(PATTERNS[name], label), graph, counting="always")
                want = HOST.count(plan)
                assert executor._counter.count(plan, mock.Mock()) == want
                assert len(executor.device._modules) <= 4


@EMULATED
def test_a_module_stays_loaded_while_it_is_used() -> None:
    """One that is dropped from the device's table belongs to the run that launched it until that is over."""
    with emulator.installed(), mock.patch.object(launch, "MODULES", 1):
        from graphdb.gpu.executor import GpuExecutor

        executor = GpuExecutor(0, memory_limit=1 << 30)
        graph, label = graph_of(30, 120, 2)
        plan = make_plan(pattern_of(PATTERNS["4-wheel"], label), graph, counting="always")
        launched: list[weakref.ref[Any]] = []
        plain, waited = launch.Module.launch, []

        def note(module: Any, kernel: str, *arguments: Any, **more: Any) -> None:
            plain(module, kernel, *arguments, **more)
            if kernel == "nested":
                launched.append(weakref.ref(module))
                executor.device.module("filter", {"ID": "int"})  # drops the others from the table

        def wait_for(*_: Any) -> None:
            waited.extend(module() is not None for module in launched)

        with mock.patch.object(launch.Module, "launch", note), mock.patch.object(run, "wait_for", wait_for):
            assert executor._counter.count(plan, Control()) == HOST.count(plan)
        assert waited
        assert all(waited)


def test_the_doctor_says_where_device_code_comes_from(
    disk: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_code.archive, "fitting", lambda capability: None)
    said = machine_code.described(90, 13)
    assert said == f"compiled when it is needed, 0 of them in {disk.folder()}"
    archive.write(tmp_path / "sm_90.zip", (13, 1), {("join", "1"): b"code"})
    monkeypatch.setattr(machine_code.archive, "fitting", lambda capability: tmp_path / "sm_90.zip")
    disk.write("join-1.cubin", b"code")
    said = machine_code.described(90, 13)
    assert said.startswith("1 modules for sm_90 (NVRTC 13.1) are installed with the package")
    assert said.endswith(f"1 of them in {disk.folder()}")
    disk.folder().chmod(0o777)
    assert "others may use it" in machine_code.described(90, 13)


@EMULATED
def test_the_emulators_libraries_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all that was compiled the last used ones stay, among them what runs the threads of all, and nothing else."""
    place = tmp_path / "emulator"
    monkeypatch.setattr(emulator.compiler, "_folder", place)
    monkeypatch.setattr(emulator.compiler, "_MOST", 3)

    def compiled(number: int) -> Path:
        text = f'extern "C" __global__ void k{number}(int *x) {{ *x = 1; }}'
        return Path(emulator.Compiler().compile(text, (), "sm_90").decode())

    first, second = compiled(1), compiled(2)
    [fibers] = set(place.iterdir()) - {first, second}
    for path, seconds in ((first, 1), (second, 2)):
        os.utime(path, (seconds, seconds))
    assert compiled(1) == first
    third = compiled(3)
    assert set(place.iterdir()) == {fibers, first, third}

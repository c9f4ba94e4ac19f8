"""What all tests share: the folder of shared material, which files are begun first, and who may skip."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from unittest import mock

import duckdb
import pytest
from hypothesis import HealthCheck, settings

from graphdb.storage.compile import jit
from tests.datasets import SHARED
from tests.instances import Instances
from tests.stops import COMPILER

# In CI the same examples every time; elsewhere new ones, which is where they find something.  How long examples take to
# make says what else the machine does.
settings.register_profile(
    "graphdb", derandomize=bool(os.environ.get("CI")), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("graphdb")

FIRST = (
    "gpu/test_kernels.py",
    "suites/test_w3c_rdf.py",
    "suites/test_tck_parse.py",
    "grammar/test_parser_properties.py",
    "suites/test_tck.py",
    "suites/test_language.py",
    "gpu/test_device_counts.py",
    "gpu/test_sums_get_ready.py",
    "gpu/test_device_search.py",
    "suites/test_against_sparql.py",
    "suites/test_mining.py",
    "suites/test_aggregates.py",
    "suites/test_csm.py",
    "suites/test_labelled_sets.py",
    "oracle/",
    "shell/test_cli.py",
    "cluster/test_cluster.py",
    "execute/test_memory.py",
    "execute/test_multi.py",
    "execute/test_stopping.py",
    "gpu/test_pages.py",
    "gpu/test_several_devices.py",
    "incremental/",
    "storage/test_vacuum.py",
    "live/",
    "relational/test_large_statements.py",
    "writing/test_writing.py",
    "database/test_untrusted",
    "database/test_durability.py",
    "database/test_handles.py",
    "shell/test_bench.py",
    "writing/test_found_by_keys.py",
    "storage/persisted/",
    "common/test_caches.py",
    "common/test_without_pyarrow.py",
    "common/arrow/test_streams.py",
    "common/test_imports.py",
    "suites/test_query_fuzz.py",
    "storage/test_pairs.py",
    "storage/writers/",
    "storage/test_hash_index.py",
    "pictures/",
    "workbench/",
    "sql/test_moments.py",
    "writing/test_deleted.py",
    "notebook/test_kernel.py",
    "project/",
)
"""Where several processes share the tests: the files (and folders) begun first, in this order.

Of the processes, the first compiles kernels for CUDA devices, and the second the CPU's as it comes to need them: a process
that needs what another compiles waits for it.  Files of few long tests follow, so that none is left when others are done:
what is not named goes by the number of tests.
"""

gc.disable()  # until the tests are collected

# Programs that tests start load modules that are compiled, even where the environment says that none are stored:
# compiling them takes each half a second more.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Nothing here asks NumPy for linear algebra: each program would start threads for it, which spin for some 25 ms.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell's background job ignores interrupts: tests of them would wait for ever.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Have pytest-xdist, where it is, hand out files in our order, and end once a process of its own has died.

    By itself it orders files by their numbers of tests, and starts another process, which may wait for ever.
    """
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False
    if getattr(config.option, "maxworkerrestart", "") is None:
        config.option.maxworkerrestart = "0"


INSTANCES = Instances()


@pytest.fixture(scope="session", autouse=True)
def _instances() -> Iterator[None]:
    with mock.patch.object(duckdb, "connect", INSTANCES.connect):
        yield


@pytest.fixture(scope="session", autouse=True)
def _compiler() -> Iterator[None]:
    with mock.patch.object(jit, "make", COMPILER.make):
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Have a test that asks for it open instances of DuckDB's of its own."""
    INSTANCES.are_shared = item.get_closest_marker("own_duckdb") is None


@pytest.fixture(scope="module", autouse=True)
def _settings_stay(_instances: None) -> Iterator[None]:
    yield
    INSTANCES.check()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After a module's tests, leave out of later searches for garbage what stays of them.

    Tests of what is freed search some hundred times, among all that is there: Numba leaves a million objects where it
    compiled, and a search among them takes half a second.
    """
    if nextitem is not None and nextitem.path != item.path:
        _freeze()


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """A function from a path below the shared folder to the file; the test is skipped where it is absent."""

    def find(path: str) -> Path:
        found = SHARED / path
        if not found.exists():
            pytest.skip(f"shared material is absent: {found} (set GRAPHDB_SHARED to its folder)")
        return found

    return find


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Have each process begin to collect elsewhere: who comes to a module first compiles it for the others."""
    report = yield
    if isinstance(collector, pytest.Directory) and hasattr(collector.config, "workerinput"):
        process, processes = (collector.config.workerinput[key] for key in ("workerid", "workercount"))
        first = len(report.result) * int(process.removeprefix("gw")) // processes
        report.result[:] = report.result[first:] + report.result[:first]
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order files where several processes share them; skip what needs a device, with the reason why there is none."""
    if hasattr(config, "workerinput"):
        _order(items)
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked:
        from graphdb.gpu.probe import probe

        report = probe()
        if not report.usable:
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=report.advice))


def pytest_collection_finish() -> None:
    """Leave out of each search for garbage what stays until the end: the modules and the tests, a million objects.

    While they are collected nothing is searched.  What tests make beside it is searched seldom: by default that takes
    2 to 4 % of their time.
    """
    gc.enable()
    _freeze()
    gc.set_threshold(20_000, 20, 20)


def _freeze() -> None:
    """Drop the garbage, and leave what there is out of later searches."""
    gc.collect()
    gc.freeze()


def _order(items: list[pytest.Item]) -> None:
    """Put the files of :data:`FIRST` first, and those with most tests before the others."""
    home = Path(__file__).parent
    files = {path: path.relative_to(home).as_posix() for path in {item.path for item in items}}
    sizes = Counter(item.path for item in items)
    places = {
        path: next((place for place, first in enumerate(FIRST) if name.startswith(first)), len(FIRST))
        for path, name in files.items()
    }
    items.sort(key=lambda item: (places[item.path], -sizes[item.path], item.path))

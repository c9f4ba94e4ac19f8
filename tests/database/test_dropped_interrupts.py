"""Ctrl-C that comes within a finalizer or a callback, where Python drops what is raised, stops the statement all the same."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

import graphdb
from graphdb.common import stopping
from graphdb.common.errors import QueryTimeout
from tests.stops import PATIENCE, Stopwatch


class Gone:
    """What can be referred to weakly."""


def ctrl_c(*_: object) -> None:
    signal.raise_signal(signal.SIGINT)


def in_del() -> None:
    class Dropped:
        def __del__(self) -> None:
            ctrl_c()

    Dropped()


def in_reference() -> None:
    gone = Gone()
    reference = weakref.ref(gone, ctrl_c)
    del gone
    assert reference() is None


def in_finalizer() -> None:
    weakref.finalize(Gone(), ctrl_c)


def in_collection() -> None:
    gc.callbacks.append(ctrl_c)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(ctrl_c)


PLACES = [in_del, in_reference, in_finalizer, in_collection]

STATEMENTS = {
    "at its end": "CALL my.place() YIELD x RETURN x",
    "at its next check": "CALL my.place() YIELD x MATCH (a:P), (b:P), (c:P) RETURN sum(a.k * b.k + c.k + x)",
    "row by row": "CALL my.place() YIELD x UNWIND range(1, 4000000) AS a WITH {x: a, y: [x, 'b']} AS m RETURN count(m.y[0])",
    "writing": "CALL my.place() YIELD x UNWIND range(1, 300000) AS i MERGE (:R {k: i})",
}


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("UNWIND range(1, 1000) AS i CREATE (:P {k: i})")
        yield db
    signal.signal(signal.SIGINT, former)


def has(db: graphdb.Database, place: Callable[[], None]) -> list[int]:
    """Register a procedure that does something when it is called, and count how often."""
    called: list[int] = []

    def function() -> list[tuple[int]]:
        called.append(1)
        place()
        return [(1,)]

    db.register_procedure("my.place() :: (x :: INTEGER?)", function)
    return called


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("form", STATEMENTS)
def test_ctrl_c_that_python_drops_stops_the_statement(
    db: graphdb.Database, form: str, place: Callable[[], None]
) -> None:
    called = has(db, place)
    before = sys.unraisablehook
    for _ in range(2):
        watch = Stopwatch()
        with pytest.raises(KeyboardInterrupt):
            db.query(STATEMENTS[form])
        assert watch.seconds() < 3
        assert sys.unraisablehook is before
        assert db.query("MATCH (a:P) RETURN count(*), sum(a.k)").fetchall() == [(1000, 500500)]
        assert db.query("MATCH (r:R) RETURN count(*)").scalar() == 0
    assert len(called) >= 2


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.own_duckdb
def test_ctrl_c_within_a_read_of_sql(db: graphdb.Database, place: Callable[[], None]) -> None:
    def asked(number: int) -> int:
        place()
        return number

    db._state.connection.raw.create_function("asked", asked, ["BIGINT"], "BIGINT")
    with pytest.raises(KeyboardInterrupt):
        db.sql("SELECT asked(1)")
    assert db.sql("SELECT 1").scalar() == 1


def test_other_errors_that_python_drops_are_told_as_before(
    db: graphdb.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: told.append(unraisable.exc_type))

    def fails() -> None:
        def broken() -> None:
            raise ValueError

        gone = Gone()
        reference = weakref.ref(gone, lambda _: broken())
        del gone
        assert reference() is None

    has(db, fails)
    assert db.query(STATEMENTS["at its end"]).scalar() == 1
    assert told == [ValueError]
    in_del()  # outside of statements it is nobody's
    assert told == [ValueError, KeyboardInterrupt]
    assert db.query("RETURN 1").scalar() == 1


def test_a_timeout_beside_it_is_ctrl_c(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def place() -> None:
        in_del()
        now = time.monotonic()
        monkeypatch.setattr(stopping, "time", SimpleNamespace(monotonic=lambda: now + 1000))

    has(db, place)
    with pytest.raises(KeyboardInterrupt):
        db.query(STATEMENTS["at its next check"], timeout=900)


def test_other_threads_go_on(db: graphdb.Database) -> None:
    """Ctrl-C is the main thread's."""
    found: list[object] = []
    with stopping.stopping(PATIENCE):
        in_del()
        thread = threading.Thread(target=lambda: found.append(stopping.check_stop()))
        thread.start()
        thread.join()
        assert found == [None]
        with pytest.raises(KeyboardInterrupt):
            stopping.check_stop()
        stopping.check_stop()
    with pytest.raises(QueryTimeout):
        db.query(STATEMENTS["at its next check"].replace("CALL my.place() YIELD x", "WITH 1 AS x"), timeout=0.1)

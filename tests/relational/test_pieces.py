"""Work in pieces on several threads."""

from __future__ import annotations

import threading

import pytest

from graphdb.relational.vectors.pieces import in_pieces


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_what_pieces_give_is_in_their_order(threads: int) -> None:
    assert in_pieces(lambda number: number**2, 50, threads, lambda: None) == [number**2 for number in range(50)]
    assert in_pieces(lambda number: number, 0, threads, lambda: None) == []


def test_two_threads_work() -> None:
    both = threading.Barrier(2, timeout=20)
    assert in_pieces(lambda number: (both.wait(), number)[1], 2, 2, lambda: None) == [0, 1]


@pytest.mark.parametrize("of_caller", [False, True])
def test_an_error_of_any_piece_is_raised(of_caller: bool) -> None:
    both, begun, caller = threading.Barrier(2, timeout=20), list[int](), threading.get_ident()

    def work(number: int) -> None:
        begun.append(number)
        both.wait()
        if (threading.get_ident() == caller) == of_caller:
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        in_pieces(work, 2, 2, lambda: None)
    assert sorted(begun) == [0, 1]


def test_what_a_check_raises_stops_all() -> None:
    def check() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        in_pieces(lambda number: number, 100, 2, check)
    assert not any(thread.name.startswith("graphdb-pieces") for thread in threading.enumerate())

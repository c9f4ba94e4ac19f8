"""Machine code of kernels does what Python does with the same source, and takes only what it declares."""

from __future__ import annotations

import copy
import importlib
import inspect
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graphdb.execute.counting.kernels import count_kernels
from graphdb.execute.search import group_kernels, set_kernels
from graphdb.incremental import frame
from graphdb.incremental.kernels import batch_kernels as change_kernels
from graphdb.plan.candidates import space_kernels
from graphdb.storage.arrays import batch_kernels, column_kernels
from graphdb.storage.compile import sources
from graphdb.storage.compile.entries import Entry, entries
from graphdb.storage.compile.signature import Signature
from graphdb.storage.graph import edge_kernels, pcsr_kernels
from graphdb.storage.graph.following.partitions import with_gaps
from graphdb.storage.graph.pcsr import build_partition
from graphdb.storage.loaders.ntriples import line_kernels
from graphdb.storage.loaders.terms import stored_kernels, unify_kernels
from tests.storage.compile.interpreted import interpreted

Arguments = tuple[Any, ...]


def _counts(rng: np.random.Generator) -> Iterator[tuple[Any, Arguments]]:
    """Calls of the kernels that count along edges."""
    vertices = int(rng.integers(4, 12))
    dtype = (np.int32, np.int64)[int(rng.integers(2))]
    pairs = np.unique(rng.integers(0, vertices, (20, 2)), axis=0)
    layer = str(rng.choice(["direct", "hashed", "spans"]))
    subjects, objects = pairs.T.copy()
    forced = None if layer == "spans" else layer
    partition = build_partition(3, subjects, objects, "out", vertices, dtype, forced)  # type: ignore[arg-type]
    partition = with_gaps(partition) if layer == "spans" else partition
    partitions = np.array([partition.row], np.int64)
    support, flags, like = partition.keys, np.zeros(2, np.int64), np.empty(0, dtype)
    values, out = rng.integers(0, 9, vertices), np.zeros(vertices, np.int64)
    bundle, members = np.array([[0, 1, 0, 0, 1]]), np.array([[0, 0]])
    modulus = int(rng.choice([0, 7]))
    keep = partition
    fixed = (support, 0, len(support))
    yield count_kernels.send, (bundle, members, partitions, *fixed, values, out, modulus, flags, like)
    narrow = values.astype(np.int32)
    yield count_kernels.send_narrow, (0, partitions, *fixed, narrow, out, flags, like)
    yield count_kernels.multiply, (support, values, values[::-1].copy(), modulus, flags)
    yield count_kernels.fall, (support, values, 3, modulus, flags)
    yield count_kernels.add_up, (support, values << 40, np.zeros(2, np.int64))
    yield count_kernels.add_products, (support, values << 50, values << 49, np.zeros(6, np.int64))
    yield count_kernels.loop_worth, (members, partitions, support, values, modulus, flags, like)
    yield count_kernels.reach, (0, partitions, support, np.zeros(vertices, bool), like)
    yield set_kernels.add_degrees, (partitions.ctypes.data, 0, np.arange(vertices), out)
    roots, entries_there = partition.keys, int(partition.lengths().sum())
    skipped = int(rng.integers(0, partition.lengths()[0]))
    pairs = np.zeros((2, int(rng.integers(1, entries_there - skipped + 1))), dtype)
    yield set_kernels.list_pairs, (partitions.ctypes.data, 0, roots, 0, skipped, pairs)
    assert keep is partition, "what addresses point to is there until all calls are made"


def _sorts(rng: np.random.Generator) -> Iterator[tuple[Any, Arguments]]:
    """Calls of kernels over arrays alone."""
    count = int(rng.integers(0, 200))
    keys = rng.integers(0, 1 << 12, count).astype(np.uint64)
    ends = np.array([0, count // 3, count])
    ids = rng.integers(-3, count + 6, 40).astype((np.int32, np.int64)[int(rng.integers(2))])
    valid = rng.random(count) < 0.7 if rng.random() < 0.5 else np.empty(0, bool)
    for gather, dtype in (
        (column_kernels.gather8, "i8"),
        (column_kernels.gather4, "i4"),
        (column_kernels.gather1, "u1"),
    ):
        data = rng.integers(0, 99, count).astype(dtype)
        yield gather, (data, valid, int(rng.integers(-2, 3)), ids, np.zeros(40, dtype), np.zeros(40, bool))
    rows_of = rng.integers(0, 9, count)
    yield column_kernels.pack, (rng.integers(-4, 4, count), -4, 8, rows_of)
    yield column_kernels.total, (rng.integers(-(1 << 62), 1 << 62, count),)
    yield column_kernels.rises_by_one, (np.arange(5, 5 + count) + (np.arange(count) == int(rng.integers(1, 300))),)
    pairs = np.unique(rng.integers(0, 20, (count, 2)), axis=0) if rng.random() < 0.7 else rng.integers(0, 2, (count, 2))
    yield column_kernels.pairs_ascend, (pairs[:, 0].copy(), pairs[:, 1].copy())
    bits = rng.integers(0, 1 << 62, 7)
    yield column_kernels.mark_bits, (rows_of, rng.integers(0, 9, count), bits, np.zeros(9, np.int64))
    yield column_kernels.tally, (rows_of - 4, -4, np.zeros(9, np.int64), np.full(9, -1))
    yield column_kernels.first_places, (rows_of, np.full(9, -1))
    there = rng.random(count) < 0.7 if rng.random() < 0.5 else np.empty(0, bool)
    yield column_kernels.add_reals, (rows_of, there, rng.random(count), np.zeros(9), np.zeros(9, np.int64))
    yield column_kernels.add_integers, (rows_of, there, rng.integers(-9, 9, count), np.zeros(9, np.int64))
    sizes = np.bincount(rows_of, minlength=9)
    marks = np.zeros(count, np.int64), np.full(7, -1, np.int32), np.zeros(9, np.int64)
    yield column_kernels.tally_distinct, (rows_of, rng.integers(0, 7, count), np.cumsum(sizes) - sizes, *marks)
    ranks = rng.integers(0, np.maximum(sizes, 1))
    some = np.zeros(count, np.int64), ranks, np.zeros(9, np.int64), np.zeros(9, np.int64)
    yield column_kernels.select_of_groups, (rows_of, rng.integers(0, 30, count), np.cumsum(sizes) - sizes, *some)
    yield (
        column_kernels.number_below,
        (rows_of, np.full(9, -1, np.int32), np.zeros(count, np.int64), np.zeros(9, np.int64)),
    )
    parts = rng.integers(0, 1 << 50, (4, count)) >> rng.integers(0, 50, (4, 1))
    yield edge_kernels.identify, (*parts, np.zeros(count, np.int64))
    yield batch_kernels.sort_each, (keys, ends, count)
    yield batch_kernels.targets, (keys << np.uint64(28), np.empty(count, np.uint32))
    yield batch_kernels.spread, (keys << np.uint64(28), np.empty(count, np.int64), np.empty(count, np.int64))
    triples = rng.integers(0, 5, (count, 3)).astype(np.uint32)
    yield batch_kernels.histogram, (triples, 0, np.full((16, 2), -1), 0)
    bound = 50
    numbers = rng.integers(0, bound, count)
    order = np.empty(count, np.int64)
    yield pcsr_kernels.counting_order, (numbers, np.zeros(bound + 1, np.int64), order)
    yield pcsr_kernels.home_groups, (numbers, bound, order)
    entries_of_terms = rng.integers(0, 1 << 62, (count, 2))
    ends_of_parts, scattered = np.zeros(5, np.int64), np.empty((count, 2), np.int64)
    yield stored_kernels.scatter, (entries_of_terms, ends_of_parts, scattered)
    codes = rng.integers(0, 64 * 3, count).astype(np.uint32)
    yield unify_kernels.rank, (codes, rng.integers(0, 1 << 62, 3), np.array([0, 20, 40]))
    first = np.sort(rng.integers(0, 9, count))
    second, number = rng.integers(0, 9, count), rng.integers(1, 4, count)
    scratch = (np.zeros(9, np.int64), np.zeros(9, np.uint8))
    yield group_kernels.group_runs, (first, second, number, 0, 0, *scratch, 1 << 20)
    starts, fits = np.array([0, count // 2]), rng.integers(0, 4, 64)
    chosen = rng.integers(0, 64, count)
    yield space_kernels.common_fits, (chosen, starts, np.array([count // 2, 0]), fits, np.zeros(2, np.int64))
    text = rng.integers(0, 256, 64).astype(np.uint8)
    secret = rng.integers(0, 1 << 62, 4)
    keep = text, secret
    yield line_kernels.fingerprint, (text.ctypes.data, int(rng.integers(0, 40)), 3, 5, secret.ctypes.data)
    assert keep


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("family", [_counts, _sorts])
def test_machine_code_does_what_python_does(
    family: Callable[[np.random.Generator], Iterator[tuple[Any, Arguments]]], seed: int
) -> None:
    calls = 0
    with np.errstate(over="ignore"):
        for kernel, arguments in family(np.random.default_rng(seed)):
            ours, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
            found, expected = kernel(*ours), interpreted(kernel)(*theirs)
            assert found == expected, kernel.symbol
            for mine, right in zip(ours, theirs, strict=True):
                assert np.array_equal(mine, right), kernel.symbol
            calls += 1
    assert calls > 8


@pytest.mark.parametrize("seed", range(4))
def test_python_runs_loops_over_bits_to_their_end(seed: int) -> None:
    """Of words with any bits, the highest among them: which lists of relations an edge changes."""
    rng, words = np.random.default_rng(seed), 2
    ways, ends = (rng.integers(-(1 << 63), 1 << 63, (count, words)) | -(1 << 63) for count in (2, 4))
    written, ranges = np.zeros((256, frame.CHANGE_CELLS), np.int64), np.zeros((128, frame.RANGE_CELLS), np.int64)
    ranges[:, 1] = 2  # vertices 0 and 1 have a row
    graph = np.zeros(frame.GRAPH_CELLS, np.int64)
    arrays = {
        frame.ENDS: ends,
        frame.FORWARDS: ways[:1],
        frame.BACKWARDS: ways[1:],
        frame.WAITING: written,
        frame.RANGES: ranges,
    }
    graph[[*arrays]] = [array.ctypes.data for array in arrays.values()]
    graph[frame.WORDS] = words
    with np.errstate(over="ignore"):
        count = interpreted(change_kernels.write_changes)(graph.ctypes.data, 0, 0, 1, 5, 0)
    forwards, backwards, out0, into0, out1, into1 = np.unpackbits(
        np.concatenate([ways, ends]).view(np.uint8), axis=1, bitorder="little"
    ).astype(bool)
    expected = [[int(i), 0, 1, 0, 5] for i in np.flatnonzero(forwards & out0 & into1)]
    expected += [[int(i), 1, 0, 1, 5] for i in np.flatnonzero(backwards & out1 & into0)]
    assert sorted(written[:count].tolist()) == sorted(expected)
    assert [63, 0, 1, 0, 5] in expected


def _all_entries() -> list[Entry]:
    for module in sources.kernel_modules():
        importlib.import_module(module)
    return [entry for entry in entries.values() if entry.function.__module__.startswith("graphdb.")]


def test_declared_types_are_the_annotated_ones() -> None:
    numbers = {"int": "i8", "float": "f8", "bool": "b1"}
    results = {"None": (), "int": ("i8",), "bool": ("b1",), "tuple[int, int]": ("i8", "i8")}
    found = _all_entries()
    assert len(found) > 60
    for entry in found:
        signature = inspect.signature(entry.function)
        for declared, parameter in zip(entry.signature.parameters, signature.parameters.values(), strict=True):
            if parameter.annotation in numbers:
                assert str(declared) == numbers[parameter.annotation], f"{entry.symbol}, {parameter.name}"
            elif parameter.annotation == "Any":
                assert str(declared) == "T", f"{entry.symbol}, {parameter.name}"
            else:
                assert declared.dimensions, f"{entry.symbol}, {parameter.name}"
        if signature.return_annotation in results:
            assert entry.signature.results == results[signature.return_annotation], entry.symbol


def test_signatures_are_read_and_written() -> None:
    text = "i8[:, :], T[:], T, b1, f8 -> i8, i8"
    signature = Signature.parse(text)
    assert str(signature) == text
    assert [parameter.dimensions for parameter in signature.parameters] == [2, 1, 0, 0, 0]
    assert signature.variants == ("i4", "i8")
    assert Signature.parse("i8, u1[:]").variants == ("",)
    for wrong in ("i5", "i8[:", "u1", "i8[::1]", "", "i8 -> f8", "i8 -> i8, b1", "i8[1]"):
        with pytest.raises(ValueError, match=r"is no type|results are"):
            Signature.parse(wrong)


def test_variants_follow_the_arguments() -> None:
    signature = Signature.parse("i8, T[:], T")
    for dtype, variant in ((np.int32, "i4"), (np.int64, "i8")):
        assert signature.variant_of((1, np.zeros(2, dtype), np.empty(0, dtype))) == variant
    mixed = (1, np.zeros(2, np.int32), np.empty(0, np.int64))
    for wrong in (mixed, mixed[:2], (1.5, *mixed[1:]), (1, [1], np.empty(0, np.int32))):
        assert signature.variant_of(wrong) is None


KEYS = np.array([5, 1 << 40 | 7, 1 << 40 | 7, 3 << 32], np.uint64)
WRONG: dict[str, tuple[Any, ...]] = {
    "other items": (KEYS.astype(np.int64), np.empty(4, np.uint32)),
    "other bytes": (KEYS.astype(">u8"), np.empty(4, np.uint32)),
    "another step": (np.repeat(KEYS, 2)[::2], np.empty(4, np.uint32)),
    "two dimensions": (KEYS.reshape(2, 2), np.empty(4, np.uint32)),
    "not aligned": (np.frombuffer(b"\0" * 33, np.uint8)[1:].view(np.uint64), np.empty(4, np.uint32)),
    "no array": ([1, 2], np.empty(2, np.uint32)),
    "nothing": (None, np.empty(2, np.uint32)),
    "too few": (KEYS,),
    "too many": (KEYS, np.empty(4, np.uint32), 3),
    "a number": (KEYS, 3),
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG)
def test_arguments_of_other_types_are_refused_before_anything_is_done(arguments: tuple[Any, ...]) -> None:
    batch_kernels.targets(KEYS, np.empty(4, np.uint32))
    with pytest.raises(TypeError, match=r"targets takes u8\[:\], u4\[:\]; it was given"):
        batch_kernels.targets(*arguments)


def test_arguments_that_stand_for_declared_ones_are_taken(tmp_path: Path) -> None:
    objects = np.empty(4, np.uint32)
    mapped: NDArray[np.uint64] = np.memmap(tmp_path / "keys", np.uint64, "w+", shape=4)
    mapped[:] = KEYS
    batch_kernels.targets(mapped, objects)  # an array of a subclass
    assert objects.tolist() == [5, 7, 7, 0]
    frozen = KEYS.copy()
    frozen.flags.writeable = False
    batch_kernels.targets(frozen, objects)
    triples, labels = np.array([[0, 3, 0]], np.uint32), np.full((8, 2), -1)
    assert batch_kernels.histogram(triples, np.int32(0), labels, np.uint8(0)) == (1, 1)  # NumPy's numbers
    with pytest.raises(TypeError, match="histogram takes"):
        batch_kernels.histogram(triples, 0.0, labels, 0)  # type: ignore[arg-type]


def test_kernels_that_are_no_entries_are_not_called() -> None:
    with pytest.raises(TypeError, match="called by other kernels only"):
        pcsr_kernels.find(0, 0, 0, 0, 0)


def test_an_inlined_kernel_is_never_called() -> None:
    """Two variants of an entry have its code each; a kernel that is called once is inlined anyway."""
    emit = pytest.importorskip("graphdb.storage.compile.emit")
    code = emit.object_code(
        emit.lower([(entries["execute_counting_kernels_count_kernels__send_narrow"], "")]), "x86-64"
    )
    assert b"send_narrow" in code
    assert b"neighbours_at_once" not in code


def test_many_threads_call_the_same_code() -> None:
    """Results are written to cells of each call."""
    from concurrent.futures import ThreadPoolExecutor

    def count(seed: int) -> bool:
        numbers = np.array([[0, random.Random(seed).randrange(9), 0]] * (seed + 1), np.uint32)
        return batch_kernels.histogram(numbers, 0, np.full((64, 2), -1), 0) == (seed + 1, 1)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(count, range(200)))


def test_what_was_compiled_before_needs_no_numba(tmp_path: Path) -> None:
    program = (
        "import sys, graphdb\n"
        "with graphdb.connect() as db:\n"
        "    print(db.load(sys.argv[1]).new_triples, end=' ')\n"
        "    print(db.query('MATCH (a)-[:p]->(b)-[:p]->(c) RETURN count(*)').scalar(), 'numba' in sys.modules)\n"
    )
    file = tmp_path / "test.nt"
    file.write_text('<ex:a> <ex:p> "b" .\n<ex:a> <ex:p> <ex:c> .\n<ex:c> <ex:p> <ex:d> .\n')

    def printed() -> list[str]:
        run = subprocess.run([sys.executable, "-c", program, file], capture_output=True, text=True, check=True)
        return run.stdout.split()

    printed()  # compiles where that was never done
    assert printed() == ["3", "1", "False"]

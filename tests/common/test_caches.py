"""What texts were made into takes memory in proportion to their characters, so these are bounded."""

from __future__ import annotations

import gc
import random

import pytest

import graphdb
from graphdb.common.caches import Latest, TextCache
from graphdb.grammar import parser


def test_against_a_model() -> None:
    """What was put last, or asked for since the last generation began, is there; two generations bound the rest."""
    dice = random.Random(16)
    for most, characters in ((3, 1000), (1000, 30), (1, 1), (5, 20)):
        cache: TextCache[str] = TextCache(most, characters)
        for _ in range(500):
            text = dice.choice("abcdefgh") * dice.choice([1, 2, 5, 40])
            found = cache.get(text)
            assert found in (None, text.upper())
            if found is None:
                cache.put(text, text.upper())
            assert cache.get(text) == text.upper()
            for generation in cache._generations:
                assert len(generation) <= most
                assert len(generation) == 1 or sum(map(len, generation)) <= characters
            assert cache._size == sum(map(len, cache._generations[0]))


def test_what_was_set_longest_ago_goes_first() -> None:
    latest: Latest[str, int] = Latest(3)
    latest.update(zip("abc", range(3), strict=True))
    latest["a"] = 3
    latest.update(dict.fromkeys("de", 4))
    assert dict(latest) == {"a": 3, "d": 4, "e": 4}


def test_long_texts_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees of five hundred long texts took gigabytes, and each garbage collection seconds."""
    monkeypatch.setattr(parser, "_SCRIPTS", TextCache(most=512, characters=1 << 17))
    with graphdb.connect(memory_limit=1 << 28, device="cpu", threads=1) as db:
        db.query("CREATE (:P {k: 1})")

        def objects(i: int) -> int:
            columns = ", ".join(f"a.k + {i + j} AS c{j}" for j in range(2000))
            db.query(f"MATCH (a:P) RETURN {columns}")
            gc.collect()
            return len(gc.get_objects())

        first = [objects(i) for i in range(8)]
        assert max(objects(i) for i in range(8, 16)) < 1.1 * max(first)

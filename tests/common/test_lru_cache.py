"""The LRU cache: bounded by number and by bytes, the least recently used entry is evicted first."""

from __future__ import annotations

import pytest

import graphdb
from graphdb.common.lru_cache import MAX_ENTRIES, LRUCache


def test_the_one_used_longest_ago_makes_room() -> None:
    kept: LRUCache[int] = LRUCache(1 << 30)
    for number in range(MAX_ENTRIES):
        kept.put(number, number, 1)
    assert kept.get(0) == 0
    kept.put("more", -1, 1)
    assert (kept.get(0), kept.get(1), kept.get(2), kept.get("more")) == (0, None, 2, -1)
    assert len(kept) == MAX_ENTRIES


def test_bytes_are_bounded_but_for_the_last() -> None:
    kept: LRUCache[str] = LRUCache(100)
    for key, size in (("a", 40), ("b", 40), ("a", 50), ("c", 30)):
        kept.put(key, key, size)
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == ("a", None, "c")
    kept.put("d", "d", 1000)
    assert (len(kept), kept.get("d")) == (1, "d")
    kept.put("e", "e", 100)
    assert (kept.get("d"), kept.get("e")) == (None, "e")
    kept.clear()
    kept.put("f", "f", 100)
    kept.put("g", "g", 0)
    assert (len(kept), kept.get("f")) == (2, "f")


def test_what_cannot_be_a_key_is_refused() -> None:
    with pytest.raises(TypeError):
        LRUCache(1).get(([],))


def test_more_queries_than_the_cache_holds_give_the_same_answers() -> None:
    with graphdb.connect() as database:
        database.query("CREATE (:A {n: 1})-[:r]->(:A {n: 2})-[:r]->(:A {n: 3})")
        texts = [f"MATCH (a:A) WHERE a.n > {i % 4} RETURN count(*) AS c{i}" for i in range(MAX_ENTRIES + 20)]
        for _ in range(2):
            assert [database.query(text).scalar() for text in texts] == [
                max(3 - i % 4, 0) for i in range(MAX_ENTRIES + 20)
            ]
        assert [database.query(text).columns for text in texts[:2]] == [("c0",), ("c1",)]

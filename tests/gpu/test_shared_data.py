"""The shared data sets on a device: every query's rows are the host's, and as many as stated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

import graphdb
from graphdb.dispatch import queries as dispatched
from graphdb.execute.host import HostExecutor
from graphdb.plan.passes import pipeline
from tests.datasets import pattern_query, queries, shared
from tests.gpu.executors import SMALL, device_executor
from tests.gpu.mirror import MirrorExecutor
from tests.suites.test_datasets import ENUMERATED, FILES

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", params=SMALL)
def mirror(request: pytest.FixtureRequest) -> MirrorExecutor:
    return MirrorExecutor(device_executor(request.param, {}), HostExecutor())


@pytest.fixture(scope="module", params=FILES)
def loaded(request: pytest.FixtureRequest, mirror: Any) -> Iterator[tuple[str, graphdb.Database]]:
    path = shared("data", request.param, FILES[request.param])
    with mock.patch.object(dispatched, "choose_executor", return_value=mirror), graphdb.connect() as database:
        database.load(path)
        yield request.param, database


def asked(name: str, mirror: Any) -> list[dict[str, Any]]:
    """The queries of a data set: of many, the search, which compiles each of them, gets some."""
    known = queries(name)
    return known[:: max(len(known) // 12, 1)] if mirror.first.hint == "search" else known


def test_every_query_gives_the_stated_count(loaded: tuple[str, graphdb.Database], mirror: Any) -> None:
    """The matches are gone through: a plan that counts in another way is a test of its own."""
    name, database = loaded
    never = mock.patch.object(pipeline, "counting_plan", return_value=None)
    for query in asked(name, mirror):
        with never:
            assert database.query(pattern_query(query)).scalar() == query["count"], query["name"]


def test_every_row_is_the_hosts(loaded: tuple[str, graphdb.Database], mirror: Any) -> None:
    name, database = loaded
    for query in asked(name, mirror):
        if "patterns" in query and query["count"] <= ENUMERATED:
            terms = {term[1:] for pattern in query["patterns"] for term in pattern if term[0] == "?"}
            assert len(database.query(pattern_query(query, ", ".join(sorted(terms))))) == query["count"], query["name"]

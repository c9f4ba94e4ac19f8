"""What the tests of clusters share: worker processes of one thread each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of as many processes as a module names: its ``WORKERS``."""
    distributed = pytest.importorskip("distributed")
    settings = {
        "distributed.comm.timeouts.connect": "20s",
        "distributed.worker.daemon": True,
        "distributed.worker.multiprocessing-method": "forkserver",  # Dask is imported once for all of them
    }
    with (
        __import__("dask").config.set(settings),
        distributed.LocalCluster(
            n_workers=request.module.WORKERS,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            local_directory=str(tmp_path_factory.mktemp("workers")),
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as found,
    ):
        yield found

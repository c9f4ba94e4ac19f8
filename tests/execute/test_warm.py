"""After one warm-up every family of kernels is compiled, so that no later query waits."""

from __future__ import annotations

from graphdb.common.kernel_cache import compiled
from graphdb.execute import warm


def test_all_families_are_compiled() -> None:
    warm.warm_up()
    assert compiled(warm._KERNELS)
    assert not compiled(["search_kernels.nothing_of_that_name"])

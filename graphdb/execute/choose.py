"""Which executor runs a plan on a device: the one place that will import ``graphdb.gpu``, lazily."""

from __future__ import annotations

from graphdb.errors import GraphDBError
from graphdb.execute.executor import Executor
from graphdb.execute.host import HostExecutor


def choose_executor(device: str = "auto", *, threads: int | None = None, memory_limit: int | None = None) -> Executor:
    """Return the executor for ``device``: ``"auto"`` or ``"cpu"``.

    Raises
    ------
    GraphDBError
        For a CUDA device, which this version cannot use yet, and for a name that means no device.
    """
    if device in ("auto", "cpu"):
        return HostExecutor(threads, memory_limit=memory_limit)
    if device == "cuda" or device.startswith("cuda:"):
        raise GraphDBError(f"this version has no executor for device {device!r}", hint='use device="cpu" or "auto"')
    raise GraphDBError(f"there is no device {device!r}", hint='devices are "auto" and "cpu"')

"""Which CUDA devices a database uses: how they are named, whether they are there, and how much memory of each.

Nothing of CUDA's is imported here: the driver is asked (:mod:`graphdb.gpu.probe`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

from graphdb.common.arguments import brief
from graphdb.common.errors import DeviceError, GraphDBError
from graphdb.gpu.probe import probe

Hint = Literal["auto", "join", "search", "sums"]

_NAME = re.compile(r"cuda(?::(\d+(?: *, *\d+)*))?(?: by (join|search|sums))?")
_NAMES = "'auto', 'cpu', 'cuda', 'cuda:0', 'cuda:0,1', or 'cuda:0 by join', 'by search' or 'by sums'"


@dataclass(frozen=True, slots=True)
class Devices:
    """What a device's name means.

    Attributes
    ----------
    numbers
        Which devices, in the order of their names; None for all there are.
    hint
        The strategy that is pinned on them.
    """

    numbers: tuple[int, ...] | None
    hint: Hint = "auto"

    def found(self) -> tuple[int, ...]:
        """The numbers of devices that are there and can be used, one at least.

        Raises
        ------
        DeviceError
            One of them is not there, or none can be used.
        """
        report = probe()
        wanted = self.numbers or (0,)
        if not report.usable:
            names = f"'cuda:{','.join(map(str, wanted))}'"
            raise DeviceError(f"device {names} cannot be used: {report.advice}", hint="use device='cpu' or 'auto'")
        there = tuple(device.number for device in report.devices)
        for number in wanted:
            if number not in there:
                known = ", ".join(f"'cuda:{one}'" for one in there)
                raise DeviceError(f"there is no device 'cuda:{number}'", hint=f"there is {known}")
        return there if self.numbers is None else wanted


def devices_named(name: str) -> Devices | None:
    """The CUDA devices that a name means; None for ``"auto"`` and ``"cpu"``.

    Raises
    ------
    GraphDBError
        For a name that means no device, or one device twice.

    Examples
    --------
    >>> devices_named("cuda:0,1 by join")
    Devices(numbers=(0, 1), hint='join')
    >>> devices_named("cuda").numbers, devices_named("cpu")
    (None, None)
    """
    if not isinstance(name, str):
        raise GraphDBError(f"device must be text, found {brief(name)}", hint=f"use {_NAMES}")
    if name in ("auto", "cpu"):
        return None
    match = _NAME.fullmatch(name)
    if match is None:
        raise GraphDBError(f"unknown device {name!r}", hint=f"use {_NAMES}")
    numbers = None if match[1] is None else tuple(int(number) for number in match[1].split(","))
    if numbers is not None and len(set(numbers)) < len(numbers):
        raise GraphDBError(f"device {name!r} names one device twice", hint="name each once, as in 'cuda:0,1'")
    return Devices(numbers, cast(Hint, match[2] or "auto"))


def best_device() -> int:
    """The number of the device that ``"auto"`` uses: the fastest memory, of those that no display waits for."""
    devices = probe().devices
    best = max(devices, key=lambda one: (not one.watched, one.bandwidth, one.memory, -one.number), default=None)
    return 0 if best is None else best.number


def check_devices(name: str) -> None:
    """Raise what opening these devices would, for a name that means none, or devices that cannot be used."""
    named = devices_named(name)
    if named is not None:
        named.found()

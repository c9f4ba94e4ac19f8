"""What the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

from graphdb.plan.strategy.ski_rental import Bias
from tests import emulator
from tests.execute.machines import USABLE, machine


@pytest.fixture
def device() -> Iterator[None]:
    """A machine whose one device is emulated; nothing is learned of estimates, since plans' costs are made up here."""
    with emulator.installed(), machine(USABLE), mock.patch.object(Bias, "note"):
        yield

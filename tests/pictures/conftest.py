"""A browser for the tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser import CHROMIUM, Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    found = Browser(tmp_path_factory.mktemp("chromium"))
    yield found
    found.close()

"""How a run of the tests themselves ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DIES = """
import os, signal

def test_first(): pass

def test_dies(): os.kill(os.getpid(), signal.SIGKILL)

def test_last(): pass
"""
PASSES = """
import time

def test_one(): time.sleep(0.1)

def test_two(): time.sleep(0.1)
"""


def test_a_process_that_dies_ends_the_run(tmp_path: Path) -> None:
    """The test that it was at is named, and nobody waits for ever."""
    pytest.importorskip("xdist")
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_configure")
    for number in range(5):
        (tmp_path / f"test_{number}.py").write_text(DIES if number == 2 else PASSES)
    options = ["-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    command = [sys.executable, "-m", "pytest", *options, "-c", str(tmp_path / "none.ini"), str(tmp_path)]
    (tmp_path / "none.ini").write_text("[pytest]")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "crashed while running 'test_2.py::test_dies'" in ran.stdout

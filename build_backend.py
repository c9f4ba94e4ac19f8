"""The build backend: setuptools, which needs a compiler and a linker when it builds a wheel, and then only.

An editable install and a source distribution hold no machine code.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403

COMPILERS = {
    "cpu": ["numba>=0.62", "numpy>=2.0"],
    "device": ["nvidia-cuda-nvrtc>=13"],
}
"""What compiles the kernels of each (setup.py); whoever installs the wheel needs none of it."""

LINKER = "ziglang>=0.13"
"""What links them: for wheels that go to other machines, and where the system has no ``ld``: 411 MB to unpack."""


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Return what the build of a wheel needs, besides setuptools."""
    wanted = os.environ.get("GRAPHDB_BUILD_KERNELS") if sys.platform == "linux" else "0"
    kinds = () if wanted == "0" else tuple(COMPILERS) if wanted == "all" else ("cpu",)
    found = [requirement for kind in kinds for requirement in COMPILERS[kind]]
    if wanted == "all" or (kinds and shutil.which("ld") is None):
        found.append(LINKER)
    return [*build_meta.get_requires_for_build_wheel(config_settings), *found]

"""The build backend: setuptools, which needs a compiler and a linker when it builds a wheel, and then only.

An editable install and a source distribution hold no machine code.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403

COMPILER = ["numba>=0.62", "numpy>=2.0", "ziglang>=0.13"]
"""What compiles and links the kernels (setup.py); whoever installs the wheel needs none of it."""


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Return what the build of a wheel needs, besides setuptools."""
    wanted = sys.platform == "linux" and os.environ.get("GRAPHDB_BUILD_KERNELS") != "0"
    return [*build_meta.get_requires_for_build_wheel(config_settings), *(COMPILER if wanted else [])]

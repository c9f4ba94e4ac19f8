"""Builds the wheel: what setuptools does by itself, and machine code of kernels, compiled ahead of time.

The package is what pyproject.toml says.  Kernels are compiled by modules of their own, from the modules that were just
copied, with the needs that ``build_backend.py`` names: the CPU's by graphdb/storage/compile/build.py, and with
``GRAPHDB_BUILD_KERNELS=all`` those of CUDA devices by graphdb/gpu/build.py (docs/kernels.md).  ``0`` leaves out both:
the wheel is then for any machine, and kernels are compiled at run time.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

MACHINE = platform.machine()
WANTED = os.environ.get("GRAPHDB_BUILD_KERNELS")
COMPILED = sys.platform == "linux" and MACHINE in ("x86_64", "aarch64") and WANTED != "0"
STEPS = [
    ("graphdb.storage.compile.build", "storage/compile", *(() if WANTED == "all" else ("--here",))),
    ("graphdb.gpu.build", "gpu/binaries", "--declared-in", "graphdb.incremental.device.layout"),
]
"""What compiles kernels: a module, where in the package it puts the code, and what else it is called with.

The second takes as long as the first, and only wheels that go to other machines need it: a device that finds no code
has its own compiled, once for a user.
"""


class BuildModules(build_py):
    """Copies the modules, and compiles the kernels beside them."""

    def run(self) -> None:
        """Copy, then compile."""
        super().run()
        if COMPILED and not self.editable_mode:  # there kernels change: they are compiled when needed
            root = Path(self.build_lib).resolve()
            paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
            for module, target, *options in STEPS if WANTED == "all" else STEPS[:1]:
                command = [sys.executable, "-m", module, str(root / "graphdb" / target), *options]
                subprocess.run(command, env=environment, cwd=root, check=True)


class BuildWheel(bdist_wheel):
    """Names the machine in the wheel's tag; the code asks nothing of Python, and of the system its C library."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return what the wheel needs: of Python, of its interface, of the system."""
        return ("py3", "none", f"manylinux_2_17_{MACHINE}" if COMPILED else "any")


class Package(Distribution):
    """A package with machine code in it, though none that setuptools compiles."""

    def has_ext_modules(self) -> bool:
        """Tell setuptools that the wheel is for one kind of machine."""
        return COMPILED


setup(distclass=Package, cmdclass={"build_py": BuildModules, "bdist_wheel": BuildWheel})

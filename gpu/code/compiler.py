"""NVRTC, the CUDA compiler: C++ to machine code (cubin) or PTX, on machines with a device and without.

The one definition of how device code is compiled: the build of a wheel (:mod:`graphdb.gpu.build`), an open device
(:mod:`graphdb.gpu.code.machine_code`) and the tests call it.  A compilation can be cancelled from another thread.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from graphdb.common.errors import DeviceError

OPTIONS = ("-std=c++17",)
"""Of every compilation."""
MINIMAL = "-minimal"
"""Leaves out declarations of textures and of CUDA's run-time library, of which kernels use none: a quarter of the
time."""

_NEWEST, _OTHERS = "libnvrtc.so.13", ("libnvrtc.so.12", "libnvrtc.so")
_MINIMAL_SINCE, _FLOW_SINCE = (12, 4), (12, 8)
"""Versions of NVRTC that know the option, and that can be cancelled."""
_CANCELLED = 16
"""``NVRTC_ERROR_CANCELLED``."""


class Cancelled(Exception):
    """A compilation ended since nobody wants its result any more."""


class Cancel:
    """Ends a compilation: the compiler asks it many times, in its own thread and without the GIL.

    The question is libc's ``atoi`` of a text in memory, for which no lock of Python's is needed: the compiler would
    else wait for the interpreter some thousand times.
    """

    def __init__(self) -> None:
        self._text = ctypes.create_string_buffer(b"0")

    def set(self) -> None:
        """Have the compilation end soon."""
        self._text.value = b"1"

    def is_set(self) -> bool:
        """Whether it is to end."""
        return self._text.value == b"1"

    @property
    def address(self) -> int:
        """Where the text lies."""
        return ctypes.addressof(self._text)


class Compiler:
    """One NVRTC library.

    Parameters
    ----------
    library
        Its name or path.

    Raises
    ------
    OSError
        Where it is not there.
    """

    def __init__(self, library: str) -> None:
        self.library = library
        self._nvrtc = ctypes.CDLL(library)
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self.version = (major.value, minor.value)
        count = ctypes.c_int()
        self._call("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        known = (ctypes.c_int * count.value)()
        self._call("nvrtcGetSupportedArchs", known)
        self.architectures = tuple(sorted(known))
        """Those that it compiles for, as numbers: 90 for compute capability 9.0."""

    @property
    def identity(self) -> str:
        """What machine code depends on, besides text, options and target."""
        return f"nvrtc {self.version[0]}.{self.version[1]}"

    def target(self, capability: int) -> str:
        """What to compile for a device: ``sm_90``, or of one that came after the compiler, the nearest that it runs.

        Machine code runs on later devices of the same major version, PTX on all later ones.
        """
        best = max((known for known in self.architectures if known <= capability), default=self.architectures[0])
        return f"sm_{best}" if best // 10 == capability // 10 else f"compute_{best}"

    def compile(self, text: str, options: tuple[str, ...], target: str, cancel: Cancel | None = None) -> bytes:
        """Compile C++ for a target: machine code for ``sm_90``, PTX for ``compute_90``.

        Raises
        ------
        DeviceError
            With the compiler's own words.
        Cancelled
            After ``cancel`` was set.
        """
        program = ctypes.c_void_p()
        self._call("nvrtcCreateProgram", ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
        try:
            if cancel is not None and self.version >= _FLOW_SINCE:
                self._call("nvrtcSetFlowCallback", program, _atoi(), ctypes.c_void_p(cancel.address))
            minimal = (MINIMAL,) if self.version >= _MINIMAL_SINCE else ()
            flags = [flag.encode() for flag in (*OPTIONS, *minimal, *options, f"--gpu-architecture={target}")]
            status = self._nvrtc.nvrtcCompileProgram(program, len(flags), (ctypes.c_char_p * len(flags))(*flags))
            if status == _CANCELLED or (cancel is not None and cancel.is_set()):
                raise Cancelled
            if status:
                log = self._output("ProgramLog", program).rstrip(b"\0").decode(errors="replace")
                raise DeviceError(f"a kernel does not compile: {log.strip() or status}")
            return self._output("CUBIN" if target.startswith("sm_") else "PTX", program)
        finally:
            self._nvrtc.nvrtcDestroyProgram(ctypes.byref(program))

    def _output(self, what: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        content = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{what}", program, content)
        return content.raw

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._nvrtc, function)(*arguments)
        if status:
            raise DeviceError(f"the CUDA compiler failed: {function} returned {status}")


@cache
def _atoi() -> ctypes.c_void_p:
    return ctypes.cast(ctypes.CDLL(None).atoi, ctypes.c_void_p)


def find(open_library: Callable[[str], Any] = ctypes.CDLL) -> str | None:
    """The name or path of the newest compiler: on the library path, or in a wheel of NVIDIA's; None without any."""
    for name in (_NEWEST, *_in_wheels(), *_OTHERS):
        try:
            open_library(name)
            return name
        except OSError:
            continue
    return None


def _in_wheels() -> list[str]:
    """The paths of the libraries that packages of NVIDIA's brought, the newest first."""
    try:
        nvidia = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return []
    folders = (nvidia.submodule_search_locations if nvidia else None) or ()
    found = [path for folder in folders for path in Path(folder).glob("*/lib/libnvrtc.so.*")]
    return [str(path) for path in sorted(found, key=lambda path: path.name, reverse=True)]


def of_cupy() -> Compiler:
    """The compiler that the installed CuPy has found: of its CUDA version, which the driver takes.

    Raises
    ------
    DeviceError
        Where there is none.
    """
    import cupy

    try:
        major = cupy.cuda.nvrtc.getVersion()[0]  # loads the library, which then has this name in the process
        return Compiler(f"libnvrtc.so.{major}")
    except (OSError, RuntimeError, ImportError):
        found = find()
        if found is None:
            raise DeviceError("there is no CUDA compiler (NVRTC)", hint="see: graphdb doctor") from None
        return Compiler(found)

"""The device code that a wheel carries: one archive per target, with a member for each module that no query changes.

A member is named by a digest of what it was compiled from, so that an archive beside changed kernels holds nothing for
them.  Archives are written by :mod:`graphdb.gpu.build` and read when a device is open.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from graphdb.gpu.code.compiler import OPTIONS

HOME = Path(__file__).resolve().parents[1] / "binaries"
"""Where archives lie: ``sm_90.zip``."""

MACHINE_CODE = {"x86_64": (75, 80, 90, 100, 120), "aarch64": (75, 80, 90, 100, 110, 120)}
"""The architectures whose machine code is in the wheel for a machine: the first of each major version that its devices
have, whose code runs on all later ones of that version."""
PTX = 120
"""The architecture whose PTX is, which the driver compiles for devices that are to come."""

_WRITTEN = (1980, 1, 1, 0, 0, 0)
"""The date of every member: the same code makes the same archive."""


def targets(machine: str) -> tuple[str, ...]:
    """What archives are made for, each, in the wheel for a machine."""
    known = MACHINE_CODE.get(machine, ())
    return (*(f"sm_{architecture}" for architecture in known), f"compute_{PTX}") if known else ()


def digest(text: str, options: tuple[str, ...]) -> str:
    """A name for what is compiled: of the text, and of all options but the target."""
    parts = (*OPTIONS, *options, text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


class Archive:
    """One archive, open to be read.

    Raises
    ------
    OSError, ValueError
        Where there is none, or it is damaged.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = zipfile.ZipFile(path)
            major, minor = self._file.comment.decode().split(".")
        except zipfile.BadZipFile as error:
            raise ValueError(f"{path} is damaged") from error
        self.target = path.stem
        self.version = (int(major), int(minor))
        """The compiler's: a driver takes code of its own major version, and of those before."""
        self._names = {Path(name).suffix.removeprefix("."): name for name in self._file.namelist()}

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, wanted: str) -> bool:
        return wanted in self._names

    def read(self, wanted: str) -> bytes | None:
        """The code of a module, by its digest; None where it is not there, or damaged."""
        name = self._names.get(wanted)
        try:
            return None if name is None else self._file.read(name)
        except (zipfile.BadZipFile, zlib.error, EOFError):
            return None


def write(path: Path, version: tuple[int, int], members: Mapping[tuple[str, str], bytes]) -> None:
    """Write an archive: code by the name and the digest of its module."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        file.comment = "{}.{}".format(*version).encode()
        for (name, wanted), code in members.items():
            file.writestr(zipfile.ZipInfo(f"{name}.{wanted}", _WRITTEN), code, zipfile.ZIP_DEFLATED, 9)


def fitting(capability: int, home: Path = HOME) -> Path | None:
    """The archive for a device, by its compute capability as a number (90 for 9.0); None where none fits."""
    best: tuple[int, Path] | None = None
    for path in home.glob("*_*.zip"):
        kind, _, number = path.stem.partition("_")
        if not number.isdigit() or int(number) > capability:
            continue
        same = int(number) // 10 == capability // 10
        rank = int(number) + 1000 * same if kind == "sm" else int(number)
        if (kind == "compute" or same) and (best is None or rank > best[0]):
            best = rank, path
    return None if best is None else best[1]

"""Look at a wheel with machine code: its size, its tag, that its libraries need nothing but the C library, and that it
has code for CUDA devices.

Run as ``python check_wheel.py graphdb-….whl``.
"""

from __future__ import annotations

import io
import struct
import sys
import zipfile
from pathlib import Path

LARGEST = 15_000_000
"""Bytes of a wheel."""
SYSTEM = {"libc.so.6", "libm.so.6"}
"""What a library may need."""
NEEDED, STRING_TABLE, DYNAMIC, LOAD = 1, 5, 2, 1


def needed(library: bytes) -> set[str]:
    """Return the names of the libraries that a 64-bit ELF library asks for."""
    assert library[:6] == b"\x7fELF\x02\x01", "no little-endian 64-bit library"
    start, size, count = struct.unpack_from("<Q", library, 32)[0], *struct.unpack_from("<HH", library, 54)
    segments = [struct.unpack_from("<IIQQQQQQ", library, start + i * size) for i in range(count)]
    dynamic = next(segment for segment in segments if segment[0] == DYNAMIC)
    entries = [struct.unpack_from("<qQ", library, dynamic[2] + at) for at in range(0, dynamic[5], 16)]
    address = next(value for tag, value in entries if tag == STRING_TABLE)
    strings = next(s[2] + address - s[3] for s in segments if s[0] == LOAD and s[3] <= address < s[3] + s[5])
    names = [strings + value for tag, value in entries if tag == NEEDED]
    return {library[at : library.index(b"\0", at)].decode() for at in names}


ARCHIVES = {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120", "compute_120"}
"""What there is device code for, at least."""
MODULES = {
    "clique",
    "clique_books",
    "count_ranges",
    "count_weights",
    "delta_lists",
    "delta_search",
    "distinct",
    "filter",
    "join",
    "refine",
}
"""What has device code, at least."""


def check_device_code(name: str, content: bytes) -> int:
    """Look into an archive of device code; returns how many modules it holds."""
    start = b"\x7fELF" if "/sm_" in name else b"//"  # NVRTC begins PTX with a comment
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        held = {member: archive.read(member) for member in archive.namelist()}
    assert {member.partition(".")[0] for member in held} >= MODULES, f"{name} lacks modules: {sorted(held)}"
    for member, code in held.items():
        assert code.startswith(start), f"{member} of {name}"
    return len(held)


wheel = Path(sys.argv[1])
size = wheel.stat().st_size
assert size <= LARGEST, f"{wheel.name} has {size:,} bytes"
assert "-py3-none-manylinux_" in wheel.name, f"{wheel.name} is not tagged for a machine"
with zipfile.ZipFile(wheel) as files:
    libraries = {name: files.read(name) for name in files.namelist() if name.endswith(".so")}
    device = {name: files.read(name) for name in files.namelist() if name.startswith("graphdb/gpu/binaries/")}
    metadata = next(files.read(name).decode() for name in files.namelist() if name.endswith(".dist-info/METADATA"))
assert len(libraries) > 1 or "aarch64" in wheel.name, "a library is missing"
for name, content in libraries.items():
    assert name.startswith("graphdb/storage/compile/kernels-"), name
    assert needed(content) <= SYSTEM, f"{name} needs {', '.join(sorted(needed(content) - SYSTEM))}"
assert {Path(name).stem for name in device} >= ARCHIVES, f"device code is missing: {sorted(device)}"
counts = {check_device_code(name, content) for name, content in device.items()}
assert len(counts) == 1, "architectures have different modules"
for line in metadata.splitlines():
    wanted = line.startswith("Requires-Dist: ") and "extra ==" not in line
    assert not (wanted and ("numba" in line or "llvmlite" in line)), line
code = f"{counts.pop()} modules of device code for {len(device)} targets, {sum(map(len, device.values())) / 1e6:.1f} MB"
print(f"{wheel.name}: {size / 1e6:.1f} MB, {len(libraries)} libraries of kernels, {code}")

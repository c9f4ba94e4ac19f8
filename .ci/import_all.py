"""Import every module that a wheel holds, from where it was installed; each module once, no optional package needed.

Run it with the Python of the environment where the wheel is installed: ``python import_all.py graphdb-….whl``.
"""

from __future__ import annotations

import importlib
import sys
import zipfile
from collections import Counter

names = Counter(
    file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    for file in zipfile.ZipFile(sys.argv[1]).namelist()
    if file.endswith(".py")
)
if twice := [name for name, count in names.items() if count > 1]:
    sys.exit(f"in the wheel twice: {twice}")
if strangers := [name for name in names if not (name == "graphdb" or name.startswith("graphdb."))]:
    sys.exit(f"outside the package: {strangers}")

OPTIONAL = {"IPython", "cupy", "llvmlite", "numba"}
"""Notebooks', a device's, and the compiler's: only modules that are of no use without them import them at once."""

# As for a user: the current folder, decoys and all, comes first.
sys.path.insert(0, "")
skipped = []
for name in sorted(names):
    if name.endswith("__main__"):
        continue
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in OPTIONAL:
            raise
        skipped.append(name)
    else:
        assert "site-packages" in str(module.__file__), f"{name} comes from {module.__file__}"
print(f"{len(names)} modules imported" + (f", all but {', '.join(skipped)}" if skipped else ""))

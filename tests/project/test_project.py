"""The project: one version, one package of four folders, each module once in a wheel, public names that exist."""

from __future__ import annotations

import ast
import doctest
import gzip
import importlib
import os
import re
import runpy
import subprocess
import sys
import tomllib
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphdb
from graphdb import opening
from graphdb._version import __version__
from graphdb.common import errors, render
from graphdb.data import GEOGRAPHY, PREFIXES
from graphdb.dispatch import completion
from graphdb.dispatch.interface import contents
from graphdb.pictures import picture
from graphdb.results import description, plans

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _sources() -> list[Path]:
    """All Python files of the package, by their real places."""
    return sorted(file for folder in ("graphdb", "gpu", "grammar", "storage") for file in (ROOT / folder).rglob("*.py"))


def _statements(path: Path, about: str = "") -> Iterator[ast.stmt]:
    """All statements of a file, also those within others; none if it does not say what they are about."""
    text = path.read_text(encoding="utf-8")
    left: list[ast.AST] = [ast.parse(text)] if about in text else []
    while left:
        within = [each for name in _WITHIN for each in getattr(left[-1], name, ())]
        left[-1:] = within
        yield from (each for each in within if isinstance(each, ast.stmt))


_WITHIN = ("body", "orelse", "finalbody", "handlers", "cases")
"""The fields of statements that hold others."""


def test_integers_are_sorted_where_numpy_would_hash_them() -> None:
    """``sorted_sets.unique`` says why."""
    called = re.compile(r"np\.(union1d|intersect1d|setdiff1d|setxor1d|unique)\((.*)")
    hashing = [
        f"{path}: {line.strip()}"
        for path in _sources()
        for line in path.read_text(encoding="utf-8").splitlines()
        for name, given in called.findall(line)
        if name != "unique" or not re.search(r"return_|axis=", given)
    ]
    assert not hashing


def test_version_is_written_once() -> None:
    assert graphdb.__version__ == __version__
    assert re.fullmatch(r"\d+\.\d+\.\d+([ab.].*)?", __version__)
    holders = [path for path in _sources() if f'"{__version__}"' in path.read_text(encoding="utf-8")]
    assert [path.name for path in holders] == ["_version.py"]
    assert "version" in PROJECT["project"]["dynamic"]
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_references_between_modules_lead_somewhere() -> None:
    names = {str(file.relative_to(ROOT).with_suffix("")).replace(os.sep, ".") for file in _sources()}
    names = {"graphdb." + name.removeprefix("graphdb.").removesuffix(".__init__") for name in names} | {"graphdb"}
    wrong = []
    for file in _sources():
        package = ["graphdb", *file.relative_to(ROOT).parent.parts] if file.is_relative_to(ROOT / "graphdb") else []
        package = package[1:] or ["graphdb", *file.relative_to(ROOT).parent.parts]
        for dots, rest in re.findall(r":mod:`~?(\.*)(graphdb[\w.]*|[\w.]+)`", file.read_text(encoding="utf-8")):
            named = ".".join([*package[: len(package) - len(dots) + 1], rest]) if dots else rest
            if named.startswith("graphdb") and named not in names:
                wrong.append(f"{file.relative_to(ROOT)}: {named}")
    assert not wrong


def test_files_and_folders_are_small() -> None:
    """Some 500 lines and some ten modules at most: what is larger asks to be split."""
    kernels = [*(ROOT / "gpu" / "kernels").rglob("*.cu"), *(ROOT / "gpu" / "kernels").rglob("*.cuh")]
    files = [*_sources(), *kernels, *(ROOT / "tests").rglob("*.py")]
    long = {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8").count("\n") for file in files}
    assert {file: lines for file, lines in long.items() if lines > 520} == {}
    modules = Counter(file.parent for file in [*_sources(), *kernels] if file.name != "__init__.py")
    assert {str(folder.relative_to(ROOT)): number for folder, number in modules.items() if number > 14} == {}


def test_what_is_referred_to_weakly_is_not_generic() -> None:
    """A dataclass with ``slots``, ``weakref_slot`` and a generic base has no place for weak references in Python 3.12.3."""
    found = []
    for path in _sources():
        for node in _statements(path, "weakref_slot"):
            if isinstance(node, ast.ClassDef) and any(
                keyword.arg == "weakref_slot"
                for each in node.decorator_list
                if isinstance(each, ast.Call)
                for keyword in each.keywords
            ):
                found += [f"{path}: {node.name}" for base in node.bases if ast.unparse(base).startswith("Generic[")]
    assert not found


def test_documented_parameters_exist() -> None:
    """Each name under Parameters is one of the function's or of the class's."""
    wrong = []
    for file in _sources():
        for node in _statements(file, "Parameters\n"):
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                continue
            said = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", ast.get_docstring(node) or "", re.S | re.M)
            if not said:
                continue
            lines = re.findall(r"^(\w[\w, ]*?)(?: : .*)?$", said.group(1), re.M)
            made = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"]
            has = {each.arg for each in ast.walk(made[0] if made else node) if isinstance(each, ast.arg)}
            if isinstance(node, ast.ClassDef) and not made:
                has |= {each.target.id for each in node.body if isinstance(each, ast.AnnAssign)}  # type: ignore[union-attr]
            wrong += [
                f"{file}: {node.name}({name})" for name in ", ".join(lines).split(", ") if name and name not in has
            ]
    assert wrong == []


@pytest.mark.parametrize("folder", ["gpu", "grammar", "storage"])
def test_links_lead_to_the_folders(folder: str) -> None:
    link = ROOT / "graphdb" / folder
    assert link.is_symlink()
    assert os.readlink(link) == f"../{folder}"
    module = importlib.import_module(f"graphdb.{folder}")
    assert Path(str(module.__file__)).resolve() == ROOT / folder / "__init__.py"


def test_every_package_is_listed() -> None:
    folders = {file.parent.relative_to(ROOT) for file in _sources() if file.name == "__init__.py"}
    packages = {
        ".".join(folder.parts if folder.parts[0] == "graphdb" else ("graphdb", *folder.parts)) for folder in folders
    }
    assert packages == set(PROJECT["tool"]["setuptools"]["packages"])


def test_public_names_exist_and_are_what_is_promised() -> None:
    assert {"connect", "Database", "Result", "GraphDBError", "__version__"} <= set(graphdb.__all__)
    for name in graphdb.__all__:
        assert getattr(graphdb, name) is not None
    named = {name: value for name, value in vars(errors).items() if isinstance(value, type)}
    raised = {name for name, value in named.items() if issubclass(value, errors.GraphDBError)}
    assert raised <= set(graphdb.__all__), "every error that can be raised can be named"


@pytest.fixture(scope="module")
def loaded() -> list[str]:
    """The modules that ``import graphdb`` loads."""
    return _python("import graphdb, sys; print('\\n'.join(sys.modules))").splitlines()


@pytest.mark.parametrize("heavy", ["numba", "cupy", "pyarrow", "duckdb", "sqlalchemy", "lark", "rich", "pandas"])
def test_import_is_light(heavy: str, loaded: list[str]) -> None:
    assert "graphdb" in loaded
    assert heavy not in loaded


def test_bare_folder_names_are_never_imported() -> None:
    for path in _sources():
        for node in _statements(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.append(node.module)
            bare = {name.partition(".")[0] for name in names} & {"gpu", "grammar", "storage"}
            assert not bare, f"{path}:{getattr(node, 'lineno', 0)}"


@pytest.mark.parametrize(
    "module",
    [completion, contents, description, errors, opening, picture, plans, render],
    ids=lambda module: module.__name__,
)
def test_doctests(module: object) -> None:
    tried = doctest.testmod(module)  # type: ignore[arg-type]
    assert tried.attempted
    assert not tried.failed


def test_layers_hold() -> None:
    pytest.importorskip("importlinter")
    ran = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_wheel_holds_every_module_once(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)],
        env={**os.environ, "GRAPHDB_BUILD_KERNELS": "0"},  # .ci/run builds the whole one, and tries it
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = Counter(zipfile.ZipFile(wheel).namelist())
    held = {name for name in names if not name.partition("/")[0].endswith(".dist-info")}
    assert max(names.values()) == 1
    expected = {_in_wheel(path) for path in _sources()}
    assert {name for name in held if name.endswith(".py")} == expected
    assert {"graphdb/py.typed", "graphdb/grammar/pattern.lark", "graphdb/data/geography.nt.gz"} <= held
    kernels = {path.relative_to(ROOT).as_posix() for path in (ROOT / "gpu" / "kernels").rglob("*.cu*")}
    assert len(kernels) > 20
    assert {f"graphdb/{kernel}" for kernel in kernels} <= held
    assert all(name.startswith("graphdb/") for name in held)


def test_shipped_data_set_is_what_its_readme_says() -> None:
    with gzip.open(GEOGRAPHY, "rt", encoding="utf-8") as lines:
        triples = [line.removesuffix(" .\n").split(" ", 2) for line in lines]
    readme = (GEOGRAPHY.parent / "README.md").read_text(encoding="utf-8")
    assert f"{len(triples):,} triples" in readme
    assert len({tuple(triple) for triple in triples}) == len(triples)
    classes = Counter(o for _, p, o in triples if p.endswith("#type>"))
    for iri, count in classes.items():
        prefix = next(prefix for prefix, base in PREFIXES.items() if iri.startswith(f"<{base}"))
        assert f"`{prefix}:{iri[len(PREFIXES[prefix]) + 1 : -1]}`" in readme
        assert f"{count:,}" in readme
    borders = {(s, o) for s, p, o in triples if p.endswith("#neighbour>")}
    assert borders == {(o, s) for s, o in borders}, "every border stands in both directions"
    local_names = {re.split("[#/]", p.strip("<>"))[-1] for _, p, _ in triples}
    assert len(local_names) == len({p for _, p, _ in triples}), "bare names must be enough"


def _in_wheel(path: Path) -> str:
    """Where a source file stands in the wheel."""
    relative = path.relative_to(ROOT).as_posix()
    return relative if relative.startswith("graphdb/") else f"graphdb/{relative}"


def _python(code: str) -> str:
    """What a fresh interpreter prints, run from the checkout."""
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return ran.stdout


@pytest.mark.parametrize(
    ("kernels", "linker", "needs"),
    [
        (None, True, {"numba", "numpy"}),
        (None, False, {"numba", "numpy", "ziglang"}),
        ("all", True, {"numba", "numpy", "ziglang", "nvidia-cuda-nvrtc"}),
        ("0", False, set[str]()),
    ],
)
def test_a_wheel_needs_the_compilers_of_the_code_that_it_carries(
    kernels: str | None, linker: bool, needs: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if linker:
        (tmp_path / "ld").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    meta = pytest.importorskip("setuptools.build_meta")
    monkeypatch.setattr(meta, "get_requires_for_build_wheel", lambda settings: [])
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("GRAPHDB_BUILD_KERNELS", raising=False)
    if kernels is not None:
        monkeypatch.setenv("GRAPHDB_BUILD_KERNELS", kernels)
    backend = runpy.run_path(str(ROOT / "build_backend.py"))
    wanted = backend["get_requires_for_build_wheel"]()
    assert {re.split(r"[><=; ]", requirement)[0] for requirement in wanted} == needs

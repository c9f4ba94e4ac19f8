"""README and the pages of ``docs/`` run as written, and say what is really printed; README's layout is the contract's.

The pages of ``docs/language`` have a test of their own, ``test_language_reference.py``.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import graphdb
from tests.project.pages import BLOCK, DOCS, LANGUAGE, README, ROOT, links_of, run_page

PAGES = [README, *sorted(DOCS.glob("*.md")), *sorted((DOCS / "tutorials").glob("*.md"))]
RUN = {
    "README.md": (4, 6),
    "docs/exporting.md": (0, 5),
    "docs/loading.md": (0, 8),
    "docs/python.md": (0, 18),
    "docs/settings.md": (0, 5),
    "docs/tour.md": (7, 0),
    "docs/trust.md": (0, 3),
    "docs/tutorials/analysts.md": (0, 38),
    "docs/tutorials/property-graphs.md": (0, 28),
    "docs/tutorials/rdf.md": (0, 32),
}
"""The least numbers of statements and of Python's examples, so that none gets lost unseen; of other pages none."""


def named(page: Path) -> str:
    """A page's path within the repository."""
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_the_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples read ``graphdb/data/…`` as from the repository, and write what they write elsewhere."""
    needed = {"exporting": ("networkx", "pandas"), "python": ("networkx", "pandas"), "rdf": ("rdflib",)}
    for package in needed.get(page.stem, ("networkx", "pandas", "polars") if page.parent.name == "tutorials" else ()):
        pytest.importorskip(package)
    (tmp_path / "graphdb").symlink_to(ROOT / "graphdb", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    with graphdb.connect() as database:
        ran = run_page(page, database)
    statements, examples = RUN.get(named(page), (0, 0))
    assert ran["graphdb"] >= statements
    assert ran["python"] >= examples


def test_readme_is_short_and_every_page_is_in_the_index() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150
    index = {link for link, _ in links_of(DOCS / "README.md")}
    assert {page.name for page in DOCS.glob("*.md")} - index == {"README.md"}
    assert {f"tutorials/{page.name}" for page in (DOCS / "tutorials").glob("*.md")} <= index


def test_each_tutorial_has_twelve_tasks() -> None:
    for page in (DOCS / "tutorials").glob("*.md"):
        numbers = re.findall(r"^## (\d+)\. ", page.read_text(encoding="utf-8"), re.M)
        assert numbers == [str(number) for number in range(1, 13)], page.name


@pytest.mark.parametrize("page", [*PAGES, *sorted(LANGUAGE.glob("*.md"))], ids=named)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link, anchor in links_of(page):
        target = page.parent / link if link else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M)
            anchors = {"#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in anchors, f"{page.name}: {link}{anchor}"


def test_the_layout_is_that_of_the_import_contract() -> None:
    """README draws the layers in their order, each name of the contract that there is, and no other."""
    section = README.read_text(encoding="utf-8").partition("## The layout")[2]
    drawn = BLOCK.search(section)
    assert drawn is not None
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(found["layers"] for found in contract["contracts"] if found["type"] == "layers")
    lines = drawn[2].splitlines()[1:]  # below the root
    assert len(lines) == len(layers)
    for line, layer in zip(lines, layers, strict=True):
        names = set(re.findall(r"\b(\w+)(?:/|\.py)", line))
        absent = {name for name in re.findall(r"\((\w+)\)", layer) if not (ROOT / "graphdb" / name).exists()}
        assert names == set(re.findall(r"\w+", layer)) - absent - {"__main__"}


@pytest.mark.parametrize("page", ["architecture.md", "contributing.md"])
def test_every_module_that_is_named_exists(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    folders = [ROOT / folder for folder in ("graphdb", "gpu", "grammar", "storage", "tests")]
    files = [path.relative_to(ROOT).as_posix() for folder in folders for path in folder.rglob("*.*")]
    modules = set(re.findall(r"`([\w/]+\.(?:py|lark))`", text))
    assert len(modules) > 30
    assert not [name for name in modules if not any(f"/{file}".endswith(f"/{name}") for file in files)]


def test_an_everyday_change_is_found_by_the_layout_alone() -> None:
    """Each row of the list names a layer that README draws, and a module that stands in it."""
    contributing = (DOCS / "contributing.md").read_text(encoding="utf-8")
    drawn = README.read_text(encoding="utf-8").partition("## The layout")[2]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", contributing, re.M)[1:]
    assert len(rows) >= 20
    for change, layer, modules in rows:
        for name in re.findall(r"`([\w.]+)/?`", layer):
            assert re.search(rf"\b{re.escape(name)}\b", drawn), change
            assert re.search(rf"`{re.escape(name)}(/|`)", modules), change


def test_architecture_has_a_row_for_each_package() -> None:
    rows = re.findall(r"^\| `(\w+)/` \|", (DOCS / "architecture.md").read_text(encoding="utf-8"), re.M)
    folders = {path.parent.name for path in (ROOT / "graphdb").glob("*/__init__.py")}
    assert sorted(rows) == sorted(folders)

"""README and the pages of ``docs/`` run as written, and say what is really printed; README's layout is the contract's.

The pages of ``docs/language`` have a test of their own, ``test_language_reference.py``.
"""

from __future__ import annotations

import doctest
import re
import tomllib
from pathlib import Path

import pytest

import graphdb
from graphdb import GraphDBError

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, *sorted(DOCS.glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(#[^)]*)?\)")
RUN = {
    "README.md": (4, 6),
    "docs/exporting.md": (0, 5),
    "docs/loading.md": (0, 8),
    "docs/python.md": (0, 13),
    "docs/settings.md": (0, 5),
    "docs/tour.md": (7, 0),
    "docs/trust.md": (0, 3),
}
"""The least numbers of statements and of Python's examples, so that none gets lost unseen; of other pages none."""


def named(page: Path) -> str:
    """A page's path within the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """The fenced blocks of a page: their kinds and texts."""
    return [(found[1], found[2]) for found in BLOCK.finditer(page.read_text(encoding="utf-8"))]


@pytest.fixture(autouse=True)
def in_a_folder_with_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples read ``graphdb/data/…`` as from the repository, and write what they write elsewhere."""
    (tmp_path / "graphdb").symlink_to(ROOT / "graphdb", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_the_statements(page: Path) -> None:
    """Each ``graphdb`` block runs, and prints the ``text`` or the ``error`` that follows it."""
    blocks = [(kind, text) for kind, text in blocks_of(page) if kind in ("graphdb", "text", "error")]
    assert sum(kind == "graphdb" for kind, _ in blocks) >= RUN.get(named(page), (0, 0))[0]
    printed: tuple[str, str] | None = None
    with graphdb.connect() as database:
        for kind, text in blocks:
            if kind == "graphdb":
                assert printed is None or printed[0] == "text", printed
                try:
                    printed = "text", database.query(text).text()
                except GraphDBError as error:
                    printed = "error", str(error)
            elif printed is not None:  # before any statement a text is a drawing
                assert printed == (kind, text.rstrip("\n"))
                printed = None
    assert printed is None or printed[0] == "text", printed


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_the_python_parts(page: Path) -> None:
    parts = "\n".join(text for kind, text in blocks_of(page) if kind == "python")
    names: dict[str, object] = {}
    test = doctest.DocTestParser().get_doctest(parts, names, page.name, str(page), 0)
    if any(".to_pandas()" in example.source for example in test.examples):
        pytest.importorskip("pandas")
    if any("networkx" in example.source for example in test.examples):
        pytest.importorskip("networkx")
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, clear_globs=False)
    if isinstance(database := test.globs.get("db"), graphdb.Database):
        database.close()
    assert runner.tries >= RUN.get(named(page), (0, 0))[1]
    assert runner.failures == 0


def test_readme_is_short_and_every_page_is_in_the_index() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150
    index = {link for link, _ in LINK.findall((DOCS / "README.md").read_text(encoding="utf-8"))}
    assert {page.name for page in DOCS.glob("*.md")} - index == {"README.md"}


@pytest.mark.parametrize("page", [*PAGES, *sorted((DOCS / "language").glob("*.md"))], ids=named)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link, anchor in LINK.findall(page.read_text(encoding="utf-8")):
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
    folders = [ROOT / folder for folder in ("graphdb", "gpu", "grammar", "storage")]
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

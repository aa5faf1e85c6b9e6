"""The documentation tells the truth: its programs print what it says, its links lead somewhere, its files exist."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PROGRAM = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```output\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
PAGES = sorted(DOCS.rglob("*.md"))
WITH_PROGRAMS = [page for page in PAGES if PROGRAM.search(page.read_text("utf-8"))]
SPARK = DOCS / "tutorials" / "spark.md"


def run(page: Path) -> None:
    """The programs of a page one after the other, in one namespace."""
    namespace: dict[str, Any] = {}
    for program, printed in PROGRAM.findall(page.read_text("utf-8")):
        out = io.StringIO()
        with redirect_stdout(out):
            exec(compile(program, page.name, "exec"), namespace)  # noqa: S102 - our own examples
        assert out.getvalue() == printed, program


@pytest.mark.parametrize("page", [p for p in WITH_PROGRAMS if p != SPARK], ids=lambda p: p.stem)
def test_every_program_of_a_page_prints_what_the_page_says(page: Path) -> None:
    run(page)


def test_every_family_has_a_tutorial_with_programs() -> None:
    families = {"filters", "sequences", "operators", "graphs", "covering", "spark"}
    assert {page.stem for page in WITH_PROGRAMS if page.parent.name == "tutorials"} >= families


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it: strict, so a link or an anchor that leads nowhere fails here."""
    to = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(to)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return to


def test_the_site_is_built_without_a_broken_link(site: Path) -> None:
    assert {p.name for p in site.glob("*.html")} >= {"index.html", "architecture.html", "results.html", "language.html"}
    assert len(list((site / "tutorials").glob("*.html"))) >= 6


def test_the_site_fetches_nothing_from_another_host(site: Path) -> None:
    loaded = re.compile(r"<(?:script|img|link)[^>]+(?:src|href)=\"(https?:)?//", re.IGNORECASE)
    assert [p.name for p in site.rglob("*.html") if loaded.search(p.read_text("utf-8"))] == []


def test_every_file_that_the_architecture_names_exists() -> None:
    text = (DOCS / "architecture.md").read_text("utf-8")
    homes = [ROOT, ROOT / "src" / "headgate", *(p for p in (ROOT / "src" / "headgate").rglob("*") if p.is_dir())]
    named = set(re.findall(r"`([\w/]+(?:\.py|\.lark|/))`", text))
    assert len(named) > 40
    assert [name for name in sorted(named) if not any((home / name).exists() for home in homes)] == []


def test_the_walk_passes_through_every_package() -> None:
    text = (DOCS / "architecture.md").read_text("utf-8")
    packages = {p.name for p in (ROOT / "src" / "headgate").iterdir() if (p / "__init__.py").exists()}
    assert [name for name in sorted(packages - {"cli"}) if f"{name}/" not in text] == []

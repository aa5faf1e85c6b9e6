"""The README tells the truth: its Python runs and prints what it says, and so do its commands.

A block marked `python` is followed by one marked `output`; the blocks run one after the other in one namespace. In a
block marked `console` each line that begins with `$ ` is a command, and what follows is its stdout.
"""

from __future__ import annotations

import io
import os
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headgate.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    return [(m[1], m[2]) for m in BLOCK.finditer(README)]


def commands() -> list[tuple[str, str]]:
    """The command lines of the README, each with what it prints."""
    found = []
    for kind, text in blocks():
        if kind == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                line, _, printed = part.partition("\n")
                found.append((line, printed))
    return found


def test_every_python_block_prints_what_the_readme_says() -> None:
    namespace: dict[str, Any] = {}
    found = blocks()
    programs = [(text, found[i + 1]) for i, (kind, text) in enumerate(found) if kind == "python"]
    assert len(programs) == 4
    for program, (kind, printed) in programs:
        assert kind == "output"
        out = io.StringIO()
        with redirect_stdout(out):
            exec(compile(program, "README.md", "exec"), namespace)  # noqa: S102 - our own examples
        assert out.getvalue() == printed


def test_the_readme_shows_the_command_line() -> None:
    assert {shlex.split(line)[1] for line, _ in commands()} == {"check", "explain", "match"}


@pytest.mark.parametrize(("line", "printed"), commands(), ids=[line for line, _ in commands()])
def test_every_command_prints_what_the_readme_says(line: str, printed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    words = shlex.split(line)
    first = words[-3:] == ["|", "head", "-1"]
    words = words[:-3] if first else words
    assert words[0] == "headgate"
    out = CliRunner().invoke(main, words[1:]).stdout
    assert (out.splitlines(keepends=True)[0] if first else out) == printed


def test_every_file_that_the_readme_names_exists() -> None:
    named = set(re.findall(r"\]\(([\w./]+)\)|`(examples/[\w.]+)`", README))
    paths = [a or b for a, b in named]
    assert paths
    assert [p for p in paths if not os.path.exists(ROOT / p)] == []  # noqa: PTH110 - a path from a text


def test_the_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"^    make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)

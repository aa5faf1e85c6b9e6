"""Facts about the repository that no linter knows: what the locks hold, what no file may name, what has a reason.

The forbidden names are put together from parts, so that this file passes its own test.
"""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOCKS = ("requirements.lock", "requirements-setup.lock")
LONGEST_FILE = 500
LARGEST_FILE = 400_000
"""Bytes. Data that a script can make again, results and pictures stay out of the repository."""

REGISTRIES = tuple(
    f"{name}.{domain}"
    for name, domain in (
        ("pypi", "org"),
        ("pypi.python", "org"),
        ("pythonhosted", "org"),
        ("anaconda", "org"),
        ("npmjs", "org"),
        ("repo1.maven", "org"),
        ("repo.maven.apache", "org"),
    )
)
FORBIDDEN = re.compile(
    "|".join(map(re.escape, REGISTRIES)) + r"|(?<![\w.~:/-])/(?:" + "|".join(("work", "root", "home")) + r")(?![\w-])",
    re.IGNORECASE,
)
NOQA = re.compile(r"#\s*(?:ruff:\s*)?noqa\b(?P<rest>[^#]*)", re.IGNORECASE)
NOQA_WITH_REASON = re.compile(r"\s*:\s*[A-Z]+\d+(?:\s*,\s*[A-Z]+\d+)*\s+-\s+\S.*")
TYPE_IGNORE = re.compile(r"#\s*type:\s*ignore(?P<rest>.*)")
TYPE_IGNORE_WITH_REASON = re.compile(r"\[[\w\-, ]+\]\s*#\s*(?!noqa|type:)\S.*")
RULE = re.compile(r'^\s*"[A-Z]+\d*",?(?P<rest>.*)$')


def tracked() -> list[Path]:
    """The files git knows, and those it would take: a new file is checked before it is committed."""
    # A checkout that belongs to another user is common in CI; listing names is safe there too.
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in sorted(set(listing.split("\0"))) if name and (ROOT / name).is_file()]


def text_of(path: Path) -> str | None:
    """The text of a file; None for pictures, Parquet and the like."""
    data = path.read_bytes()
    return None if b"\0" in data[:8192] else data.decode("utf-8", errors="replace")


def requirements(lock: str) -> list[str]:
    """The requirements of a lock, continuation lines joined."""
    joined = lock.replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def forbidden_names(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), start=1):
        for hit in FORBIDDEN.finditer(line):
            yield f"{number}: {hit.group()}"


def silent_exceptions(source: str) -> Iterator[str]:
    """The comments that switch a check off without saying why."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        noqa = NOQA.search(token.string)
        ignore = TYPE_IGNORE.search(token.string)
        if (noqa and not NOQA_WITH_REASON.fullmatch(noqa["rest"].rstrip())) or (
            ignore and not TYPE_IGNORE_WITH_REASON.fullmatch(ignore["rest"].rstrip())
        ):
            yield f"{token.start[0]}: {token.string}"


def silent_rules(pyproject: str) -> Iterator[str]:
    """The rules that an ignore list of the ruff configuration names without saying why."""
    ignoring = False
    for number, line in enumerate(pyproject.splitlines(), start=1):
        opened = re.match(r'^(?:(?:extend-)?ignore|"[^"]+")\s*=\s*\[(?P<inline>.*)', line)
        if opened:
            ignoring = True
            if opened["inline"].strip() and "#" not in opened["inline"]:
                yield f"{number}: {line.strip()}"
                ignoring = False
        elif line.startswith("]"):
            ignoring = False
        elif ignoring and (rule := RULE.match(line)) and not re.match(r"\s*#\s*\S", rule["rest"]):
            yield f"{number}: {line.strip()}"


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_pins_every_requirement_with_a_hash(name: str) -> None:
    lines = requirements((ROOT / name).read_text("utf-8"))
    assert lines
    loose = [line for line in lines if not re.match(r"[\w.\-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line)]
    assert not loose


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_says_nothing_about_where_files_come_from(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert "://" not in text
    assert not [line for line in requirements(text) if line.startswith("-")]


def test_set_up_is_done_with_the_versions_of_the_whole_lock() -> None:
    whole, first = ({line.split(" ")[0] for line in requirements((ROOT / name).read_text("utf-8"))} for name in LOCKS)
    assert first <= whole


def test_no_file_names_a_registry_or_a_folder_of_some_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{hit}"
        for path in tracked()
        if (text := text_of(path)) is not None
        for hit in forbidden_names(text)
    ]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("text", [f"see {REGISTRIES[0]}/x", "cd /" + "work/x", "'/" + "root'", "(/" + "home/me)"])
def test_a_forbidden_name_is_found(text: str) -> None:
    assert list(forbidden_names(text))


@pytest.mark.parametrize(
    "text", ["docs/" + "work/plan.md", "the /" + "workers folder", "http://example.org/" + "home", "/" + "homepage"]
)
def test_a_harmless_path_is_left_alone(text: str) -> None:
    assert not list(forbidden_names(text))


def test_every_exception_in_the_code_gives_its_reason() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{hit}"
        for path in tracked()
        if path.suffix in {".py", ".pyi"}
        for hit in silent_exceptions(path.read_text("utf-8"))
    ]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa",
        "# noqa: S603",
        "# noqa: S603 -",
        "# noqa - because",
        "# ruff: noqa",
        "# type: ignore",
        "# type: ignore[arg-type]",
        "# type: ignore[arg-type]  # noqa: S603 - reason of another",
    ],
)
def test_an_exception_without_a_reason_is_found(comment: str) -> None:
    assert list(silent_exceptions(f"x = 1  {comment}\n"))


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa: S603, S607 - the arguments are ours",
        "# type: ignore[arg-type]  # the stubs lack this overload",
        "# why",
    ],
)
def test_an_exception_with_a_reason_is_fine(comment: str) -> None:
    assert not list(silent_exceptions(f"x = 1  {comment}\n"))


def test_every_ignored_rule_gives_its_reason() -> None:
    assert not list(silent_rules((ROOT / "pyproject.toml").read_text("utf-8")))


def test_an_ignored_rule_without_a_reason_is_found() -> None:
    assert list(silent_rules('ignore = [\n    "S101",\n]\n'))
    assert list(silent_rules('"tests/**" = ["S101"]\n'))
    assert not list(silent_rules('select = [\n    "S101",\n]\nignore = [\n    "S102",  # why\n]\n'))


def test_no_source_file_has_grown_past_the_limit() -> None:
    sizes = {
        str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines())
        for path in sorted((ROOT / "src").rglob("*.py"))
    }
    assert sizes
    assert not {name: size for name, size in sizes.items() if size > LONGEST_FILE}


def test_no_tracked_file_is_large() -> None:
    sizes = {str(path.relative_to(ROOT)): path.stat().st_size for path in tracked()}
    assert not {name: size for name, size in sizes.items() if size > LARGEST_FILE}

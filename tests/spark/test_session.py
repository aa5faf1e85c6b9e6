"""A machine without a Java that Spark can use is told so in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

import headgate as hg
from headgate.spark.session import require_java


def java(folder: Path, version: str) -> Path:
    """A Java that only says its version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", "utf-8")
    program.chmod(0o755)
    return folder


def test_no_java_at_all_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        hg.EnvironmentProblem, match=r"Spark needs Java, and there is none on PATH\n  hint: install Java 17"
    ):
        require_java()


def test_a_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(hg.EnvironmentProblem, match=f"JAVA_HOME={tmp_path} does not run"):
        require_java()


@pytest.mark.parametrize(("version", "major"), [("1.8.0_392", 8), ("11.0.2", 11)])
def test_a_java_that_is_too_old_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, major: int
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "jdk", version)))
    with pytest.raises(hg.EnvironmentProblem, match=f"Spark needs Java 17 or newer, and .* is {major}"):
        require_java()


def test_a_java_that_is_new_enough_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "jdk", "21.0.1")))
    assert require_java() == 21

"""`scripts/kafka.sh fetch` where Maven is missing or reaches nothing: a sentence, and what was there stays."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The script and its pom, with jars of an earlier time."""
    for name in ("scripts/kafka.sh", "kafka/pom.xml"):
        (tmp_path / name).parent.mkdir()
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".kafka" / "connector").mkdir(parents=True)
    (tmp_path / ".kafka" / "connector" / "old.jar").touch()
    (tmp_path / "bin").mkdir()
    for tool in ("sh", "dirname", "rm", "mkdir", "touch", "mv"):
        (tmp_path / "bin" / tool).symlink_to(str(shutil.which(tool)))
    return tmp_path


def fetch(checkout: Path) -> subprocess.CompletedProcess[str]:
    command = ["/bin/sh", str(checkout / "scripts" / "kafka.sh"), "fetch"]
    env = {**os.environ, "PATH": str(checkout / "bin")}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def maven(checkout: Path, script: str) -> None:
    program = checkout / "bin" / "mvn"
    program.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    program.chmod(0o755)


def test_without_maven_it_says_what_to_install(checkout: Path) -> None:
    done = fetch(checkout)
    assert done.returncode == 1
    assert "Maven (mvn) is needed to fetch Kafka; on Debian and Ubuntu: apt-get install maven" in done.stderr


def test_where_maven_reaches_nothing_it_says_so_and_keeps_the_jars(checkout: Path) -> None:
    maven(checkout, "echo 'Could not transfer artifact'; exit 1")
    done = fetch(checkout)
    assert done.returncode == 1
    assert "Maven could not fetch the jars of the broker" in done.stderr
    assert "Could not transfer artifact" in (checkout / ".kafka" / "maven.log").read_text("utf-8")
    assert (checkout / ".kafka" / "connector" / "old.jar").exists()


def test_what_maven_fetched_takes_the_place_of_the_old_jars_and_is_not_fetched_again(checkout: Path) -> None:
    maven(
        checkout,
        'for word; do case $word in -DoutputDirectory=*) mkdir -p "${word#*=}"; touch "${word#*=}/new.jar";; esac; done',
    )
    assert fetch(checkout).returncode == 0
    assert [jar.name for jar in (checkout / ".kafka").glob("*/*.jar")] == ["new.jar", "new.jar"]
    maven(checkout, "exit 1")
    assert fetch(checkout).returncode == 0

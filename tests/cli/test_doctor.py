"""The doctor on machines that lack something, made by changing what it can see."""

from __future__ import annotations

import json
import stat
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headgate.cli.doctor import CHECKS, JAVA_FIX, Finding, check_store, diagnose, doctor, java_major, numbers
from headgate.store import Store

# By name, because in the package `headgate.cli` the name `doctor` may stand for the command.
module = import_module("headgate.cli.doctor")


def program(path: Path, output: str) -> Path:
    """An executable that prints `output` on stderr, as `java -version` does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{output}\nEND\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def pretend_installed(monkeypatch: pytest.MonkeyPatch, **versions: str | None) -> None:
    real = module.version

    def version(name: str) -> str:
        found = versions[name] if name in versions else real(name)
        if found is None:
            raise PackageNotFoundError(name)
        return found

    monkeypatch.setattr(module, "version", version)


def finding(name: str) -> Finding:
    (only,) = [each for each in diagnose() if each.name == name]
    return only


def run(*arguments: str) -> Result:
    return CliRunner().invoke(doctor, arguments)


@pytest.fixture(autouse=True)
def healthy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with Java 17 and no settings, whatever the tests run on."""
    for name in ("JAVA_HOME", "SPARK_HOME", "SPARK_LOCAL_DIRS", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    program(tmp_path / "bin" / "java", 'openjdk version "17.0.15" 2025-04-15')
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)


def test_a_healthy_machine_exits_with_0() -> None:
    result = run()
    assert result.exit_code == 0, result.output
    assert "Java" in result.output


def test_without_java_it_exits_with_2_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    result = run()
    assert result.exit_code == 2
    assert "apt-get install openjdk-17-jre-headless" in result.output


def test_a_java_home_without_java_is_not_saved_by_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    assert finding("Java") == Finding("Java", False, f"none (JAVA_HOME={tmp_path / 'gone'})", JAVA_FIX)


def test_an_old_java_is_named_with_its_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(tmp_path / "old" / "bin" / "java", 'java version "1.8.0_392"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    java = finding("Java")
    assert not java.ok
    assert java.found.startswith("8 ")


def test_without_pyspark_what_only_spark_needs_is_optional(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend_installed(monkeypatch, pyspark=None, pandas=None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    result = run()
    assert result.exit_code == 0, result.output
    assert "pip install 'headgate[spark]'" in result.output


@pytest.mark.parametrize(
    ("name", "distribution", "bad"),
    [("pandas", "pandas", "3.0.1"), ("pyarrow", "pyarrow", "17.0.0"), ("PySpark", "pyspark", "3.5.4")],
)
def test_a_version_out_of_range_is_required_to_change(
    monkeypatch: pytest.MonkeyPatch, name: str, distribution: str, bad: str
) -> None:
    pretend_installed(monkeypatch, **{distribution: bad})
    found = finding(name)
    assert (found.ok, found.optional, found.found) == (False, False, bad)
    assert run().exit_code == 2


def test_workers_of_another_python_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", str(program(tmp_path / "other", "2.7 with pyarrow")))
    worker = finding("worker Python")
    assert (worker.ok, worker.optional) == (False, False)
    assert worker.found.startswith("2.7 with pyarrow (PYSPARK_PYTHON), driver 3.")
    assert worker.fix == f"export PYSPARK_PYTHON={sys.executable}"


def test_workers_without_pyarrow_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    monkeypatch.setenv("PYSPARK_PYTHON", str(program(tmp_path / "other", f"{here} without pyarrow")))
    assert not finding("worker Python").ok


def test_an_unset_worker_python_is_only_advice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON")
    program(tmp_path / "bin" / "python3", "3.8")
    worker = finding("worker Python")
    assert (worker.ok, worker.optional) == (False, True)


def test_connect_names_the_packages_it_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_installed(monkeypatch, grpcio=None, zstandard=None)
    assert finding("Spark Connect").found == "missing: grpcio, zstandard"
    assert run().exit_code == 0


def test_spark_without_protobuf_has_no_stateful_step(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_installed(monkeypatch, protobuf=None)
    assert run().exit_code == 2


def test_a_spark_without_rocksdb_has_no_state_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert finding("RocksDB state store").found == f"no rocksdbjni jar in {tmp_path / 'jars'}"
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "rocksdbjni-9.8.4.jar").touch()
    assert finding("RocksDB state store").ok


def test_a_module_that_does_not_load_is_reported_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dd.cudd", None)
    cudd = finding("CUDD")
    assert not cudd.ok
    assert "dd.cudd" in cudd.found


def test_a_kernel_cache_that_cannot_be_written_is_only_advice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(occupied / "cache"))
    cache = finding("kernel cache")
    assert (cache.ok, cache.optional) == (False, True)


def test_a_scratch_folder_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path / 'gone'},{tmp_path}")
    assert str(tmp_path / "gone") in finding("disk for state").found


def test_json_is_one_object_a_line_with_every_field() -> None:
    lines = run("--json").output.splitlines()
    objects = [json.loads(line) for line in lines]
    assert len(objects) == len(CHECKS)
    assert all(set(each) == {"name", "ok", "found", "fix", "optional"} for each in objects)


@pytest.mark.parametrize(
    ("banner", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "22-ea" 2024-03-19', 22),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21" 2023-09-19', 21),
        ("command not found", None),
    ],
)
def test_the_banner_of_java_gives_its_major_version(banner: str, major: int | None) -> None:
    assert java_major(banner) == major


def test_a_version_is_read_up_to_its_first_letter() -> None:
    assert numbers("18.1.0rc1") == (18, 1, 0)
    assert numbers("unknown") == ()


def test_the_doctor_tells_which_definitions_of_a_store_are_set_aside(tmp_path: Path) -> None:
    store = Store(tmp_path / "book.db")
    store.stream("s", {"x": "bigint"})
    store.add("mine", "x > 1")
    store.add("theirs", "x > 2")
    fine, *_ = check_store(store.url)
    assert fine.ok and fine.found == "version 3, 2 subscriptions, 0 definitions set aside"
    store.database.execute("UPDATE changes SET body = '{}' WHERE name = 'theirs'")
    store.close()
    whole, one = check_store(store.url)
    assert not whole.ok and whole.found == "version 3, 1 subscriptions, 1 definitions set aside"
    assert (one.name, one.ok, one.optional) == ("subscription theirs", False, False)
    assert "KeyError" in one.found


def test_the_doctor_makes_no_store_where_there_is_none(tmp_path: Path) -> None:
    (found,) = check_store(str(tmp_path / "book.db"))
    assert not found.ok and "there is no file" in found.found
    assert not (tmp_path / "book.db").exists()

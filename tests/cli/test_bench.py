"""The bench verb: it finds the benchmarks of a checkout, runs one, and says where its pictures are."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headgate.cli.bench import available, bench, checkout, shown
from headgate.errors import EnvironmentProblem, UsageError

# By name, because in the package `headgate.cli` the name `bench` may stand for the command.
module = import_module("headgate.cli.bench")

ROWS = [
    {"table": "speed", "events_a_second": 1200000},
    {"must": "be quick", "value": 2.5, "at_least": 2, "holds": True},
]
BENCHMARK = """
def run(scale, out):
    (out / "quick.png").write_bytes(scale.encode())
    yield from {rows}
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one benchmark, called quick."""
    package = tmp_path / "checkout" / "fake_benchmarks"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "quick.py").write_text(BENCHMARK.format(rows=ROWS))
    monkeypatch.setattr(module, "MODULES", {"quick": "fake_benchmarks.quick", "absent": "fake_benchmarks.absent"})
    monkeypatch.setattr(module, "checkout", lambda: package.parent)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in [name for name in sys.modules if name.startswith("fake_benchmarks")]:
        monkeypatch.delitem(sys.modules, name)
    return package


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(bench, list(arguments))


def test_the_benchmarks_of_this_checkout_are_found() -> None:
    assert {"filters", "filters-million", "abe", "decode", "parse"} <= set(available(checkout()))


def test_without_a_name_it_lists_what_exists(fake: Path) -> None:
    assert ran().output == "quick\n"


def test_json_gives_the_rows_and_then_the_pictures(fake: Path, tmp_path: Path) -> None:
    result = ran("quick", "--json", "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    picture = {"picture": str(tmp_path / "out" / "quick.png")}
    assert [json.loads(line) for line in result.output.splitlines()] == [*ROWS, picture]


def test_the_scale_reaches_the_benchmark(fake: Path, tmp_path: Path) -> None:
    ran("quick", "--scale", "paper", "--out", str(tmp_path))
    assert (tmp_path / "quick.png").read_text() == "paper"


def test_a_picture_of_an_earlier_run_is_not_announced(fake: Path, tmp_path: Path) -> None:
    (tmp_path / "old.png").touch()
    assert "old.png" not in ran("quick", "--out", str(tmp_path)).output


def test_a_missed_verdict_is_exit_code_1(fake: Path, tmp_path: Path) -> None:
    missed = {"must": "be quick", "value": 1.5, "at_least": 2, "holds": False}
    (fake / "quick.py").write_text(BENCHMARK.format(rows=[missed]))
    result = ran("quick", "--out", str(tmp_path))
    assert result.exit_code == 1
    assert "MISSED: be quick: 1.5 (at least 2)" in result.output


def test_an_unknown_name_is_refused_with_those_that_exist(fake: Path) -> None:
    result = ran("absent")
    assert isinstance(result.exception, UsageError)
    assert result.exception.hint == "choose one of quick"


def test_an_installed_package_says_where_the_benchmarks_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "__file__", str(tmp_path / "site-packages" / "headgate" / "cli" / "bench.py"))
    result = ran("filters")
    assert isinstance(result.exception, EnvironmentProblem)
    assert "source checkout" in result.exception.message
    assert "clone" in result.exception.hint


def test_a_benchmark_that_lacks_a_library_names_it(fake: Path) -> None:
    (fake / "quick.py").write_text("import no_such_library\n")
    result = ran("quick")
    assert isinstance(result.exception, EnvironmentProblem)
    assert "no_such_library" in result.exception.message


def test_a_verdict_that_is_not_judged_says_so() -> None:
    row = {"must": "be small", "value": 3, "less_than": 4000, "holds": None}
    assert shown(row) == "  not judged at this scale: be small: 3 (less than 4,000)"

"""The command line as a whole: help, exit codes, and what happens when something goes wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from headgate.cli import VERBS, main

SOURCE = Path(__file__).parents[2] / "src"
RULES = "CREATE STREAM s (x BIGINT);\nCREATE SUBSCRIPTION all ON s AS x IS NOT NULL;\n"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "headgate.cli", *arguments]


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE)}


def test_help_lists_every_verb_and_exits_with_0() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for verb, summary in VERBS.items():
        assert f"  {verb} " in result.output
        assert summary in result.output


@pytest.mark.parametrize("verb", VERBS)
def test_the_listed_summary_of_a_verb_is_its_own(verb: str) -> None:
    found: click.Command = getattr(import_module(f"headgate.cli.{verb}"), verb)
    assert (found.help or "").startswith(VERBS[verb].removesuffix("."))


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_offers_json(verb: str) -> None:
    found = getattr(import_module(f"headgate.cli.{verb}"), verb)
    for words in [(verb, part) for part in found.commands] if isinstance(found, click.Group) else [(verb,)]:
        assert "--json" in run(*words, "--help").output, words


def test_an_unknown_verb_is_wrong_input() -> None:
    result = run("mach")
    assert result.exit_code == 1
    assert result.stderr == "error: No such command 'mach'.\n  hint: try 'headgate --help'\n"


def test_an_unknown_option_is_wrong_input_and_an_object_with_json() -> None:
    result = run("check", "--josn", "--json")
    assert result.exit_code == 1
    told = json.loads(result.stderr)
    assert (told["code"], told["hint"]) == ("usage", "try 'headgate check --help'")
    assert "--josn" in told["message"]


def test_a_file_that_is_not_there_is_wrong_input(tmp_path: Path) -> None:
    result = run("match", str(tmp_path / "none.hg"), "-")
    assert result.exit_code == 1
    assert result.stderr == f"error: cannot read {tmp_path}/none.hg: No such file or directory\n"


def test_a_machine_that_fails_is_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "out.jsonl")

    monkeypatch.setattr("headgate.cli.match.read", full)
    rules = tmp_path / "rules.hg"
    rules.write_text(RULES)
    result = run("match", str(rules), "-")
    assert result.exit_code == 2
    assert result.stderr == "error: out.jsonl: No space left on device\n"


def test_an_interrupted_run_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("headgate.cli.check.book", interrupted)
    result = run("check", "rules.hg")
    assert (result.exit_code, result.output) == (130, "\n")


def test_the_version_is_that_of_the_package() -> None:
    assert run("--version").output.startswith("headgate 0.")


def test_a_reader_that_has_enough_ends_the_run_quietly(tmp_path: Path) -> None:
    rules, events = tmp_path / "rules.hg", tmp_path / "events.jsonl"
    rules.write_text(RULES)
    events.write_text('{"x": 1}\n' * 50_000)
    child = subprocess.Popen(
        command("match", str(rules), str(events)), env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stderr is not None
    assert child.stdout.readline() == b"s 0        all\n"
    child.stdout.close()
    told = child.stderr.read()
    child.stderr.close()
    assert (child.wait(60), told) == (0, b"")

"""The demo, small: it must tell what is true, and its last lines must work."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headgate.cli import main
from headgate.cli.ticks import Market, script
from headgate.subscriptions import Subscriptions

demo = import_module("headgate.cli.demo")
Step = tuple[str, list[str], dict[str, Any]]
Steps = dict[str, Step]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "kept"


@pytest.fixture(scope="module")
def guided(kept: Path) -> Steps:
    """One run for all tests, by the beginning of each title."""
    steps: list[Step] = []

    def tell(title: str, *lines: str, **facts: Any) -> None:
        steps.append((title, list(lines), facts))

    demo.guide(tell, 3000, 2000, str(kept))
    return {step[0].split(",")[0]: step for step in steps}


def test_the_event_shown_matches_what_is_shown_with_it(guided: Steps) -> None:
    _, lines, facts = guided["One event"]
    book = Subscriptions.parse(script(list(facts["matched"].items())))
    found = book.compile().match([facts["event"]])
    assert sorted(found.column("subscription").to_pylist()) == sorted(facts["matched"])
    assert len(facts["matched"]) == 5
    assert json.loads(lines[0]) == facts["event"]


def test_the_throughput_is_that_of_the_run(guided: Steps) -> None:
    (step,) = [s for s in guided.values() if "events_per_s" in s[2]]
    title, lines, facts = step
    assert title.endswith("events a second")
    assert facts["events"] == 3000
    assert facts["events_per_s"] == pytest.approx(3000 / facts["seconds"])
    assert lines[0].startswith("3,000 events against 2,000 subscriptions in one process")


def test_a_miss_is_explained(guided: Steps) -> None:
    _, lines, facts = guided["One that did not match"]
    assert lines[0] == f"  {facts['subscription']} does not match: {facts['text']}"
    assert "    it would match if this changed:" in lines


def test_bad_events_are_told_and_the_sound_one_matches(guided: Steps) -> None:
    _, lines, facts = guided["Bad events are reported"]
    assert [row["event"] for row in facts["errors"]] == [0, 1]
    assert facts["matches"] >= 5
    assert lines[-1] == "  event 1: symbol: it is NOT NULL but missing"


def test_saved_files_can_be_checked_and_matched(guided: Steps, kept: Path) -> None:
    rules, ticks = str(kept / "rules.hg"), str(kept / "ticks.jsonl")
    assert CliRunner().invoke(main, ["check", rules]).output == f"{rules}: no mistakes: 2,000 subscriptions on ticks\n"
    result = CliRunner().invoke(main, ["match", rules, ticks, "--output", "counts"])
    assert result.exit_code == 0
    assert result.stderr.startswith("3,000 events, ")


def test_the_workload_is_the_same_in_every_run() -> None:
    one, other = Market(7), Market(7)
    assert list(one.subscriptions(60)) == list(other.subscriptions(60))
    assert one.ticks(50).equals(other.ticks(50))


def test_on_the_command_line_steps_are_numbered_or_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "EVENTS", 2000)
    monkeypatch.setattr(demo, "SUBSCRIPTIONS", 600)
    result = CliRunner().invoke(main, ["demo"])
    assert result.exit_code == 0
    assert result.output.startswith("1. 600 standing subscriptions\n   A subscription is a standing question")
    steps = [json.loads(line) for line in CliRunner().invoke(main, ["demo", "--json"]).stdout.splitlines()]
    assert steps[0]["step"] == "600 standing subscriptions"
    assert steps[-1]["step"] == "What to try next"

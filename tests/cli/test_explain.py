"""`headgate explain`: one subscription of a script, with an event or without."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headgate.cli import main

RULES = """\
CREATE STREAM stock (name STRING, price DOUBLE, at BIGINT) TIME at;
CREATE SUBSCRIPTION cheap ON stock AS name = 'IBM' AND price < 100;
CREATE SUBSCRIPTION fall AS SELECT e2.price AS p FROM stock NEXT {$2.name = $1.name AND $2.price < $1.price} stock;
"""
TICKS = [{"name": "IBM", "price": 5.0, "at": 1}, {"name": "IBM", "price": 4.0, "at": 2}]


@pytest.fixture(autouse=True)
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.hg").write_text(RULES)


def explain(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(main, ["explain", *arguments], input=given)


def test_a_miss_says_what_blocked_it_and_exits_with_0() -> None:
    result = explain("rules.hg", "cheap", '{"name": "IBM", "price": 120}')
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:5] == [
        "cheap does not match: name = 'IBM' AND price < 100",
        "  true     name = 'IBM'   [name = 'IBM']",
        "  false    price < 100   [price = 120.0]",
        "  it would match if this changed:",
        "    price < 100",
    ]


def test_without_an_event_the_plan_is_told() -> None:
    result = explain("rules.hg", "cheap")
    assert result.exit_code == 0
    assert result.stdout.startswith("cheap: name = 'IBM' AND price < 100\n  evaluated: dense program")


def test_json_is_one_object() -> None:
    told = json.loads(explain("rules.hg", "cheap", '{"name": "IBM", "price": 12}', "--json").stdout)
    assert told["matched"] is True
    assert told["conditions"][1] == {"text": "price < 100", "truth": True, "values": {"price": 12.0}, "note": None}
    assert told["blocking"] == ["name = 'IBM'"]


def test_an_event_comes_from_a_file_or_from_standard_input() -> None:
    Path("event.json").write_text('{"name": "IBM", "price": 12}')
    for result in (explain("rules.hg", "cheap", "event.json"), explain("rules.hg", "cheap", "-", given='{"price": 1}')):
        assert result.exit_code == 0
    assert explain("-", "cheap", "event.json", given=RULES).stdout.startswith("cheap matches")


@pytest.mark.parametrize("given", [json.dumps(TICKS), "\n".join(map(json.dumps, TICKS)), json.dumps({"stock": TICKS})])
def test_a_sequence_takes_a_list_lines_or_streams(given: str) -> None:
    result = explain("rules.hg", "fall", "-", given=given)
    assert result.exit_code == 0, result.stderr
    assert "run [1, 1] at NEXT e2: moved on by event 1" in result.stdout
    assert "1 match(es), 1 run(s) still waiting" in result.stdout


def test_the_pictures_are_printed_alone() -> None:
    assert explain("rules.hg", "fall", "--dot").stdout.startswith('digraph "automaton of fall" {')
    assert explain("rules.hg", "cheap", "--mermaid").stdout.startswith("flowchart TD\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rules.hg", "chep"), "there is no subscription chep in this plan"),
        (("rules.hg", "cheap", '{"price": }'), "EVENT is not JSON"),
        (("rules.hg", "cheap", "absent.json"), "cannot read absent.json"),
        (("rules.hg", "cheap", '{"price": "dear"}'), "the event cannot be used"),
        (("rules.hg", "cheap", "[]"), "there is no event to explain"),
        (("-", "cheap", "-"), "RULES and EVENT cannot both be standard input"),
    ],
)
def test_wrong_input_is_exit_code_1(arguments: tuple[str, ...], message: str) -> None:
    result = explain(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    told = explain(*arguments, "--json")
    assert told.exit_code == 1
    assert message in json.loads(told.stderr)["message"]


def test_mistakes_in_the_rules_are_drawn() -> None:
    Path("rules.hg").write_text("CREATE SUBSCRIPTION a AS price <;")
    result = explain("rules.hg", "a")
    assert result.exit_code == 1
    assert "^" in result.stderr


def test_it_says_which_others_cover_the_subscription(tmp_path: Path) -> None:
    rules = tmp_path / "rules.hg"
    rules.write_text(
        "CREATE STREAM s (x DOUBLE); CREATE SUBSCRIPTION wide ON s AS x > 0; CREATE SUBSCRIPTION narrow ON s AS x > 5;"
    )
    told = CliRunner().invoke(main, ["explain", str(rules), "narrow"])
    assert told.output.endswith("  covered: whatever it matches, wide matches too\n")
    whole = CliRunner().invoke(main, ["explain", str(rules), "wide", "--json"])
    assert json.loads(whole.output)["covered_by"] == []

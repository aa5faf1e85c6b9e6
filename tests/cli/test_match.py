"""`headgate match`: files in, matches out, and an account of what could not be used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from headgate import Subscriptions
from headgate.cli import main
from headgate.events import Limits, read
from headgate.testing import oracle_match

SOURCE = Path(__file__).parents[2] / "src"
FIELDS = ["id", "stream", "event", "subscription", "output", "labels"]
RULES = """\
CREATE STREAM stock (name STRING, price DOUBLE, vol BIGINT);
CREATE SUBSCRIPTION cheap ON stock WITH (owner = 'desk 4') AS name = 'IBM' AND price < 100;
CREATE SUBSCRIPTION big ON stock AS vol > 500;
"""
EVENTS: list[dict[str, Any]] = [
    {"name": "IBM", "price": 99.5, "vol": 10},
    {"name": "SAP", "price": 99.5, "vol": 10},
    {"name": "IBM", "price": 1.5, "vol": 1000},
]
PAIRS = [(0, "cheap"), (2, "big"), (2, "cheap")]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("rules.hg").write_text(RULES)
    Path("events.jsonl").write_text("".join(json.dumps(e) + "\n" for e in EVENTS))
    return tmp_path


def match(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(main, ["match", *arguments], input=given)


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def pairs(result: Result) -> list[tuple[int, str]]:
    assert result.exit_code == 0, result.output
    return [(row["event"], row["subscription"]) for row in objects(result.stdout)]


def test_a_thousand_events_give_one_json_line_per_match() -> None:
    events = [{"name": "IBM" if i % 3 else "SAP", "price": i / 7, "vol": i} for i in range(1000)]
    Path("events.jsonl").write_text("".join(json.dumps(e) + "\n" for e in events))
    child = subprocess.run(
        [sys.executable, "-m", "headgate.cli", "match", "rules.hg", "events.jsonl", "--json"],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (child.returncode, child.stderr) == (0, "")
    rows = objects(child.stdout)
    expected = oracle_match(Subscriptions.load("rules.hg"), events).to_pylist()
    assert len(rows) == len(expected) > 900
    assert [list(row) for row in rows] == [FIELDS] * len(rows)
    assert [row["id"] for row in rows] == [row["id"] for row in expected]


def test_labels_are_an_object_and_output_is_null_for_a_filter() -> None:
    first = objects(match("rules.hg", "events.jsonl", "--json").stdout)[0]
    assert (first["labels"], first["output"]) == ({"owner": "desk 4"}, None)


def test_people_get_a_line_per_match_and_a_summary_on_stderr() -> None:
    result = match("rules.hg", "events.jsonl")
    assert result.exit_code == 0
    assert (
        result.stdout == "stock 0        cheap  owner=desk 4\nstock 2        big\nstock 2        cheap  owner=desk 4\n"
    )
    assert result.stderr.startswith("3 events, 3 matches in ")


def written(suffix: str) -> str:
    table, path = pa.Table.from_pylist(EVENTS), f"events{suffix}"
    if suffix == ".parquet":
        pq.write_table(table, path)
    elif suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif suffix in (".arrow", ".feather"):
        pa.feather.write_feather(table, path)
    elif suffix == ".xml":
        fields = ["".join(f"<{k}>{v}</{k}>" for k, v in e.items()) for e in EVENTS]
        Path(path).write_text("<all>" + "".join(f"<message>{f}</message>" for f in fields) + "</all>")
    elif suffix == ".json":
        Path(path).write_text(json.dumps(EVENTS))
    else:
        Path(path).write_text("".join(json.dumps(e) + "\n" for e in EVENTS))
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson", ".json", ".parquet", ".csv", ".arrow", ".feather", ".xml"])
def test_every_format_gives_the_same_matches(suffix: str) -> None:
    assert pairs(match("rules.hg", written(suffix), "--json")) == PAIRS


def test_events_come_from_standard_input() -> None:
    assert pairs(match("rules.hg", "-", "--json", given=Path("events.jsonl").read_text())) == PAIRS


def test_rules_come_from_standard_input() -> None:
    assert pairs(match("-", "events.jsonl", "--json", given=RULES)) == PAIRS


def test_both_cannot_come_from_standard_input() -> None:
    result = match("-", "-")
    assert (result.exit_code, result.stderr) == (1, "error: RULES and EVENTS cannot both be standard input\n")


def test_a_bad_event_is_told_and_the_others_match() -> None:
    bad = '{"name": "IBM", "price": "x"}\n{"name": "IBM", "price": 5}\noops\n'
    result = match("rules.hg", "-", given=bad)
    assert result.exit_code == 0
    assert result.stdout == "stock 1        cheap  owner=desk 4\n"
    assert result.stderr.splitlines()[1:] == [
        "2 of the events could not be used:",
        "  event 0: line 1: price: the text 'x' is not a DOUBLE",
        "  event 2: line 3: not JSON: unexpected character, expected a JSON value (at character 1)",
        "  hint: --errors FILE keeps them all",
    ]


def test_of_many_bad_events_the_first_few_are_shown() -> None:
    result = match("rules.hg", "-", given="oops\n" * 9)
    assert result.exit_code == 0
    assert "9 of the events could not be used:" in result.stderr
    assert result.stderr.count("not JSON") == 5
    assert "  and 4 more\n" in result.stderr


def test_with_json_the_rejected_are_one_object_on_stderr() -> None:
    result = match("rules.hg", "-", "--json", given='oops\n{"vol": 501}\n')
    told = json.loads(result.stderr)
    assert (told["code"], told["events"], told["rejected"]) == ("event", 2, 1)
    assert told["reasons"][0].startswith("event 0: line 1: not JSON")


def test_rejected_events_are_kept_whole_on_request() -> None:
    assert match("rules.hg", "-", "--errors", "bad.jsonl", given='{"vol": 1}\n{"vol": "x"}\n').exit_code == 0
    (kept,) = objects(Path("bad.jsonl").read_text())
    assert kept == {
        "stream": "stock",
        "event": 1,
        "subscriptions": None,
        "concerned": 0,
        "code": "type",
        "reason": "line 2: vol: the text 'x' is not a BIGINT",
        "text": '{"vol": "x"}',
    }


def test_counts_are_listed_from_the_most_frequent_on() -> None:
    result = match("rules.hg", "events.jsonl", "--output", "counts")
    assert result.stdout == "           2  cheap\n           1  big\n"
    result = match("rules.hg", "events.jsonl", "--output", "counts", "--json")
    assert objects(result.stdout) == [{"subscription": "cheap", "count": 2}, {"subscription": "big", "count": 1}]


def test_matches_go_to_a_file_of_json_lines() -> None:
    result = match("rules.hg", "events.jsonl", "--out", "found.jsonl")
    assert (result.exit_code, result.stdout) == (0, "")
    assert [(row["event"], row["subscription"]) for row in objects(Path("found.jsonl").read_text())] == PAIRS


def test_matches_go_to_a_parquet_file() -> None:
    assert match("rules.hg", "events.jsonl", "--out", "found.parquet").exit_code == 0
    found = pq.read_table("found.parquet")
    assert found.column_names == FIELDS
    assert Counter(found.column("subscription").to_pylist()) == {"cheap": 2, "big": 1}


def test_counts_go_to_a_parquet_file() -> None:
    assert match("rules.hg", "events.jsonl", "--output", "counts", "--out", "found.parquet").exit_code == 0
    assert pq.read_table("found.parquet").to_pydict() == {"subscription": ["cheap", "big"], "count": [2, 1]}


def test_a_run_that_breaks_off_leaves_no_file() -> None:
    Path("events.parquet").write_bytes(b"PAR1 and then nothing")
    result = match("rules.hg", "events.parquet", "--out", "found.jsonl")
    assert result.exit_code == 1
    assert "events.parquet is not a sound Parquet file" in result.stderr
    assert sorted(p.name for p in Path().glob("found*")) == []


def test_a_format_that_cannot_be_told_is_refused() -> None:
    result = match("rules.hg", "events.txt")
    assert result.exit_code == 1
    assert result.stderr.startswith(
        "error: cannot tell the format of events.txt by its suffix '.txt'\n  hint: supported"
    )
    result = match("rules.hg", "events.jsonl", "--out", "found.xls")
    assert result.exit_code == 1
    assert result.stderr == (
        "error: cannot tell the format of found.xls by its suffix '.xls'\n"
        "  hint: supported are .jsonl, .ndjson, .json, .parquet\n"
    )


def test_a_file_that_cannot_be_written_is_refused() -> None:
    result = match("rules.hg", "events.jsonl", "--out", "nowhere/found.jsonl")
    assert result.exit_code == 1
    assert result.stderr == "error: cannot write nowhere/found.jsonl: No such file or directory\n"


TWO = "CREATE STREAM a (x BIGINT); CREATE STREAM b (x BIGINT);" + "".join(
    f"CREATE SUBSCRIPTION on_{s} ON {s} AS x > 1;" for s in "ab"
)


def test_several_streams_need_to_be_told_apart() -> None:
    Path("two.hg").write_text(TWO)
    result = match("two.hg", "-", given='{"x": 2}')
    assert result.exit_code == 1
    assert result.stderr == (
        "error: RULES has subscriptions on several streams\n  hint: say --stream with one of a, b\n"
    )
    assert pairs(match("two.hg", "-", "--json", "--stream", "b", given='{"x": 2}')) == [(0, "on_b")]


def test_an_unknown_stream_is_refused() -> None:
    result = match("rules.hg", "events.jsonl", "--stream", "stok")
    assert (result.exit_code, result.stderr) == (1, "error: there is no stream stok\n  hint: RULES has stock\n")


def test_a_script_without_subscriptions_is_refused() -> None:
    result = match("-", "events.jsonl", given="-- nothing\n")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: RULES has no subscriptions\n")


def test_mistakes_in_the_rules_are_drawn_on_stderr() -> None:
    result = match("-", "events.jsonl", given="CREATE SUBSCRIPTION a AS x >;")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("standard input, line 1, column 29: ")
    told = json.loads(match("-", "events.jsonl", "--json", given="CREATE SUBSCRIPTION a AS x >;").stderr)
    assert (told["code"], told["line"], told["column"]) == ("syntax", 1, 29)


def test_a_sequence_is_matched_over_several_events(tmp_path: Path) -> None:
    script = "CREATE STREAM s (x BIGINT); CREATE SUBSCRIPTION q AS SELECT b.x AS x FROM s AS a NEXT {TRUE} s AS b;"
    events = tmp_path / "two.jsonl"
    events.write_text('{"x": 1}\n{"x": 2}\n')
    result = match("-", str(events), "--json", given=script)
    assert [json.loads(line)["output"] for line in result.stdout.splitlines()] == [{"x": 2}]


@pytest.mark.parametrize("output", ["matches", "counts"])
def test_a_sequence_goes_on_from_batch_to_batch(output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "CREATE STREAM s (x BIGINT); CREATE SUBSCRIPTION q AS SELECT b.x AS x FROM s AS a NEXT {TRUE} s AS b;"
    # The file is cut into one batch of each line.
    monkeypatch.setattr("headgate.cli.match.read", partial(read, limits=Limits(batch_rows=1)))
    Path("three.jsonl").write_text('{"x": 1}\n{"x": 2}\n{"x": 3}\n')
    rows = objects(match("-", "three.jsonl", "--json", "--output", output, given=script).stdout)
    assert (rows if output == "counts" else len(rows)) == (
        [{"subscription": "q", "count": 2}] if output == "counts" else 2
    )


def test_events_from_a_live_pipe_are_matched_as_they_come(tmp_path: Path) -> None:
    """One event is written, its match awaited, then the next: nothing is held back until the end."""
    rules = tmp_path / "live.hg"
    rules.write_text("CREATE STREAM s (x BIGINT, at BIGINT) TIME at;\nCREATE SUBSCRIPTION big AS x > 3;\n")
    for options in ([], ["--json"]):
        command = [sys.executable, "-m", "headgate.cli", "match", str(rules), "-", *options]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
            assert run.stdin is not None
            assert run.stdout is not None
            for number in range(3):
                run.stdin.write(b'{"x": 5, "at": %d}\n' % number)
                run.stdin.flush()
                assert b"big" in run.stdout.readline()
            run.stdin.close()
            assert run.stdout.read() == b""
            assert run.wait(60) == 0


def test_a_pause_does_not_part_the_events_of_one_instant(tmp_path: Path) -> None:
    """A run may go on only if no event of the instant fits theta; half of an instant must not be decided."""
    rules = tmp_path / "live.hg"
    rules.write_text(
        "CREATE STREAM s (x BIGINT, at BIGINT) TIME at;\n"
        "CREATE SUBSCRIPTION up AS SELECT e1.x AS a, e2.x AS b FROM FILTER {x = 1} (s) NEXT {$2.x > $1.x} s;\n"
        "CREATE SUBSCRIPTION any AS x > 0;\n"
    )
    command = [sys.executable, "-m", "headgate.cli", "match", str(rules), "-", "--json", "--stream", "s"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        found = []
        for event in ({"x": 1, "at": 1}, {"x": 5, "at": 2}, {"x": 6, "at": 2}):
            run.stdin.write(json.dumps(event).encode() + b"\n")
            run.stdin.flush()
            found.append(json.loads(run.stdout.readline())["subscription"])
        rest, told = run.communicate(timeout=60)
    assert found == ["any"] * 3
    assert [json.loads(line)["output"] for line in rest.splitlines()] == [{"a": 1, "b": 5}, {"a": 1, "b": 6}]
    assert told == b"", "no event is late"

"""`headgate check`: every mistake, drawn for people and as objects for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headgate.cli import main

FIVE = """\
CREATE STREAM stock (name STRING, price DOUBLE, vol BIGINT, at TIMESTAMP) TIME at;
CREATE SUBSCRIPTION misspelt ON stock AS prize < 100;
CREATE SUBSCRIPTION text ON stock AS name > 5;
CREATE SUBSCRIPTION nowhere ON stok AS price < 100;
CREATE SUBSCRIPTION broken ON stock AS price < AND vol > 1;
CREATE SUBSCRIPTION unbound ON stock AS vol > 5 AND ?people > 50;
CREATE SUBSCRIPTION fine ON stock AS vol > 5;
"""
PLACES = [(2, 42), (3, 45), (4, 32), (5, 48), (6, 53)]


def check(*arguments: str, given: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["check", *arguments], input=given)


@pytest.fixture
def five(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("five.hg").write_text(FIVE)
    return "five.hg"


def test_five_mistakes_are_five_drawings_and_exit_code_1(five: str) -> None:
    result = check(five)
    assert result.exit_code == 1
    assert result.output == (
        """\
five.hg, line 2, column 42: stream stock has no attribute prize
  CREATE SUBSCRIPTION misspelt ON stock AS prize < 100;
                                           ^^^^^
  hint: did you mean price?

five.hg, line 3, column 45: BIGINT cannot be compared with STRING
  CREATE SUBSCRIPTION text ON stock AS name > 5;
                                              ^
  hint: text stands in single quotes, numbers do not

five.hg, line 4, column 32: there is no stream stok
  CREATE SUBSCRIPTION nowhere ON stok AS price < 100;
                                 ^^^^
  hint: did you mean stock?

five.hg, line 5, column 48: 'AND' does not fit here
  CREATE SUBSCRIPTION broken ON stock AS price < AND vol > 1;
                                                 ^^^
  hint: expected a name or a value

five.hg, line 6, column 53: nothing binds ?people here
  CREATE SUBSCRIPTION unbound ON stock AS vol > 5 AND ?people > 50;
                                                      ^^^^^^^
  hint: a positive call or GRAPH with ?people must stand in the same AND

five.hg: 5 mistakes
"""
    )


def test_with_json_each_mistake_is_one_object(five: str) -> None:
    result = check(five, "--json")
    assert result.exit_code == 1
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(t["line"], t["column"]) for t in told] == PLACES
    assert [t["code"] for t in told] == ["unknown", "type", "unknown", "syntax", "binding"]
    assert all(set(t) == {"code", "message", "hint", "line", "column", "excerpt"} for t in told)
    assert told[0]["excerpt"] == FIVE.splitlines()[1]
    assert told[0]["hint"] == "did you mean price?"


def test_a_sound_script_is_counted_by_stream(tmp_path: Path) -> None:
    rules = tmp_path / "rules.hg"
    rules.write_text(
        "CREATE STREAM a (x BIGINT); CREATE STREAM b (y BIGINT);"
        "CREATE SUBSCRIPTION one ON b AS y > 1; CREATE SUBSCRIPTION two ON b AS y > 2;"
        "CREATE SUBSCRIPTION three ON a AS x > 1"
    )
    result = check(str(rules))
    assert result.exit_code == 0
    assert result.stdout == f"{rules}: no mistakes: 1 subscription on a, 2 subscriptions on b\n"


def test_a_sound_script_prints_nothing_with_json() -> None:
    result = check("-", "--json", given="CREATE SUBSCRIPTION one AS x > 1;")
    assert (result.exit_code, result.output) == (0, "")


def test_a_script_without_subscriptions_is_no_mistake() -> None:
    assert check("-", given="-- nothing yet\n").stdout == "standard input: no mistakes, and no subscriptions\n"


def test_a_mistake_on_standard_input_is_named_so() -> None:
    result = check("-", given="CREATE SUBSCRIPTION one AS x >;")
    assert result.stdout.startswith("standard input, line 1, column 31: ")
    assert result.stdout.endswith("\nstandard input: 1 mistake\n")


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    rules = tmp_path / "rules.hg"
    rules.write_bytes(b"\xef\xbb\xbfCREATE SUBSCRIPTION one AS x > 1;")
    assert check(str(rules)).exit_code == 0
    assert check("-", given=rules.read_bytes()).exit_code == 0


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    rules = tmp_path / "rules.hg"
    rules.write_bytes(b"\xff\xfe\x00")
    assert check(str(rules)).stdout == f"error: {rules} is not UTF-8 text\n"
    result = check("-", given=b"\xff\xfe\x00")
    assert (result.exit_code, result.stdout) == (1, "error: standard input is not UTF-8 text\n")


def test_a_sequence_and_a_graph_are_parsed() -> None:
    script = """
        PREFIX : <http://example.org/>;
        CREATE STREAM stock (name STRING, price DOUBLE, doc GRAPH, at TIMESTAMP) TIME at;
        CREATE SUBSCRIPTION rise AS SELECT * FROM stock NEXT {$2.price > $1.price} stock;
        CREATE SUBSCRIPTION selling ON stock AS GRAPH { _:H a :Selling };
    """
    assert check("-", given=script).exit_code == 0
    result = check("-", given=script.replace("NEXT {", "NEXT {{"))
    assert result.exit_code == 1
    assert "standard input, line 4, column " in result.stdout

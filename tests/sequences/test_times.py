"""Streams with ticks, with timestamps and without TIME in one book: none moves the time of another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headgate as hg

SCRIPT = """
CREATE STREAM rows (n BIGINT);
CREATE STREAM ticks (n BIGINT, at BIGINT) TIME at;
CREATE STREAM clocks (n BIGINT, at TIMESTAMP) TIME at;
"""
PAIRS = {
    "rows": "SELECT a.n AS a, b.n AS b FROM rows AS a NEXT {TRUE} rows AS b",
    "ticks": "SELECT a.n AS a, b.n AS b FROM ticks AS a NEXT {TRUE} ticks AS b",
    "clocks": "SELECT a.n AS a, b.n AS b FROM clocks AS a NEXT {TRUE} clocks AS b",
}
SILENCE = {
    "rows": "SELECT a.n AS a FROM rows AS a ABSENT {$2.n > 100} rows WITHIN 2",
    "ticks": "SELECT a.n AS a FROM ticks AS a ABSENT {$2.n > 100} ticks WITHIN 2",
    "clocks": "SELECT a.n AS a FROM clocks AS a ABSENT {$2.n > 100} clocks WITHIN 2 SECONDS",
}
SHORT = {
    "rows": PAIRS["rows"].replace("TRUE", "DUR <= 3 AND $2.n > 2"),
    "ticks": PAIRS["ticks"].replace("TRUE", "DUR <= 3 AND $2.n > 2"),
    "clocks": PAIRS["clocks"].replace("TRUE", "DUR <= 3 SECONDS AND $2.n > 2"),
}
BATCHES: list[dict[str, list[dict[str, Any]]]] = [
    {
        "rows": [{"n": 1}, {"n": 2}],
        "ticks": [{"n": 1, "at": 1}, {"n": 2, "at": 2}],
        "clocks": [{"n": n, "at": f"2026-01-01T00:00:0{n}Z"} for n in (1, 2)],
    },
    {
        "rows": [{"n": 3}],
        "ticks": [{"n": 3, "at": 3}],
        "clocks": [{"n": 3, "at": "2026-01-01T00:00:03Z"}],
    },
    {"rows": [{"n": 4}], "ticks": [{"n": 4, "at": 4}], "clocks": [{"n": 4, "at": "2026-01-01T00:00:04Z"}]},
]


def book(texts: dict[str, str]) -> hg.Subscriptions:
    made = hg.Subscriptions().extend(SCRIPT)
    for name, text in texts.items():
        made.add(name, text)
    return made


def matches(plan: hg.Plan) -> dict[str, list[tuple[int, str]]]:
    """What each subscription gives in three batches; nothing may be late."""
    found: dict[str, list[tuple[int, str]]] = {}
    with plan.session() as session:
        for batch in BATCHES:
            for row in session.feed(batch).to_pylist():
                found.setdefault(row["subscription"], []).append((row["event"], row["output"]))
        assert session.errors().num_rows == 0
    return found


def apart(texts: dict[str, str]) -> dict[str, list[tuple[int, str]]]:
    return {name: matches(book({name: text}).compile())[name] for name, text in texts.items()}


@pytest.mark.parametrize("texts", [PAIRS, SILENCE, SHORT])
def test_sequences_of_different_times_in_one_book_give_what_each_gives_alone(texts: dict[str, str]) -> None:
    assert matches(book(texts).compile()) == apart(texts)


def test_the_rows_of_a_stream_without_time_do_not_wait_for_the_end_of_an_epoch_of_others() -> None:
    with book(PAIRS).compile().session() as session:
        found = session.feed(BATCHES[0], until=2).to_pylist()
        assert [row["subscription"] for row in found] == ["rows"]


def test_what_is_added_to_a_compiled_book_keeps_its_own_time() -> None:
    made = book({"ticks": SILENCE["ticks"]})
    made.compile()
    made.add("rows", SILENCE["rows"]).add("clocks", SILENCE["clocks"])
    assert matches(made.compile()) == apart(SILENCE)


def test_a_saved_plan_keeps_the_times_apart(tmp_path: Path) -> None:
    book(SILENCE).compile().save(tmp_path / "plan")
    assert matches(hg.Plan.open(tmp_path / "plan")) == apart(SILENCE)


def test_a_published_stream_keeps_the_time_of_what_it_is_made_of() -> None:
    made = book({"p": "SELECT a.n AS n FROM rows AS a NEXT {TRUE} rows PUBLISH out", **SILENCE})
    made.add("q", "SELECT a.n AS n FROM out AS a NEXT {TRUE} rows")
    assert [event for event, _ in matches(made.compile())["q"]] == [2, 3]


def refusal(texts: dict[str, str], text: str) -> str:
    made = book(texts)
    with pytest.raises(hg.LanguageError) as refused:
        made.add("wrong", text)
    assert refused.value.place is not None
    assert "wrong" not in made
    made.compile()
    return str(refused.value)


def test_a_stream_without_time_is_refused_in_a_sequence_with_one_that_has_it() -> None:
    text = "SELECT a.n AS n FROM rows AS a NEXT {TRUE} ticks"
    assert "rows has no TIME, but ticks in the same sequence does" in refusal({}, text)


def test_ticks_and_timestamps_are_refused_in_one_sequence() -> None:
    text = "SELECT a.n AS n FROM ticks AS a NEXT {TRUE} clocks"
    expected = "the TIME of ticks is BIGINT and that of clocks, in the same sequence, is TIMESTAMP"
    assert expected in refusal({}, text)


def test_a_union_of_different_times_is_refused() -> None:
    assert "rows has no TIME" in refusal({}, "SELECT n FROM (rows UNION ticks)")


def test_different_times_are_refused_through_a_published_stream() -> None:
    texts = {"p": "SELECT a.n AS n FROM rows AS a NEXT {TRUE} rows PUBLISH out"}
    assert "rows has no TIME" in refusal(texts, "SELECT a.n AS n FROM out AS a NEXT {TRUE} ticks")


def test_a_second_publisher_of_a_stream_keeps_the_time_of_the_first() -> None:
    texts = {"p": "SELECT a.n AS n FROM rows AS a NEXT {TRUE} rows PUBLISH out"}
    text = "SELECT a.n AS n FROM ticks AS a NEXT {TRUE} ticks PUBLISH out"
    assert "rows has no TIME" in refusal(texts, text)

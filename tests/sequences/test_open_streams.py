"""Streams that nobody declared: what an inner pattern gives of them is known, of the type ANY."""

from __future__ import annotations

import json
from typing import Any

import pytest

import headgate as hg


def outputs(book: hg.Subscriptions, name: str, **events: list[Any]) -> list[dict[str, Any]]:
    found = book.compile().match(events).to_pylist()
    return [json.loads(row["output"]) for row in found if row["subscription"] == name]


def refusal(book: hg.Subscriptions, text: str) -> str:
    with pytest.raises((hg.LanguageError, hg.LanguageErrors)) as raised:
        book.add("wrong", text)
    assert "wrong" not in book
    book.compile()
    return str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT m AS m FROM (SELECT name AS n FROM u)", "no event of this sequence has an attribute m"),
        ("SELECT e1.seen AS m FROM (SELECT name AS n FROM u)", "column 8: this pattern has no attribute seen"),
        ("SELECT n FROM FILTER {m > 1} ((SELECT name AS n FROM u))", "column 23: this pattern has no attribute m"),
        ("SELECT bids IS NULL AS n FROM (SELECT * FROM u)", "no event of this sequence has an attribute bids"),
    ],
)
def test_an_attribute_that_an_inner_pattern_does_not_give_is_refused(text: str, message: str) -> None:
    assert message in refusal(hg.Subscriptions(), text)


def test_select_star_gives_what_the_text_mentions_whatever_others_know_of_the_stream() -> None:
    book = hg.Subscriptions().add("all", "SELECT * FROM FILTER {name = 'a'} (u)")
    before = outputs(book, "all", u=[{"name": "a", "m": 1}])
    book.add("other", "SELECT m FROM FILTER {m > 0} (u)")
    assert outputs(book, "all", u=[{"name": "a", "m": 1}]) == before == [{"e1_name": "a"}]


def test_a_condition_on_an_inner_pattern_asks_for_what_the_stream_below_holds() -> None:
    text = "SELECT e1.x AS a FROM (SELECT m AS x FROM u) NEXT {$1.x > 5 AND $2.x = 'a'} (SELECT name AS x FROM u)"
    book = hg.Subscriptions().add("q", text)
    events = [{"m": 4}, {"m": 6}, {"name": "b"}, {"name": "a"}]
    assert outputs(book, "q", u=events) == [{"a": 6}]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT y FROM FILTER {y > 5} (u FOLD {TRUE, MAX($2.m) AS y} u)",
        "SELECT x AS y FROM FILTER {x > 5} ((SELECT y AS x FROM u FOLD {TRUE, MAX($2.m) AS y} u))",
    ],
)
def test_a_condition_on_an_aggregate_asks_for_a_kind_and_rejects_no_event(text: str) -> None:
    book = hg.Subscriptions().add("q", text)
    matches, errors = book.compile().match({"u": [{"m": 4}, {"m": 6}, {"m": "text"}]}, errors="collect")
    assert [json.loads(row["output"]) for row in matches.to_pylist()] == [{"y": 6}] * 3
    assert len(errors) == 0


def test_what_is_published_of_an_undeclared_stream_is_of_any_kind() -> None:
    book = hg.Subscriptions().add("p", "SELECT m AS x FROM u PUBLISH out")
    book.add("q", "SELECT x FROM FILTER {x > 5} (out)").add("r", "SELECT x FROM FILTER {x = 'a'} (out)")
    events = [{"m": 4}, {"m": 6}, {"m": "a"}, {"m": [5, 7]}]
    assert outputs(book, "q", u=events) == [{"x": 6}, {"x": [5, 7]}]
    assert outputs(book, "r", u=events) == [{"x": "a"}]


def test_a_union_of_inner_patterns_over_undeclared_streams_has_their_columns() -> None:
    book = hg.Subscriptions().add("q", "SELECT * FROM ((SELECT m AS x FROM u) UNION (SELECT name AS x FROM v))")
    assert outputs(book, "q", u=[{"m": 6}], v=[{"name": "b"}]) == [{"e1_x": 6}, {"e1_x": "b"}]


def test_a_published_stream_declares_nothing_for_others() -> None:
    book = hg.Subscriptions().add("p", "SELECT m AS x FROM u PUBLISH out").add("q", "SELECT y FROM FILTER {y = 1} (v)")
    assert outputs(book, "q", v=[{"y": 1}]) == [{"y": 1}]


def test_a_union_reads_of_a_declared_stream_only_what_it_declares() -> None:
    book = hg.Subscriptions().stream("s", {"name": "string", "at": "bigint"}, time="at")
    book.stream("t", {"name": "string", "doc": "graph", "at": "bigint"}, time="at")
    book.add("q", "SELECT * FROM (s UNION t)")
    event = {"name": "a", "doc": "_:H <http://example.org/p> 1 .", "at": 1}
    (output,) = book.compile().match({"s": [event]}).column("output").to_pylist()
    assert json.loads(output) == {"e1_name": "a", "e1_doc": None, "e1_at": 1}


def test_an_aggregate_of_numbers_leaves_out_what_is_no_number() -> None:
    book = hg.Subscriptions()
    book.add("q", "SELECT s AS s FROM u FOLD {TRUE, TRUE, STDDEV($2.raw) AS s} p")
    matches, errors = book.compile().match({"u": [{"raw": b"a"}], "p": [{"raw": 1.0}, {"raw": 3.0}]}, errors="collect")
    assert [json.loads(o)["s"] for o in matches.column("output").to_pylist()] == [None, pytest.approx(2**0.5)]
    assert len(errors) == 0

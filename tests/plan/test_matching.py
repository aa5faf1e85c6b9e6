"""`Plan.match`: what comes in, what comes out, in which order, and what is told about what cannot be used."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyroaring import BitMap64

from headgate import EventError, Subscriptions, UsageError
from headgate.results import MATCHES
from headgate.testing import oracle_match

EVENTS: list[dict[str, Any]] = [
    {"name": "IBM", "price": 50.0, "vol": 10},
    {"name": "SAP", "price": 150.0, "vol": 10},
    {"name": "IBM", "price": 150.0, "vol": 1000},
    {"price": 1.0},
]


def book() -> Subscriptions:
    made = Subscriptions().stream("stock", {"name": "string", "price": "double", "vol": "bigint"})
    made.add("ibm", "name = 'IBM'", labels={"owner": "desk 4"})
    made.add("big", "vol > 500")
    return made.add("low", "price < 100")


def pairs(table: pa.Table) -> list[tuple[int, str]]:
    return [(row["event"], row["subscription"]) for row in table.to_pylist()]


PAIRS = [(0, "ibm"), (0, "low"), (2, "big"), (2, "ibm"), (3, "low")]


def test_matches_have_the_columns_of_the_design() -> None:
    table = book().compile().match(EVENTS)
    assert table.schema == MATCHES
    assert table.column_names == ["id", "stream", "event", "subscription", "output", "labels"]
    assert pairs(table) == PAIRS
    assert set(table.column("stream").to_pylist()) == {"stock"}
    assert table.column("output").null_count == len(PAIRS)


def test_labels_are_json_and_null_where_there_are_none() -> None:
    rows = book().compile().match(EVENTS).to_pylist()
    assert json.loads(rows[0]["labels"]) == {"owner": "desk 4"}
    assert rows[1]["labels"] is None


@pytest.mark.parametrize(
    "events",
    [
        EVENTS,
        iter(EVENTS),
        pa.Table.from_pylist(EVENTS),
        pa.RecordBatch.from_pylist(EVENTS),
        pd.DataFrame(EVENTS),
        {"stock": EVENTS},
        {"stock": pa.Table.from_pylist(EVENTS)},
    ],
    ids=["dicts", "iterator", "table", "batch", "pandas", "by stream", "table by stream"],
)
def test_every_form_of_events_gives_the_same_matches(events: Any) -> None:
    assert book().compile().match(events).equals(oracle_match(book(), EVENTS))


def test_no_events_give_an_empty_table_of_the_same_shape() -> None:
    table = book().compile().match([])
    assert (table.num_rows, table.schema) == (0, MATCHES)


def test_pairs_are_the_same_matches_without_ids() -> None:
    table = book().compile().match(EVENTS, output="pairs")
    assert table.column_names == ["stream", "event", "subscription"]
    assert sorted(pairs(table)) == PAIRS
    assert book().compile().match([], output="pairs").column_names == ["stream", "event", "subscription"]


def test_counts_are_by_subscription_and_leave_out_those_without_a_match() -> None:
    made = book().add("never", "vol < 0")
    counts = made.compile().match(EVENTS, output="counts")
    assert counts.to_pydict() == {"subscription": ["big", "ibm", "low"], "count": [1, 2, 2]}


def test_bitmaps_hold_the_rows_of_each_subscription() -> None:
    found = book().compile().match(EVENTS, output="bitmaps")
    assert found == {"big": BitMap64([2]), "ibm": BitMap64([0, 2]), "low": BitMap64([0, 3])}


@pytest.mark.parametrize("output", ["pairs", "counts", "bitmaps"])
def test_no_output_shows_what_was_removed(output: str) -> None:
    made = book()
    made.compile()
    made.remove("ibm")
    found = made.compile().match(EVENTS, output=output)
    names = found if isinstance(found, dict) else found.column("subscription").to_pylist()
    assert set(names) == {"big", "low"}


def test_rows_are_ordered_by_time_then_event_then_subscription() -> None:
    made = Subscriptions().stream("s", {"x": "bigint", "t": "bigint"}, time="t")
    made.add("b", "x > 0").add("a", "x > 0")
    table = made.compile().match([{"x": 1, "t": 5}, {"x": 1, "t": 3}, {"x": 1, "t": 3}])
    assert pairs(table) == [(1, "a"), (1, "b"), (2, "a"), (2, "b"), (0, "a"), (0, "b")]


def test_several_streams_are_merged_by_time() -> None:
    made = Subscriptions().stream("b", {"x": "bigint", "t": "bigint"}, time="t")
    made.stream("a", {"x": "bigint", "t": "bigint"}, time="t")
    made.add("on_a", "x > 0", on="a").add("on_b", "x > 0", on="b")
    table = made.compile().match({"b": [{"x": 1, "t": 1}, {"x": 1, "t": 4}], "a": [{"x": 1, "t": 4}, {"x": 1, "t": 2}]})
    found = list(zip(table.column("stream").to_pylist(), table.column("event").to_pylist(), strict=True))
    assert found == [("b", 0), ("a", 1), ("a", 0), ("b", 1)]


def test_a_subscription_sees_only_its_stream() -> None:
    made = Subscriptions().stream("a", {"x": "bigint"}).stream("b", {"x": "bigint"})
    made.add("on_a", "x > 0", on="a").add("on_b", "x > 0", on="b")
    assert made.compile().match({"a": [{"x": 1}]}).column("subscription").to_pylist() == ["on_a"]


def test_a_bad_event_raises_and_says_which() -> None:
    with pytest.raises(EventError) as caught:
        book().compile().match([EVENTS[0], {"vol": "x"}, {"vol": "y"}])
    assert caught.value.message == "event 1 of stream stock: vol: the text 'x' is not a BIGINT (and 1 more)"
    assert caught.value.hint == 'errors="collect" matches the others'


def test_bad_events_are_collected_and_the_others_match() -> None:
    matches, errors = book().compile().match([{"vol": "x"}, *EVENTS], errors="collect")
    assert pairs(matches) == [(event + 1, name) for event, name in PAIRS]
    assert errors.to_pylist() == [
        {
            "stream": "stock",
            "event": 0,
            "subscriptions": None,
            "concerned": 0,
            "code": "type",
            "reason": "vol: the text 'x' is not a BIGINT",
            "text": "{'vol': 'x'}",
        }
    ]


def test_without_bad_events_the_collected_errors_are_empty() -> None:
    matches, errors = book().compile().match(EVENTS, errors="collect")
    assert (matches.num_rows, errors.num_rows) == (5, 0)
    assert errors.column_names == ["stream", "event", "subscriptions", "concerned", "code", "reason", "text"]


@pytest.mark.parametrize("another", ["x > 5", "y > 5"])
def test_what_another_subscription_reads_does_not_decide_which_events_take_part(another: str) -> None:
    made = Subscriptions().stream("s", {"x": "bigint", "y": "bigint"}).add("a", "x > 0").add("b", another)
    matches, errors = made.compile().match([{"x": 1, "y": "not a number"}, {"x": 1}], errors="collect")
    assert pairs(matches) == [(1, "a")]
    assert errors.column("event").to_pylist() == [0]


def test_a_column_of_a_table_that_has_its_declared_type_is_read_only_if_it_is_needed() -> None:
    made = Subscriptions().stream("s", {"x": "bigint", "y": "bigint", "z": "bigint"}).add("a", "x > 0").compile()
    part = made.session().decode("s", pa.table({"x": [1], "y": [2], "z": ["3"]}))
    assert set(part.columns.columns) == {("x",), ("z",)}


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ({"output": "rows"}, "output = 'rows' is unknown", "choose one of matches, pairs, counts, bitmaps"),
        ({"errors": "ignore"}, "errors = 'ignore' is unknown", "choose raise or collect"),
    ],
)
def test_an_unknown_choice_is_refused(arguments: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        book().compile().match(EVENTS, **arguments)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_stream_that_the_book_lacks_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no stream stok") as caught:
        book().compile().match({"stok": EVENTS})
    assert caught.value.hint == "the book has: stock"


def test_events_of_a_book_with_several_streams_must_name_theirs() -> None:
    made = Subscriptions().add("a", "x > 0", on="s").add("b", "x > 0", on="t")
    with pytest.raises(UsageError, match="the book has several streams") as caught:
        made.compile().match([{"x": 1}])
    assert caught.value.hint == "pass {stream: events} for s, t"


def test_an_empty_book_says_so() -> None:
    with pytest.raises(UsageError, match="the book is empty"):
        Subscriptions().compile().match([{"x": 1}])


def test_a_declared_stream_without_subscriptions_matches_nothing() -> None:
    made = Subscriptions().stream("s", {"x": "bigint"})
    assert made.compile().match([{"x": 1}]).num_rows == 0


def test_a_sequence_matches_with_the_events_it_was_made_of() -> None:
    made = (
        Subscriptions()
        .stream("s", {"x": "bigint"})
        .add("q", "SELECT a.x AS p, b.x AS q FROM s AS a NEXT {TRUE} s AS b")
    )
    found = made.compile().match([{"x": 1}, {"x": 2}, {"x": 3}]).to_pylist()
    assert [(m["event"], m["output"]) for m in found] == [(1, '{"p":1,"q":2}'), (2, '{"p":2,"q":3}')]


@pytest.mark.parametrize(
    "text",
    ["a = NULL", "NOT (a = NULL)", "NOT (NULL < a)", "NOT (a <> NULL)", "ALL(a) = NULL", "NOT (ALL(a) = NULL)",
     "NOT (a + 1 = NULL)", "NOT (a < 1 + NULL)", "NOT (t = NULL)", "NOT (a IN (NULL))", "NOT (x = NULL)"],
)  # fmt: skip
def test_an_array_compared_with_null_is_what_the_oracle_says(text: str) -> None:
    """ANY over an empty array is FALSE and ALL is TRUE, whatever it is compared with."""
    book = Subscriptions().stream("s", {"a": "array<bigint>", "t": "array<string>", "x": "bigint"})
    for mode in ("null", "strict", "default"):
        book.add(mode, text, missing=mode)
    rows: list[dict[str, Any]] = [{"a": [], "t": []}, {"a": [1], "t": ["x"]}, {}, {"a": [None], "t": [None]}]
    assert book.compile().match(rows).equals(oracle_match(book, rows))


def test_not_an_empty_array_equal_to_null_is_true() -> None:
    book = Subscriptions().stream("s", {"a": "array<bigint>"}).add("n", "NOT (a = NULL)")
    assert book.compile().match([{"a": []}, {"a": [1]}, {}], output="counts").to_pylist() == [
        {"subscription": "n", "count": 1}
    ]


def test_an_event_without_its_time_stays_behind_the_event_before_it() -> None:
    book = Subscriptions().stream("s", {"x": "bigint", "at": "bigint"}, time="at").add("any", "x > 0")
    rows = [{"x": 1}, {"x": 1, "at": 9}, {"x": 1}, {"x": 1, "at": -5}]
    assert book.compile().match(rows).column("event").to_pylist() == [0, 3, 1, 2]

"""What `headgate.testing` offers must itself be right: it judges the rest."""

from __future__ import annotations

import pytest

from headgate import EventError, Subscriptions, UsageError
from headgate.results import MATCHES
from headgate.schema import Schema
from headgate.testing import (
    FakeClock,
    ReplayableSource,
    SourceStopped,
    oracle_match,
    random_events,
    random_subscriptions,
)

EVERY = Schema.of(
    "s",
    {
        "name": "string",
        "price": "double",
        "vol": "bigint",
        "halted": "boolean",
        "at": "timestamp",
        "tags": "array<string>",
        "bids": "array<double>",
        "venue.city": "string",
        "raw": "binary",
    },
    time="at",
    not_null=["name"],
    defaults={"price": -1.0},
)


# -- the oracle


def test_the_oracle_gives_the_table_of_a_match() -> None:
    book = Subscriptions().add("b", "x > 1", labels={"k": "v"}).add("a", "x > 0").add("off", "x > 0").pause("off")
    table = oracle_match(book, [{"x": 1}, {"x": 2}, {}])
    assert table.schema == MATCHES
    rows = [(row["event"], row["subscription"], row["labels"]) for row in table.to_pylist()]
    assert rows == [(0, "a", None), (1, "a", None), (1, "b", '{"k":"v"}')]


def test_the_oracle_takes_several_streams() -> None:
    book = Subscriptions().add("a", "x > 0", on="s").add("b", "x > 0", on="t")
    assert oracle_match(book, {"s": [{"x": 1}], "t": [{"x": 0}]}).column("subscription").to_pylist() == ["a"]
    with pytest.raises(UsageError, match="the book has 2 streams"):
        oracle_match(book, [{"x": 1}])


def test_the_oracle_refuses_what_cannot_be_used() -> None:
    with pytest.raises(EventError, match="event 1 of stream events: x: the text 'a' is not a DOUBLE"):
        oracle_match(Subscriptions().stream("events", {"x": "double"}).add("a", "x > 0"), [{"x": 1}, {"x": "a"}])


@pytest.mark.parametrize("text", ["SELECT * FROM s NEXT {TRUE} s", "GRAPH { _:H a rdf:List }"])
def test_the_oracle_judges_filters_only(text: str) -> None:
    book = Subscriptions().stream("s", {"x": "bigint", "d": "graph"}).add("a", text)
    with pytest.raises(UsageError, match="subscription a is no plain filter"):
        oracle_match(book, {"s": []})


@pytest.mark.parametrize("seed", range(6))
def test_the_oracle_and_a_plan_agree_on_random_books(seed: int) -> None:
    book = Subscriptions().stream("s", EVERY)
    for number, (name, text) in enumerate(random_subscriptions(EVERY, 40, seed).items()):
        book.add(name, text, missing=("null", "strict", "default", "total")[number % 4])
    events = random_events(EVERY, 50, seed)
    found = oracle_match(book, events)
    assert found.num_rows > 100
    assert book.compile().match(events, errors="collect")[0].equals(found)


# -- generators


def test_the_same_seed_draws_the_same() -> None:
    assert random_events(EVERY, 20, seed=1) == random_events(EVERY, 20, seed=1) != random_events(EVERY, 20, seed=2)
    assert random_subscriptions(EVERY, 20, seed=1) == random_subscriptions(EVERY, 20, seed=1)
    assert random_subscriptions(EVERY, 20, seed=1) != random_subscriptions(EVERY, 20, seed=2)


def test_random_events_fit_their_schema() -> None:
    book = Subscriptions().stream("s", EVERY).add("all", "name IS NOT NULL", missing="default")
    events = random_events(EVERY, 200, seed=5)
    assert book.compile().match(events).num_rows == 200
    assert any("venue" not in e for e in events)
    assert any(e.get("venue", {}).get("city") for e in events)


def test_what_must_be_there_is_there_however_much_is_missing() -> None:
    assert all(set(e) == {"name", "at"} for e in random_events(EVERY, 30, missing=1.0))
    assert all(len(e) == 9 for e in random_events(EVERY, 30, missing=0.0))


def test_a_schema_without_attributes_has_nothing_to_ask() -> None:
    with pytest.raises(UsageError, match="stream s has no attribute to ask about"):
        random_subscriptions(Schema("s", {}), 1)


# -- time and recovery


def test_a_fake_clock_moves_only_when_told() -> None:
    clock = FakeClock(10.0)
    assert clock() == clock() == 10.0
    clock.advance(2.5)
    clock.sleep(1.0)
    clock.sleep(-5.0)
    assert clock() == 13.5


def test_a_fake_clock_does_not_go_back() -> None:
    with pytest.raises(UsageError, match="a clock does not go back"):
        FakeClock().advance(-1)


def test_a_source_gives_all_events_in_batches() -> None:
    assert list(ReplayableSource(range(5), batch=2)) == [[0, 1], [2, 3], [4]]
    assert list(ReplayableSource([], batch=2)) == []


def test_a_source_stops_where_it_is_told_even_within_a_batch() -> None:
    source = ReplayableSource(range(10), batch=4, stop_after=6)
    given: list[list[int]] = []
    with pytest.raises(SourceStopped, match="the source stopped after 6 events") as caught:
        given.extend(source)
    assert given == [[0, 1, 2, 3], [4, 5]]
    assert caught.value.position == source.position == 6


def test_a_source_resumes_where_it_stopped_or_from_a_checkpoint() -> None:
    source = ReplayableSource(range(6), batch=4, stop_after=5)
    with pytest.raises(SourceStopped):
        list(source)
    assert list(source.resumed()) == [[5]]
    assert list(source.resumed(2)) == [[2, 3, 4, 5]]


def test_a_source_may_stop_again() -> None:
    source = ReplayableSource(range(6), batch=2, stop_after=0)
    with pytest.raises(SourceStopped):
        list(source)
    with pytest.raises(SourceStopped) as caught:
        list(source.resumed(stop_after=3))
    assert caught.value.position == 3


def test_a_batch_holds_at_least_one_event() -> None:
    with pytest.raises(UsageError, match="a batch of 0 events"):
        ReplayableSource([], batch=0)

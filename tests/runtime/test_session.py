"""Sessions: the same matches, with the same ids, however the input is cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate import Subscriptions
from headgate.events import decode
from headgate.testing import ReplayableSource, SourceStopped, random_events, random_subscriptions

BOOK = Subscriptions().stream("stock", {"name": "string", "price": "double", "vol": "bigint", "halted": "boolean"})
for _name, _text in random_subscriptions(BOOK.streams["stock"], 30, seed=3).items():
    BOOK.add(_name, _text)
PLAN = BOOK.compile()
EVENTS = random_events(BOOK.streams["stock"], 120, seed=3)
WHOLE = PLAN.match(EVENTS)


def fed(batches: Any) -> pa.Table:
    with PLAN.session() as session:
        return pa.concat_tables([session.feed(batch) for batch in batches])


def test_the_sample_has_matches_to_compare() -> None:
    assert WHOLE.num_rows > 500


@given(st.lists(st.integers(0, len(EVENTS)), max_size=6))
@settings(max_examples=40, deadline=None)
def test_the_cut_into_batches_changes_nothing(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(EVENTS)]
    assert fed(EVENTS[a:b] for a, b in pairwise(edges)).equals(WHOLE)


def test_rejected_events_count_as_rows() -> None:
    with PLAN.session() as session:
        session.feed([{"vol": "x"}, {"vol": 1}])
        session.feed([{"vol": 1}, {"vol": "y"}])
        assert session.errors().column("event").to_pylist() == [0, 3]


def test_rows_of_different_streams_are_counted_apart() -> None:
    plan = Subscriptions().add("a", "x > 0", on="s").add("b", "x > 0", on="t").compile()
    with plan.session() as session:
        session.feed({"s": [{"x": 1}, {"x": 1}]})
        rows = session.feed({"s": [{"x": 1}], "t": [{"x": 1}]}).to_pylist()
    assert sorted((row["stream"], row["event"]) for row in rows) == [("s", 2), ("t", 0)]


def test_what_was_decoded_before_is_taken_as_it_is() -> None:
    schema = BOOK.streams["stock"]
    parts = [
        decode(EVENTS[:50], schema, PLAN.needs("stock")),
        decode(EVENTS[50:], schema, PLAN.needs("stock"), first=50),
    ]
    assert fed({"stock": part} for part in parts).equals(WHOLE)


def test_ids_are_unique_and_the_same_in_another_plan_of_the_same_subscriptions() -> None:
    other = Subscriptions().stream("stock", BOOK.streams["stock"]).add("extra", "vol > 100000")
    other.compile()
    for name in reversed(list(BOOK)):
        other.add(name, BOOK[name].text)
    again = other.compile().match(EVENTS)
    assert again.column("id").equals(WHOLE.column("id"))
    assert len(set(WHOLE.column("id").to_pylist())) == WHOLE.num_rows


def test_a_new_text_under_the_same_name_keeps_the_id_of_the_match() -> None:
    book = Subscriptions().add("a", "x > 0")
    before = book.compile().match([{"x": 5.0}]).column("id")
    assert book.replace("a", "x > 1").compile().match([{"x": 5.0}]).column("id").equals(before)


def test_ids_differ_by_stream_and_by_event() -> None:
    plan = Subscriptions().add("a", "x > 0", on="s").add("b", "x > 0", on="t").compile()
    ids = plan.match({"s": [{"x": 1}, {"x": 1}], "t": [{"x": 1}]}).column("id").to_pylist()
    assert len(set(ids)) == 3
    assert all(len(i) == 32 and int(i, 16) >= 0 for i in ids)


def test_a_source_that_stops_and_resumes_gives_every_match_once() -> None:
    source = ReplayableSource(EVENTS, batch=16, stop_after=50)
    parts: list[pa.Table] = []
    with PLAN.session() as session:
        with pytest.raises(SourceStopped):
            parts.extend(session.feed(batch) for batch in source)
        parts.extend(session.feed(batch) for batch in source.resumed())
    assert pa.concat_tables(parts).equals(WHOLE)

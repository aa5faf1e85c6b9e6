"""A bucket while the book changes, events come late and nothing comes at all."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.stateful.pipeline import Pipeline, book_of
from tests.sequences.book import STOCK

import headgate as hg
from headgate.errors import PlanError, UsageError
from headgate.runtime.stateful.buckets import Bucket
from headgate.runtime.stateful.pages import Page
from headgate.runtime.stateful.state_storage import BOOK, HEAD, InMemory
from headgate.runtime.stateful.watermark import Time, Timing
from headgate.schema import Kind, Schema

PAIR = "SELECT e1.price AS p, e2.price AS q FROM stock NEXT {$2.name = $1.name} stock"
RISE = "SELECT e1.price AS p, e2.price AS q FROM stock NEXT {$2.price > $1.price} stock"
SILENT = "SELECT e1.price AS p FROM stock ABSENT {$2.name = $1.name} stock WITHIN 10"
NOW = Timing({"stock": 0})


def tick(id: str, name: str, price: float, at: int) -> tuple[str, tuple[Any, ...]]:
    return id, (name, price, 1, at)


def stock(*ticks: tuple[str, tuple[Any, ...]]) -> dict[str, list[tuple[str, tuple[Any, ...]]]]:
    return {"stock": list(ticks)}


def pages(kept: InMemory) -> list[bytes]:
    return [data for name, data in kept.items() if name.startswith("page ") and name != BOOK]


def told(pipeline: Pipeline) -> list[tuple[str, str]]:
    """(subscription, event) of the matches so far."""
    return sorted((m[1], m[2]) for m in pipeline.found)


def test_an_epoch_waits_until_the_watermark_has_passed_it() -> None:
    pipeline = Pipeline(book_of({"pair": PAIR}, [STOCK]), Timing({"stock": 5}))
    pipeline.batch(stock(tick("a", "IBM", 1, 1), tick("b", "IBM", 2, 3)))
    pipeline.batch(stock(tick("c", "SAP", 1, 8)))
    assert told(pipeline) == []
    pipeline.forget()
    pipeline.batch(stock(tick("d", "SAP", 1, 9)))
    assert told(pipeline) == [("pair", "b")]


def test_a_late_event_is_told_once_with_its_lateness_however_many_groups_want_it() -> None:
    pipeline = Pipeline(book_of({"pair": PAIR, "rise": RISE}, [STOCK]), NOW)
    pipeline.batch(stock(tick("a", "IBM", 1, 10)))
    pipeline.batch(stock(tick("b", "IBM", 2, 7), tick("c", "IBM", 3, 10)))
    assert pipeline.errors == [("b", "it is late by 3 ticks: its epoch is closed already")]
    pipeline.batch(stock(tick("d", "SAP", 3, 20)))
    assert told(pipeline) == [], "c is of the epoch of a, and b was too late"


@hg.operator
def broken(event: Any) -> bool:
    raise ValueError("no such place")


def test_an_event_at_which_an_operator_fails_is_told_and_the_others_go_on() -> None:
    text = "SELECT e2.price AS q FROM stock NEXT {$2.name = $1.name AND broken()} stock"
    pipeline = Pipeline(book_of({"asks": text, "pair": PAIR}, [STOCK], operators=[broken]), NOW)
    pipeline.batch(stock(tick("a", "IBM", 1, 1)))
    pipeline.batch(stock(tick("b", "IBM", 2, 3)))
    pipeline.batch(stock(tick("c", "SAP", 1, 8)))
    assert pipeline.errors == [("b", "broken raised ValueError: no such place")]
    assert told(pipeline) == [("pair", "b")]


def test_an_event_without_its_time_is_told() -> None:
    pipeline = Pipeline(book_of({"pair": PAIR}, [STOCK]), NOW)
    pipeline.batch({"stock": [("a", ("IBM", 1.0, 1, None))]})
    assert pipeline.errors == [("a", "it has no at, so a sequence cannot place it in time")]


def test_only_events_that_some_step_could_take_are_sent() -> None:
    text = "SELECT e2.price AS p FROM FILTER {price > 100} (stock) NEXT {$2.name = $1.name AND $2.vol > 7} stock"
    pipeline = Pipeline(book_of({"s": text}, [STOCK]), NOW)
    pipeline.batch(stock(tick("a", "IBM", 101, 1), tick("b", "IBM", 3, 2), tick("c", "SAP", 102, 3)))
    assert pipeline.sent == 2


def test_a_newcomer_sees_only_what_comes_after_it_and_the_others_keep_their_runs() -> None:
    subs = book_of({"pair": PAIR}, [STOCK])
    pipeline = Pipeline(subs, Timing({"stock": 2}))
    pipeline.batch(stock(tick("a", "IBM", 1, 1), tick("b", "SAP", 1, 9)))
    assert pipeline.activated == {}
    subs.add("twin", PAIR)
    pipeline.batch(stock(tick("c", "IBM", 2, 12), tick("d", "SAP", 2, 8)))
    assert pipeline.activated == {"twin": 9}
    pipeline.batch(stock(tick("e", "IBM", 3, 14)))
    pipeline.batch(stock(tick("z", "XXX", 3, 99)))
    assert told(pipeline) == [("pair", "b"), ("pair", "c"), ("pair", "e"), ("twin", "e")]


def test_a_newcomer_that_reads_other_columns_does_not_stumble_over_events_that_wait() -> None:
    subs = book_of({"pair": PAIR}, [STOCK])
    pipeline = Pipeline(subs, Timing({"stock": 5}))
    pipeline.batch(stock(tick("a", "IBM", 1, 1), tick("b", "IBM", 2, 4)))
    subs.add("volume", "SELECT e2.price AS p FROM FILTER {vol = 1} (stock) NEXT {$2.name = $1.name AND vol = 1} stock")
    pipeline.forget()
    pipeline.batch(stock(tick("c", "IBM", 3, 6), tick("d", "IBM", 3, 7)))
    pipeline.batch(stock(tick("z", "XXX", 3, 99)))
    assert told(pipeline) == [("pair", "b"), ("pair", "c"), ("pair", "d"), ("volume", "d")]


def test_a_subscription_that_goes_takes_its_runs_along_and_returns_as_a_newcomer() -> None:
    subs = book_of({"pair": PAIR, "rise": RISE}, [STOCK])
    pipeline = Pipeline(subs, NOW)
    pipeline.batch(stock(tick("a", "IBM", 1, 1), tick("b", "SAP", 9, 2)))
    subs.remove("rise")
    pipeline.batch(stock(tick("c", "IBM", 8, 5)))
    subs.add("rise", RISE)
    pipeline.batch(stock(tick("d", "IBM", 9, 6)))
    pipeline.batch(stock(tick("e", "IBM", 10, 7)))
    pipeline.batch(stock(tick("z", "XXX", 0, 99)))
    assert pipeline.activated == {"rise": 5}
    assert [m for m in told(pipeline) if m[0] == "pair"] == [("pair", "c"), ("pair", "d"), ("pair", "e")]
    assert [m for m in told(pipeline) if m[0] == "rise"] == [("rise", "e")]


def test_a_replaced_subscription_is_a_newcomer() -> None:
    subs = book_of({"pair": PAIR}, [STOCK])
    pipeline = Pipeline(subs, NOW)
    pipeline.batch(stock(tick("a", "IBM", 1, 1)))
    subs.replace("pair", RISE)
    pipeline.batch(stock(tick("b", "IBM", 2, 3)))
    pipeline.batch(stock(tick("c", "IBM", 3, 4), tick("z", "XXX", 0, 99)))
    assert pipeline.activated == {"pair": 1}
    assert told(pipeline) == [("pair", "c")]


def test_absence_is_noticed_when_the_watermark_has_passed_its_time() -> None:
    pipeline = Pipeline(book_of({"silent": SILENT}, [STOCK]), NOW)
    pipeline.batch(stock(tick("a", "IBM", 1, 1), tick("b", "SAP", 1, 2)))
    pipeline.batch(stock(tick("c", "SAP", 1, 11)))
    pipeline.forget()
    assert told(pipeline) == []
    pipeline.batch(stock(tick("d", "XXX", 1, 12)))
    assert told(pipeline) == [("silent", "a")]


def test_absence_is_noticed_by_the_clock_when_nothing_comes_any_more() -> None:
    schema = Schema.of("stock", {"name": "string", "price": "double", "vol": "bigint", "at": "timestamp"}, "at")
    text = SILENT.replace("WITHIN 10", "WITHIN 10 SECONDS")
    pipeline = Pipeline(book_of({"silent": text}, [schema]), Timing({"stock": 0}, idle=60_000, clocks=True))
    pipeline.batch(stock(tick("a", "IBM", 1, 1_000_000)), now=5_000)
    pipeline.batch({}, now=30_000)
    assert told(pipeline) == [], "the stream is not idle yet"
    pipeline.batch({}, now=66_000)
    assert told(pipeline) == [("silent", "a")]
    pipeline.batch(stock(tick("b", "IBM", 1, 20_000_000)), now=70_000)
    assert pipeline.errors == [("b", "it is late by 42 s: its epoch is closed already")]


def test_the_slowest_stream_holds_time_back_until_it_is_idle() -> None:
    timing = Timing({"a": 0, "b": 2}, idle=1000)
    time = Time()
    time.tell("a", 50, timing, 0)
    assert time.advance(timing, 0) == {}
    time.tell("b", 7, timing, 10)
    assert time.advance(timing, 10) == {Kind.BIGINT: 5}
    time.tell("a", 60, timing, 1500)
    assert time.advance(timing, 1500) == {Kind.BIGINT: 60}
    assert time.idle(timing, 1500) == ["b"]
    time.tell("b", 8, timing, 1600)
    assert time.advance(timing, 1600) == {Kind.BIGINT: 60}, "time never goes back"


def test_time_without_clocks_does_not_move_by_itself() -> None:
    timing = Timing({"a": 0}, idle=10)
    time = Time()
    time.tell("a", 50, timing, 0)
    assert time.advance(timing, 1000) == {Kind.BIGINT: 50}


def test_an_event_from_the_future_makes_no_other_late_where_time_is_that_of_the_clock() -> None:
    schema = Schema.of("stock", {"name": "string", "price": "double", "vol": "bigint", "at": "timestamp"}, "at")
    timing = Timing({"stock": 1_000_000}, clocks=True, ahead=60_000_000)
    pipeline = Pipeline(book_of({"pair": PAIR}, [schema]), timing)
    pipeline.batch(stock(tick("a", "IBM", 1, 10_000_000), tick("x", "IBM", 1, 10**15)), now=10_000)
    assert pipeline.errors == [("x", "its time is in the future: some clock is wrong")]
    pipeline.batch(stock(tick("b", "IBM", 2, 11_000_000), tick("c", "IBM", 3, 50_000_000)), now=12_000)
    pipeline.batch(stock(tick("d", "IBM", 4, 13_000_000)), now=14_000)
    assert told(pipeline) == [("pair", "b")], "c waits for its time, and d is not late"
    pipeline.batch(stock(tick("e", "SAP", 4, 60_000_000)), now=70_000)
    assert told(pipeline) == [("pair", "b"), ("pair", "c"), ("pair", "d")]
    assert len(pipeline.errors) == 1


def test_only_pages_that_changed_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.runtime.stateful.pages.RUNS_A_PAGE", 8)
    pipeline = Pipeline(book_of({"pair": PAIR}, [STOCK]), NOW, buckets=1)
    pipeline.batch(stock(*(tick(f"e{i}", f"n{i}", 1, i) for i in range(200))))
    (kept,) = pipeline.kept
    assert len(pages(kept)) > 16
    writes = 0
    put = InMemory.put

    def counted(self: InMemory, name: str, data: bytes | None) -> None:
        nonlocal writes
        writes += name != HEAD
        put(self, name, data)

    monkeypatch.setattr(InMemory, "put", counted)
    pipeline.batch(stock(tick("again", "n7", 2, 300), tick("end", "x", 0, 301)))
    assert told(pipeline) == [("pair", "again")]
    # The run of n7, the new one of `again`, that of the last event before, and the event that waits, twice.
    assert writes <= 5
    pipeline.forget()
    pipeline.batch(stock(tick("more", "n8", 2, 400), tick("end2", "x", 0, 401)))
    pipeline.batch(stock(tick("end3", "x", 0, 500)))
    assert told(pipeline) == [("pair", "again"), ("pair", "end2"), ("pair", "more")]


def test_many_runs_come_and_go_and_the_pages_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.runtime.stateful.pages.RUNS_A_PAGE", 4)
    pipeline = Pipeline(book_of({"pair": PAIR}, [STOCK]), NOW, buckets=2)
    pipeline.batch(stock(*(tick(f"e{i}", f"n{i}", 1, i) for i in range(100))))
    pipeline.forget()
    pipeline.batch(stock(*(tick(f"f{i}", f"n{i}", 2, 200 + i) for i in range(100)), tick("z", "z", 0, 999)))
    assert len(pipeline.matches) == 100
    assert sum(len(Page.of(d).rows) for k in pipeline.kept for d in pages(k)) == 100


def test_a_changed_number_of_buckets_is_refused_and_the_tool_named() -> None:
    pipeline = Pipeline(book_of({"pair": PAIR}, [STOCK]), NOW, buckets=2)
    pipeline.batch(stock(tick("a", "IBM", 1, 1)))
    with pytest.raises(UsageError, match=r"has 2 buckets, and the query asks for 3") as problem:
        Bucket.load(0, 3, pipeline.kept[0])
    assert "--rebucket" in str(problem.value.hint)


def test_a_page_that_is_none_or_of_another_version_is_refused() -> None:
    with pytest.raises(PlanError, match="no page of runs"):
        Page.of(b"something else")
    pipeline = Pipeline(book_of({"pair": PAIR}, [STOCK]), NOW, buckets=1)
    pipeline.batch(stock(tick("a", "IBM", 1, 1), tick("b", "SAP", 1, 2)))
    (data,) = pages(pipeline.kept[0])
    with pytest.raises(PlanError, match="has version 9, this program reads version 1"):
        Page.of(data[:4] + b"\x09\x00" + data[6:])
    with pytest.raises(PlanError, match="cut short"):
        Page.of(data[:-4000] if len(data) > 8000 else data[: len(data) // 2])


def test_state_in_memory_forgets_what_is_taken_away() -> None:
    kept = InMemory()
    kept.put("a", b"1")
    kept.put("a", None)
    kept.put("b", None)
    assert kept == {}

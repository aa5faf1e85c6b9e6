"""What the user says of time is checked against the book."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.stateful.pipeline import book_of
from tests.runtime.stateful.test_changes import NOW, PAIR
from tests.sequences.book import STOCK

import headgate as hg
from headgate.errors import UsageError
from headgate.plan.sequence_book import SequenceBook
from headgate.schema import Kind, Schema
from headgate.spark.frame import EVERY
from headgate.spark.stateful.settings import timing_of


def test_where_a_query_reads_every_stream_the_book_of_a_batch_says_which_carry_time() -> None:
    empty = timing_of(SequenceBook.of(book_of({}, [STOCK]).compile(), 2), ["*"], 3, idle=5)
    assert empty.delays == {}
    book = SequenceBook.of(book_of({"pair": PAIR}, [STOCK]).compile(), 2)
    made = empty.over(book.timed)
    assert (made.delays, made.idle, made.kind("stock")) == ({"stock": 3}, 5000, Kind.BIGINT)
    assert NOW.over(book.timed) is NOW
    with pytest.raises(UsageError, match="one watermark"):
        timing_of(book, ["*"], {"stock": 3})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"watermark": "5 minutes"}, "whose ticks have no length"),
        ({"watermark": "soon"}, "watermark = 'soon' is no length of time"),
        ({"watermark": -1}, "watermark = -1 is negative"),
        ({"watermark": {"stok": 1}}, "watermark: there is no stream stok"),
        ({"watermark": 0, "idle": 0}, "idle = 0: it must be longer than that"),
    ],
)
def test_wrong_settings_of_time_are_refused(settings: dict[str, Any], message: str) -> None:
    book = SequenceBook.of(book_of({"pair": PAIR}, [STOCK]).compile(), 2)
    with pytest.raises(UsageError, match=message):
        timing_of(book, ["stock"], **settings)


def test_a_stream_without_time_or_without_a_frame_is_refused() -> None:
    subs = hg.Subscriptions()
    subs.stream("s", {"x": "bigint"})
    subs.add("pair", "SELECT e2.x AS x FROM s NEXT {$2.x = $1.x} s")
    with pytest.raises(UsageError, match="sequences read s, which has no TIME"):
        timing_of(SequenceBook.of(subs.compile(), 2), ["s"], 0)
    book = SequenceBook.of(book_of({"pair": PAIR}, [STOCK]).compile(), 2)
    with pytest.raises(UsageError, match="sequences read stock, and there is no frame for it"):
        timing_of(book, ["news"], 0)


def test_a_sequence_without_time_keeps_no_others_from_a_query_over_every_stream() -> None:
    subs = book_of({"pair": PAIR}, [STOCK])
    subs.stream("s", {"x": "bigint"})
    subs.add("loose", "SELECT e2.x AS x FROM s NEXT {$2.x = $1.x} s")
    timing = timing_of(SequenceBook.of(subs.compile(), 2), [EVERY], 0)
    assert set(timing.delays) == {"stock"}


def test_ticks_and_clocks_may_be_in_one_query_and_a_delay_in_words_is_for_clocks_alone() -> None:
    clocks = Schema.of("clocks", {"n": "bigint", "at": "timestamp"}, "at")
    texts = {"pair": PAIR, "other": "SELECT e2.n AS n FROM clocks NEXT {$2.n = $1.n} clocks"}
    book = SequenceBook.of(book_of(texts, [STOCK, clocks]).compile(), 2)
    every = timing_of(book, [EVERY], "2 seconds", ahead="1 minute")
    assert every.delays == {"clocks": 2_000_000, "stock": 0}
    assert (every.limit("stock", 5), every.limit("clocks", 5)) == (None, 60_005_000)
    both = timing_of(book, ["stock", "clocks"], {"stock": 3, "clocks": "1 second"})
    assert both.delays == {"stock": 3, "clocks": 1_000_000}
    assert (both.kind("stock"), both.kind("clocks")) == (Kind.BIGINT, Kind.TIMESTAMP)

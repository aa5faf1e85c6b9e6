"""A batch of columns against the indexes of one segment."""

from __future__ import annotations

from headgate.events import decode
from headgate.runtime import stateless
from headgate.subscriptions import Subscriptions

BOOK = Subscriptions().stream("s", {"x": "bigint"}).add("low", "x < 2").add("any", "x IS NOT NULL")
PLAN = BOOK.compile()
FILTERS = PLAN.segments[0].filters["s"]


COLUMNS = decode([{"x": 1}, {"x": 5}, {}], BOOK.streams["s"]).columns


def test_a_listing_run_gives_pairs_sorted_by_event_and_slot() -> None:
    work = stateless.run(COLUMNS, FILTERS, None, listing=True)
    assert list(zip(work.filters.event.tolist(), work.filters.slot.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 1)]


def test_a_counting_run_gives_a_count_for_every_slot_and_no_pairs() -> None:
    work = stateless.run(COLUMNS, FILTERS, None, listing=False)
    assert work.counts.tolist() == [1, 2]
    assert len(work.filters) == 0


def test_no_index_has_no_hits() -> None:
    work = stateless.run(COLUMNS, None, None, listing=True)
    assert (len(work.filters), len(work.late), work.late.problems) == (0, 0, ())
    assert stateless.run(COLUMNS, None, None, listing=False).counts.tolist() == []

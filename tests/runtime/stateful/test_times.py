"""Streams with ticks and streams with clocks in one book: none holds up the other's events, or makes them late."""

from __future__ import annotations

import pytest
from tests.runtime.stateful.pipeline import Pipeline, book_of

from headgate.runtime.stateful.watermark import Timing
from headgate.schema import Schema

TICKS = Schema.of("ticks", {"n": "bigint", "at": "bigint"}, "at")
CLOCKS = Schema.of("clocks", {"n": "bigint", "at": "timestamp"}, "at")
PAIRS = {s: f"SELECT e2.n AS n FROM {s} NEXT {{$2.n = $1.n}} {s}" for s in ("ticks", "clocks")}  # noqa: S608 - no SQL
RISES = {s: text.replace("$2.n = $1.n", "$2.n > $1.n") for s, text in PAIRS.items()}
SECOND = 10**6


@pytest.mark.parametrize("texts", [PAIRS, RISES], ids=["keyed", "global"])
@pytest.mark.parametrize("restart", [False, True])
def test_each_kind_of_time_has_its_own_watermark(texts: dict[str, str], restart: bool) -> None:
    timing = Timing({"ticks": 1, "clocks": SECOND}, clocks=True, ticks=frozenset(["ticks"]))
    pipeline = Pipeline(book_of(texts, [TICKS, CLOCKS]), timing, buckets=2)
    for step in range(1, 5):
        ticks = [(f"t{step}", (step if texts is RISES else 7, step))]
        clocks = [(f"c{step}", (step if texts is RISES else 7, 10**15 + step * SECOND))]
        pipeline.batch({"ticks": ticks, "clocks": clocks})
        if restart:
            pipeline.forget()
    found = sorted(m[2] for m in pipeline.found)
    assert (found, pipeline.errors) == (["c2", "t2"], []), "the third waits until its time is below the watermark"


def test_a_silent_stream_of_one_kind_does_not_stop_the_other() -> None:
    timing = Timing({"ticks": 0, "clocks": 0}, clocks=True, ticks=frozenset(["ticks"]))
    pipeline = Pipeline(book_of(PAIRS, [TICKS, CLOCKS]), timing, buckets=1)
    for step in range(1, 4):
        pipeline.batch({"ticks": [(f"t{step}", (7, step))]})
    assert [m[2] for m in pipeline.found] == ["t2"]


def test_a_newcomer_begins_after_the_latest_event_of_its_own_kind() -> None:
    timing = Timing({"ticks": 0, "clocks": 0}, clocks=True, ticks=frozenset(["ticks"]))
    subs = book_of(PAIRS, [TICKS, CLOCKS])
    pipeline = Pipeline(subs, timing, buckets=1)
    pipeline.batch({"ticks": [("t1", (7, 1))], "clocks": [("c1", (7, 10**15))]})
    subs.add("new ticks", PAIRS["ticks"]).add("new clocks", PAIRS["clocks"])
    for step in range(2, 5):
        pipeline.batch({"ticks": [(f"t{step}", (7, step))], "clocks": [(f"c{step}", (7, 10**15 + step))]})
    assert pipeline.activated == {"new ticks": 1, "new clocks": 10**15}
    found = {name: sorted(m[2] for m in pipeline.found if m[1] == name) for name in subs}
    assert found == {"ticks": ["t2", "t3"], "clocks": ["c2", "c3"], "new ticks": ["t3"], "new clocks": ["c3"]}

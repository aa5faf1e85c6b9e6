"""The stateful step without Spark: any cut, any order within the watermark, any restart gives what a process gives;
so does dealing the state out anew on the way."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.runtime.stateful.pipeline import Pipeline, book_of, in_process
from tests.sequences.book import OPERATORS
from tests.sequences.patterns import SCHEMAS, books, events

from headgate.runtime.stateful.watermark import Timing

SENTINEL = 1000


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=books(), s=events(), t=events(), seed=st.integers(0, 10**6))
def test_any_cut_and_any_order_within_the_watermark_gives_what_a_process_gives(
    texts: dict[str, str], s: Any, t: Any, seed: int
) -> None:
    texts = {name: text.replace("fragile(", "high(") for name, text in texts.items()}
    note(str(texts))
    rng = random.Random(seed)
    subs = book_of(texts, SCHEMAS, operators=OPERATORS)
    delay = rng.randrange(4)
    whole = {
        "S": [(f"s{i}", r) for i, r in enumerate(s)],
        "T": [(f"t{i}", r) for i, r in enumerate(t)],
    }
    arriving = [(r[4] + rng.uniform(0, delay), stream, i, r) for stream, rows in whole.items() for i, r in rows]
    arriving.sort(key=lambda a: a[0])
    pipeline = Pipeline(subs, Timing({"S": delay, "T": delay}))
    while arriving:
        size = rng.randrange(1, 8)
        part, arriving = arriving[:size], arriving[size:]
        pipeline.batch({n: [(i, r) for _, stream, i, r in part if stream == n] for n in ("S", "T")})
        if rng.random() < 0.5:
            pipeline.forget()
        if rng.random() < 0.1:
            pipeline.rebucket(rng.randrange(1, 6))
    last = (None, None, None, SENTINEL, SENTINEL, None, None)
    pipeline.batch({"S": [("end", last)], "T": [("end", last)]})
    expected = in_process(subs, {n: [*rows, ("end", last)] for n, rows in whole.items()}, SENTINEL - delay)
    assert pipeline.matches == expected
    assert not pipeline.errors

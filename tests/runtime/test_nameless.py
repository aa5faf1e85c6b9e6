"""Events without an id: each is a problem of its own, with an id that stays when the batch is done again."""

from __future__ import annotations

import pyarrow as pa

import headgate as hg
from headgate.runtime.batches import BODY, EVENT, BatchMatcher


def problems(bodies: list[str], ids: list[str | None]) -> list[str]:
    plan = hg.Subscriptions().stream("s", {"x": "bigint"}).add("a", "x > 0").compile()
    matcher = BatchMatcher("s", plan)
    batch = matcher.decode(pa.table({EVENT: pa.array(ids, pa.string()), BODY: bodies}))
    return [row["id"] for row in matcher.rows(batch).to_pylist() if row["error"] is not None]


def test_events_without_an_id_share_no_row() -> None:
    found = problems(['{"x": 1}', '{"x": 2}', '{"x": 1}', '{"x": 1}'], [None, None, None, "named"])
    assert len(set(found)) == len(found) == 3
    assert sorted(problems(['{"x": 1}', '{"x": 1}', '{"x": 2}'], [None] * 3)) == sorted(found)

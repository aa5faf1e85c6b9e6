from __future__ import annotations

import numpy as np

from headgate.filters.compile import Where
from headgate.filters.engine import FilterIndex, compile_filters
from headgate.filters.lane_selection import COLUMN, LANE, Opening
from headgate.language.forms import cut
from headgate.language.tokens import tokenise
from headgate.schema import Schema

STREAM = Schema.of("s", {"key": "bigint", "rare": "bigint", "n": "bigint", "flag": "boolean"})


def index(texts: list[str]) -> FilterIndex:
    return compile_filters([(cut(tokenise(t)), "null") for t in texts], STREAM)


def offered(count: int, saved: float, reads: int = 1) -> Opening:
    opening = Opening(2)
    opening.offer(np.zeros(count, np.int64), np.full(count, saved), np.tile(np.arange(reads), (count, 1)))
    return opening


def test_a_key_opens_if_what_is_filed_there_pays_for_the_lane() -> None:
    enough = int(LANE + COLUMN) + 1
    assert offered(enough, 1.0).pays().tolist() == [True, False]
    assert offered(enough - 2, 1.0).pays().tolist() == [False, False]


def test_every_attribute_that_a_lane_reads_has_its_price() -> None:
    assert offered(100, (LANE + 20 * COLUMN) / 100, reads=10).pays()[0]
    assert not offered(100, (LANE + 20 * COLUMN) / 100, reads=30).pays()[0]


def test_nothing_offered_opens_nothing() -> None:
    assert Opening(3).pays().tolist() == [False] * 3
    assert Opening(0).pays().tolist() == []


def test_a_small_book_is_dense_though_it_has_a_key() -> None:
    made = index([f"key = {k} AND n > 3" for k in range(100)])
    assert set(made.lanes.where.tolist()) == {Where.DENSE}
    assert made.lane(0).startswith("dense program: filing it would not pay; its best key lets an estimated 0.4")


def test_a_large_book_is_filed_under_its_key() -> None:
    made = index([f"key = {k} AND n > 3 AND flag" for k in range(4_000)])
    assert set(made.lanes.where.tolist()) == {Where.SPARSE}


def test_conjuncts_whose_best_key_stays_closed_are_filed_under_one_that_opened() -> None:
    texts = [f"key = {k} AND n > 3 AND flag" for k in range(4_000)]
    made = index([*texts, "key BETWEEN 5 AND 9 AND rare = 3 AND flag AND n > 1", "rare = 7"])
    assert [lane.attributes for lane in made.lanes.sparse] == [(0,)]
    assert Where(made.lanes.where[-2]) is Where.SPARSE
    assert Where(made.lanes.where[-1]) is Where.DENSE

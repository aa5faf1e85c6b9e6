from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headgate.columns import Columns
from headgate.filters import lane_selection
from headgate.filters.compile import Options, Where
from headgate.filters.engine import FilterIndex, compile_filters
from headgate.language.forms import cut
from headgate.language.tokens import tokenise
from headgate.schema import Schema

STREAM = Schema.of("s", {"key": "bigint", "n": "bigint", "flag": "boolean", "t": "string"})
KEYS = [f"key = {k}" for k in range(200)]
"""Two hundred constants: an equality on `key` is selective."""


@pytest.fixture(autouse=True)
def lanes_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that two hundred subscriptions show what thousands would; `test_lane_selection` has the real costs."""
    monkeypatch.setattr(lane_selection, "LANE", 0.0)
    monkeypatch.setattr(lane_selection, "COLUMN", 0.0)


def index(texts: list[str], missing: str = "null", sample: Columns | None = None, **options: Any) -> FilterIndex:
    items = [(cut(tokenise(t)), missing) for t in texts]
    return compile_filters(items, STREAM, sample, Options(**options))


def lane(text: str, missing: str = "null", sample: Columns | None = None, **options: Any) -> Where:
    """Where a subscription goes in a book that has others on `key`."""
    return Where(index([*KEYS, text], missing, sample, **options).lanes.where[-1])


def test_an_equality_on_a_key_of_many_values_is_filed() -> None:
    assert lane("key = 7") is Where.SPARSE
    assert lane("key = 7 AND flag AND n < 3") is Where.SPARSE


def test_what_holds_for_many_events_joins_the_dense_program() -> None:
    assert lane("flag") is Where.DENSE
    assert lane("n < 3 OR flag") is Where.DENSE
    assert lane("key <> 7") is Where.DENSE
    assert lane("t LIKE '%a%'") is Where.DENSE


def test_a_narrow_range_is_filed_and_a_wide_one_is_not() -> None:
    assert lane("key BETWEEN 7 AND 9") is Where.SPARSE
    assert lane("key >= 7") is Where.DENSE


def test_two_bounds_in_one_conjunction_are_one_range() -> None:
    made = index([*KEYS, "key > 5 AND key < 8"])
    assert made.lanes.selectivity[-1] < 0.02
    assert Where(made.lanes.where[-1]) is Where.SPARSE


def test_a_disjunction_of_keys_is_filed_under_all_of_them() -> None:
    many = [f"key = {k}" for k in range(5000)]
    made = index([*many, "key = 1 AND flag OR key = 2 AND n = 3"])
    assert Where(made.lanes.where[-1]) is Where.SPARSE
    assert len(made.lanes.sparse[0].multiple) == 2


def test_a_disjunction_that_matches_often_is_not_split_as_its_matches_would_have_to_be_listed() -> None:
    assert lane("key = 1 AND flag OR key = 2 AND n = 3") is Where.DENSE
    assert lane("key = 1 AND key < 0 OR key = 1 AND flag OR n < 3") is Where.DENSE


def test_a_disjunction_with_one_selective_part_is_in_both_lanes_if_that_is_asked_for() -> None:
    assert lane("key = 1 AND flag OR t LIKE '%a%'", lanes="sparse") is Where.BOTH


def test_what_cannot_match_is_nowhere() -> None:
    for text in ("FALSE", "n = 2.5", "n > 9223372036854775807000", "n = NULL", "FALSE AND flag", "n = 0.5 OR n = 1.5"):
        assert lane(text) is Where.NEVER, text


def test_what_always_matches_is_dense_in_every_lane() -> None:
    for lanes in ("auto", "sparse", "dense"):
        assert lane("TRUE", lanes=lanes) is Where.DENSE


def test_a_forced_lane_takes_what_it_can() -> None:
    assert lane("key = 7", lanes="dense") is Where.DENSE
    assert lane("key >= 7", lanes="sparse") is Where.SPARSE
    assert lane("t LIKE '%a%'", lanes="sparse") is Where.DENSE


def test_a_sample_in_which_the_key_never_varies_makes_it_dense() -> None:
    same = Columns.of("s", {"key": ("bigint", [7] * 1000)})
    varied = Columns.of("s", {"key": ("bigint", list(range(1000)))})
    assert lane("key = 7", sample=same) is Where.DENSE
    assert lane("key = 8", sample=same) is Where.SPARSE
    assert lane("key = 7", sample=varied) is Where.SPARSE


def test_a_sample_in_which_an_attribute_is_rare_makes_it_a_key() -> None:
    rare = Columns.of("s", {"n": ("bigint", [1] + [None] * 999), "key": ("bigint", list(range(1000)))})
    assert lane("n IS NOT NULL AND flag", sample=rare) is Where.SPARSE
    assert lane("n IS NOT NULL AND flag") is Where.DENSE


def test_the_most_selective_attribute_of_a_conjunction_is_its_key() -> None:
    texts = [*KEYS, "key = 7 AND n = 1"]
    sample = Columns.of("s", {"key": ("bigint", [7] * 999 + [8]), "n": ("bigint", list(range(1000)))})
    for given, expected in ((None, ("key",)), (sample, ("n",))):
        made = index(texts, sample=given)
        slot = len(texts) - 1
        paths = [
            made.lanes.lookup.paths[lane.attributes[0]]
            for lane in made.lanes.sparse
            if slot in lane.single.slots or slot in lane.multiple.slots
        ]
        assert paths == [expected]


def test_the_selectivity_of_a_subscription_is_that_of_its_best_key() -> None:
    made = index([*KEYS, "key = 7 AND flag", "flag", "TRUE"])
    key, flag, always = made.lanes.selectivity[-3:].tolist()
    assert key == pytest.approx(0.9 / 401)
    assert flag == pytest.approx(0.3)
    assert always == 1.0


def test_an_index_says_where_a_subscription_is_and_why() -> None:
    made = index([*KEYS, "key = 7", "flag", "FALSE"])
    assert made.lane(200) == "filed under a key; its best key lets an estimated 0.22% of the events through"
    assert (
        made.lane(201)
        == "dense program: filing it would not pay; its best key lets an estimated 30.00% of the events through"
    )
    assert made.lane(202) == "nowhere: it can never match"
    assert made.stats()["subscriptions"] == {"never": 1, "dense": 1, "sparse": 201, "both": 0}


def test_a_filed_conjunct_does_not_look_at_what_its_key_says() -> None:
    made = index([*KEYS, "key = 7 AND key IS NOT NULL AND key < 9"], missing="strict", lanes="sparse")
    assert [len(lane.single.literals) for lane in made.lanes.sparse] == [0]


def test_strict_subscriptions_of_attributes_that_no_event_defines_are_skipped() -> None:
    """Their nodes are never run: values left over from before would show it."""
    made = index(["flag AND t LIKE '%a%'", "t LIKE '%a%' OR t LIKE '%b%'"], missing="strict", lanes="dense")
    batch = Columns.of("s", {"t": ("string", ["a", "b", "c"]), "flag": ("boolean", [None, None, None])})
    hits = made.evaluate(batch)
    assert list(zip(hits.event.tolist(), hits.slot.tolist(), strict=True)) == [(0, 1), (1, 1)]
    dense = made.lanes.dense[0]
    undefined = np.uint64(1 << dense.paths.index(("flag",)))
    assert (dense.program.supports & undefined).any()


def test_seventy_strict_attributes_share_support_bits() -> None:
    """Past 64 attributes two have one bit: less is skipped, nothing is wrong."""
    names = [f"a{i:02}" for i in range(70)]
    schema = Schema.of("s", dict.fromkeys(names, "bigint"))
    texts = [f"a{i:02} = 1 AND a{(i + 64) % 70:02} <> 2" for i in range(70)]
    made = compile_filters([(cut(tokenise(t)), "strict") for t in texts], schema, None, Options(lanes="dense"))
    for there in ({"a00"}, {"a00", "a64"}, {"a01", "a64"}, {"a05", "a69"}, set(names)):
        batch = Columns.of("s", {n: ("bigint", [1 if n in there else None] * 3) for n in names})
        hits = made.evaluate(batch)
        expected = [i for i in range(70) if {names[i], names[(i + 64) % 70]} <= there]
        assert hits.slot.tolist() == expected * 3

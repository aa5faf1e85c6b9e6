from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.covering.texts import MODES, SCHEMA, filters

from headgate.covering.imprecise import Answer, Range, match
from headgate.covering.reading import Source, checked, union_of
from headgate.errors import EventError
from headgate.language.parser import parse_body
from headgate.oracle.filters import truth
from headgate.schema import Schema


def answer(text: str, event: dict[str, object], schema: Schema = SCHEMA, missing: str = "null") -> Answer:
    (body,), _ = checked([Source(text, missing)], schema)
    return match(union_of(body, missing, schema), event, schema)


def test_a_range_inside_matches_surely_and_one_across_the_border_possibly() -> None:
    assert answer("x > 5", {"x": Range(6, 8), "n": 0}) is Answer.SURELY
    assert answer("x > 5", {"x": Range(4, 8), "n": 0}) is Answer.POSSIBLY
    assert answer("x > 5", {"x": Range(1, 5), "n": 0}) is Answer.NOT
    assert answer("x > 5", {"n": 0}) is Answer.NOT


def test_two_boxes_hold_a_range_together() -> None:
    assert answer("i <= 5 OR i >= 6", {"i": Range(0, 9), "n": 0}) is Answer.SURELY
    assert answer("x <= 5 OR x >= 6", {"x": Range(0, 9), "n": 0}) is Answer.POSSIBLY


def test_a_range_that_may_be_missing_is_only_possible() -> None:
    assert answer("x > 5", {"x": Range(6, 8, missing=True), "n": 0}) is Answer.POSSIBLY
    assert answer("x > 5 OR x IS NULL", {"x": Range(6, None, missing=True), "n": 0}) is Answer.SURELY


def test_what_no_box_can_express_is_possible_at_most() -> None:
    assert answer("t MATCHES 'a' AND x > 5", {"t": "abc", "x": Range(6, 8), "n": 0}) is Answer.POSSIBLY
    assert answer("t MATCHES 'a' AND x > 5", {"t": "abc", "x": 3.0, "n": 0}) is Answer.NOT


def test_times_may_be_ranges() -> None:
    schema = Schema.of("s", {"at": "timestamp"})
    day = Range(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))
    assert answer("at >= TIMESTAMP '2026-01-01T00:00:00Z'", {"at": day}, schema) is Answer.SURELY
    assert answer("at > TIMESTAMP '2026-01-01T00:00:00Z'", {"at": day}, schema) is Answer.POSSIBLY


def test_a_range_upside_down_is_refused() -> None:
    with pytest.raises(EventError, match="attribute x"):
        answer("x > 5", {"x": Range(8, 6), "n": 0})
    with pytest.raises(EventError, match="n is NOT NULL"):
        answer("n > 5", {})


@settings(max_examples=200, deadline=None)
@given(
    filters(["i", "n"], 5), MODES, st.tuples(st.integers(-2, 4), st.integers(0, 4)), st.integers(-2, 4), st.booleans()
)
def test_an_imprecise_event_is_all_the_precise_ones_in_it(
    text: str, missing: str, bounds: tuple[int, int], n: int, absent: bool
) -> None:
    schema = Schema(SCHEMA.stream, {p: a for p, a in SCHEMA.attributes.items() if p[0] in "in"})
    low, high = bounds[0], bounds[0] + bounds[1]
    values = [*range(low, high + 1), *([None] if absent else [])]
    body = parse_body(text)
    truths = {truth(body, {("i",): v, ("n",): n}, schema, missing) is True for v in values}
    expected = Answer.SURELY if truths == {True} else Answer.NOT if truths == {False} else Answer.POSSIBLY
    assert answer(text, {"i": Range(low, high, absent), "n": n}, schema, missing) is expected

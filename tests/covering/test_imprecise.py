from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.covering.texts import MODES, SCHEMA, filters

import headgate as hg
from headgate.covering.imprecise import Answer, Range, match
from headgate.covering.parse_boxes import Source, checked, union_of
from headgate.errors import EventError, UsageError
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


def vague_book() -> hg.Subscriptions:
    @hg.operator
    def busy(event: Any) -> bool:
        return True

    subs = hg.Subscriptions([busy])
    subs.stream("s", {"x": "double", "place.city": "string"})
    subs.add("high", "x > 5", labels={"owner": "me"}).add("low", "x < 5").add("city", "place.city = 'Rome'")
    subs.add("asks", "busy() AND x > 0")
    subs.compile()
    return subs.add("any", "x IS NOT NULL").remove("low")


def certain(table: Any) -> list[tuple[int, str, str]]:
    return [(r["event"], r["subscription"], r["certainty"]) for r in table.to_pylist()]


def test_a_plan_matches_imprecise_events_surely_or_possibly() -> None:
    plan = vague_book().compile()
    events: list[dict[str, Any]] = [
        {"x": hg.Range(6, 8)},
        {"x": hg.Range(4, 8), "place": {"city": hg.Range("A", "S")}},
        {"x": 7.0, "place": {"city": "Rome"}},
        {"x": hg.Range(-3, -2, missing=True), "place": {"city": "Rome"}},
    ]
    assert certain(plan.match(events, imprecise=True)) == [
        (0, "any", "surely"), (0, "asks", "possibly"), (0, "high", "surely"),
        (1, "any", "surely"), (1, "asks", "possibly"), (1, "city", "possibly"), (1, "high", "possibly"),
        (2, "any", "surely"), (2, "asks", "surely"), (2, "city", "surely"), (2, "high", "surely"),
        (3, "any", "possibly"), (3, "city", "surely"),
    ]  # fmt: skip


def test_a_match_of_an_imprecise_event_has_the_id_of_a_precise_one() -> None:
    plan = vague_book().compile()
    exactly = {r["subscription"]: r["id"] for r in plan.match([{"x": 1.0}, {"x": 7.0}]).to_pylist() if r["event"]}
    table = plan.match([{"x": 1.0}, {"x": hg.Range(6, 8)}], imprecise=True).to_pylist()
    vague = {r["subscription"]: (r["id"], r["labels"]) for r in table if r["event"]}
    assert {name: id for name, (id, _) in vague.items()} == exactly
    assert vague["high"][1] == '{"owner":"me"}'


def test_imprecise_events_that_cannot_be_used_are_errors_of_their_own() -> None:
    plan = vague_book().compile()
    events = [{"x": hg.Range(8, 6)}, {"x": "abc"}, {"x": hg.Range("a", "b")}, {"x": hg.Range(6, 7)}]
    table, errors = plan.match(events, imprecise=True, errors="collect")
    assert [e["event"] for e in errors.to_pylist()] == [1, 0, 2]
    assert errors.column("reason").to_pylist()[1:] == [
        "attribute x: no value of its type is Range(low=8, high=6, missing=False)",
        "attribute x: 'a' is no DOUBLE",
    ]
    assert {e for e, _, _ in certain(table)} == {3}
    with pytest.raises(EventError, match="attribute x: no value of its type"):
        plan.match(events[:1], imprecise=True)


def test_only_dicts_hold_ranges_and_sequences_take_none() -> None:
    with pytest.raises(UsageError, match="must be lists of dicts"):
        vague_book().compile().match(pa.table({"x": [1.0]}), imprecise=True)
    with pytest.raises(UsageError, match="a table of matches only"):
        vague_book().compile().match([], imprecise=True, output="counts")
    subs = hg.Subscriptions().stream("s", {"x": "double"})
    subs.add("q", "SELECT * FROM FILTER {x > 1} (s)")
    with pytest.raises(UsageError, match="sequences cannot be matched with imprecise events"):
        subs.compile().match([{"x": hg.Range(1, 2)}], imprecise=True)

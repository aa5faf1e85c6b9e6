"""`compile(cover=True)`: what is tested behind gates, and that no match is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.covering.test_engine import EVENTS, NAMES, OPEN
from tests.covering.texts import MODES, filters

import headgate as hg
from headgate.covering import gates
from headgate.covering.gates import GatedIndex
from headgate.filters.engine import FilterIndex


def book(**texts: str) -> hg.Subscriptions:
    subs = hg.Subscriptions()
    subs.stream("s", {"x": "double", "y": "double"})
    for name, text in texts.items():
        subs.add(name, text)
    return subs


def found(plan: hg.Plan, events: Any) -> list[tuple[int, str]]:
    table, _ = plan.match(events, errors="collect")
    return [(r["event"], r["subscription"]) for r in table.to_pylist()]


def test_a_covered_subscription_is_behind_a_gate() -> None:
    subs = book(low="x BETWEEN 0 AND 6", high="x BETWEEN 5 AND 9", inner="x BETWEEN 2 AND 8", other="y > 1")
    plan = subs.compile(cover=True)
    assert plan.gates() == {"inner": ("low", "high")}
    assert subs.compile(cover=False).gates() == {}


def test_without_asking_there_are_no_gates() -> None:
    assert book(wide="x > 0", narrow="x > 5").compile().gates() == {}


def test_a_later_and_wider_one_puts_the_earlier_behind_a_gate() -> None:
    assert book(narrow="x > 5", wide="x > 0").compile(cover=True).gates() == {"narrow": ("wide",)}


def test_what_is_behind_a_gate_is_tested_only_on_events_that_a_coverer_matched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = book(wide="x > 0", narrow="x > 5").compile(cover=True)
    tested: list[int] = []
    original = FilterIndex.evaluate

    def counted(self: FilterIndex, columns: Any) -> Any:
        tested.append(columns.rows)
        return original(self, columns)

    monkeypatch.setattr(FilterIndex, "evaluate", counted)
    events = [{"x": float(x)} for x in (-3, -2, -1, 1, 7)]
    assert found(plan, events) == [(3, "wide"), (4, "narrow"), (4, "wide")]
    assert tested == [5, 2]
    tested.clear()
    assert found(plan, [{"x": -1.0}]) == []
    assert tested == [1], "a gate that stays shut costs nothing"


def test_a_removed_coverer_still_opens_its_gate_and_is_not_told() -> None:
    subs = book(wide="x > 0", narrow="x > 5")
    subs.compile(cover=True)
    plan = subs.remove("wide").compile()
    assert plan.gates() == {"narrow": ("wide",)}
    assert found(plan, [{"x": 7.0}, {"x": 1.0}]) == [(0, "narrow")]


def test_gates_stay_within_a_segment() -> None:
    subs = book(wide="x > 0")
    subs.compile(cover=True)
    subs.add("narrow", "x > 5").add("inner", "x > 6")
    plan = subs.compile()
    assert plan.gates() == {"inner": ("narrow",)}
    assert found(plan, [{"x": 7.0}]) == [(0, "inner"), (0, "narrow"), (0, "wide")]


def test_what_can_never_match_is_behind_no_gate_and_evaluated_nowhere() -> None:
    plan = book(never="x > 5 AND x < 3", wide="x > 0").compile(cover=True)
    assert plan.gates() == {"never": ()}
    assert found(plan, [{"x": 4.0}]) == [(0, "wide")]
    index = plan.segments[0].filters["s"]
    assert isinstance(index, GatedIndex)
    assert index.lane(0) == "nowhere: it can never match"


def test_operators_and_graphs_are_neither_gated_nor_gates() -> None:
    @hg.operator
    def busy(event: Any) -> bool:
        return bool(event["x"] > 0)

    subs = hg.Subscriptions([busy])
    subs.stream("s", {"x": "double"})
    subs.add("asks", "busy()").add("asks_too", "busy() AND x > 1").add("plain", "x > 1").add("inner", "x > 2")
    plan = subs.compile(cover=True)
    assert plan.gates() == {"inner": ("plain",)}
    assert len(found(plan, [{"x": 3.0}])) == 4


def test_explain_tells_of_the_gate() -> None:
    plan = book(wide="x > 0", narrow="x > 5").compile(cover=True)
    assert plan.explain("narrow", {"x": 7.0}).matched
    assert not plan.explain("narrow", {"x": 3.0}).matched
    assert plan.explain("wide", {"x": 3.0}).matched


def test_counts_and_bitmaps_are_those_of_a_plan_without_gates() -> None:
    subs = book(wide="x > 0", narrow="x > 5", other="y = 1")
    events = [{"x": float(i), "y": float(i % 3)} for i in range(-5, 10)]
    plain, gated = subs.compile(), subs.compile(cover=True)
    for output in ("counts", "bitmaps", "pairs", "matches"):
        assert gated.match(events, output=output) == plain.match(events, output=output)
    assert gated.needs("s") == plain.needs("s")


def test_a_gated_plan_is_saved_and_mapped(tmp_path: Path) -> None:
    subs = book(wide="x > 0", narrow="x > 5")
    plan = subs.compile(cover=True)
    plan.save(tmp_path / "plan")
    again = hg.Plan.open(tmp_path / "plan")
    assert again.gates() == {"narrow": ("wide",)}
    assert found(again, [{"x": 7.0}]) == [(0, "narrow"), (0, "wide")]
    assert plan.fingerprint == again.fingerprint != subs.compile(cover=False).fingerprint
    assert plan.stats()["segments"][0]["streams"]["s"]["gated"] == 1


def test_many_filters_with_the_same_coverers_have_a_gate_of_their_own() -> None:
    texts = {f"n{i}": f"x > 0 AND y = {i}" for i in range(gates.LEAST)}
    index = book(x="x >= 0", y="y > 1000", few="y > 1001", **texts).compile(cover=True).segments[0].filters["s"]
    assert isinstance(index, GatedIndex)
    assert [(len(g.slots), g.coverers.tolist()) for g in index.gates] == [(gates.LEAST, [0]), (1, [1])]


CHANGES = given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), filters(NAMES, 4), MODES),
            st.tuples(st.just("add"), filters(NAMES, 4), MODES),
            st.tuples(st.just("replace"), filters(NAMES, 4), MODES),
            st.tuples(st.just("remove"), st.integers(0, 40), st.none()),
            st.tuples(st.just("compile"), st.none(), st.none()),
        ),
        min_size=4,
        max_size=25,
    ),
    EVENTS,
)


def same_with_cover(changes: list[tuple[str, Any, Any]], events: list[dict[str, Any]]) -> bool:
    """The two books take the same changes; their plans must agree at every compile. Whether there was a gate."""
    plain, gated = hg.Subscriptions(), hg.Subscriptions()
    for subs in (plain, gated):
        subs.stream(OPEN.stream, OPEN)
    met = False
    for i, (what, given_, missing) in enumerate([*changes, ("compile", None, None)]):
        names = list(plain)
        for subs in (plain, gated):
            if what == "add":
                subs.add(f"s{i}", given_, missing=missing)
            elif what == "replace" and names:
                subs.replace(names[i % len(names)], given_, missing=missing)
            elif what == "remove" and names:
                subs.remove(names[given_ % len(names)])
        if what == "compile" and names:
            plan = gated.compile(cover=True)
            met = met or bool(plan.gates())
            assert found(plan, events) == found(plain.compile(), events)
    return met


@settings(max_examples=60)
@CHANGES
def test_matches_with_cover_equal_matches_without_whatever_comes_and_goes(
    changes: list[tuple[str, Any, Any]], events: list[dict[str, Any]]
) -> None:
    same_with_cover(changes, events)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@settings(max_examples=3000)
@CHANGES
def test_matches_with_cover_equal_matches_without_thousands_of_times(
    changes: list[tuple[str, Any, Any]], events: list[dict[str, Any]]
) -> None:
    same_with_cover(changes, events)


def test_the_random_changes_do_make_gates() -> None:
    changes: list[tuple[str, Any, Any]] = [
        ("add", "x > 1", "null"),
        ("add", "x > 2 AND i = 1", "strict"),
        ("compile", None, None),
        ("remove", 0, None),
        ("add", "x > 2", "null"),
    ]
    assert same_with_cover(changes, [{"x": 3.0, "i": 1}, {"x": 1.5}])

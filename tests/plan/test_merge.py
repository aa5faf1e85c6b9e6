"""Merging in the background never changes what matches."""

from __future__ import annotations

import pytest

from headgate import Subscriptions
from headgate.plan import deltas

EVENTS = [{"x": i % 9, "k": i % 500} for i in range(1000)]


def grown(monkeypatch: pytest.MonkeyPatch) -> Subscriptions:
    monkeypatch.setattr(deltas, "LEAST", 50)
    made = Subscriptions().stream("s", {"x": "bigint", "k": "bigint"})
    for i in range(200):
        made.add(f"q{i}", f"k = {i} AND x > {i % 7}")
    made.compile()
    for i in range(200, 300):
        made.add(f"q{i}", f"k = {i}")
    return made


def test_a_large_delta_is_merged_and_the_matches_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    made = grown(monkeypatch)
    before = made.compile()
    assert len(before.segments) == 2
    after = made.settle()
    assert len(after.segments) == 1
    assert after.match(EVENTS).equals(before.match(EVENTS))


def test_what_changes_during_a_merge_is_laid_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = grown(monkeypatch)
    made.compile()
    made.remove("q3").replace("q4", "x = 8").add("new", "k = 499")
    merged = made.settle()
    fresh = Subscriptions().stream("s", {"x": "bigint", "k": "bigint"})
    for name in made:
        fresh.add(name, made[name].text)
    assert merged.match(EVENTS).equals(fresh.compile().match(EVENTS))


def test_a_sample_of_events_does_not_change_the_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    made = grown(monkeypatch)
    plain = made.compile().match(EVENTS)
    assert made.compile(sample={"s": EVENTS[:100]}).match(EVENTS).equals(plain)

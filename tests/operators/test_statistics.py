"""Learning: selectivity and cost with decay, priors, saving and merging."""

from __future__ import annotations

import numpy as np
import pytest

from headgate.errors import PlanError
from headgate.operators.statistics import Prior, Statistics


def seen(statistics: Statistics, predicate: str, held: list[bool], cost: float = 2.0) -> int:
    row = statistics.number(predicate, predicate.partition("(")[0], Prior(0.5, 1.0))
    for h in held:
        statistics.observe(np.array([row]), np.array([h]), np.array([cost]))
    return row


def test_estimates_begin_at_what_the_operator_declared_and_move_to_what_is_seen() -> None:
    statistics = Statistics()
    row = seen(statistics, "p(1)", [])
    assert statistics.chances(np.array([row]))[0] == pytest.approx(0.5)
    assert statistics.costs(np.array([row]))[0] == pytest.approx(1.0)
    seen(statistics, "p(1)", [True] * 400)
    assert statistics.chances(np.array([row]))[0] > 0.97
    assert statistics.costs(np.array([row]))[0] == pytest.approx(2.0, abs=0.05)


def test_a_new_predicate_leans_on_its_operators_others() -> None:
    statistics = Statistics()
    seen(statistics, "p(1)", [False] * 400)
    new = seen(statistics, "p(2)", [])
    other = seen(statistics, "q(1)", [])
    assert statistics.chances(np.array([new]))[0] < 0.05
    assert statistics.chances(np.array([other]))[0] == pytest.approx(0.5)


def test_what_is_recent_counts_more() -> None:
    statistics = Statistics(decay=0.9)
    row = seen(statistics, "p(1)", [True] * 200 + [False] * 40)
    assert statistics.chances(np.array([row]))[0] < 0.3


def test_a_call_that_was_not_timed_leaves_the_cost_alone() -> None:
    statistics = Statistics()
    row = seen(statistics, "p(1)", [True] * 50)
    before = statistics.costs(np.array([row]))[0]
    statistics.observe(np.array([row]), np.array([True]), np.array([np.nan]))
    assert statistics.costs(np.array([row]))[0] == pytest.approx(before, rel=1e-4)


def test_what_was_saved_is_read_back() -> None:
    statistics = Statistics(decay=0.99)
    row = seen(statistics, "p('Bronx')", [True, False, False])
    back = Statistics.load(statistics.save())
    again = back.number("p('Bronx')", "p", Prior())
    assert back.chances(np.array([again])) == pytest.approx(statistics.chances(np.array([row])))
    assert back.costs(np.array([again])) == pytest.approx(statistics.costs(np.array([row])))
    with pytest.raises(PlanError, match="version 99"):
        Statistics.load(b'{"version": 99}')


def test_merged_workers_know_what_both_have_seen() -> None:
    one, two = Statistics(), Statistics()
    seen(one, "p(1)", [True] * 10)
    seen(two, "p(1)", [False] * 10)
    seen(two, "p(2)", [False] * 10)
    one.merge([two])
    assert one.counts("p(1)")[0] == pytest.approx(two.counts("p(1)")[0] * 2)
    assert one.counts("p(1)")[1] == pytest.approx(two.counts("p(1)")[0])
    assert one.counts("p(2)")[1] == 0.0
    assert len(one) == 2

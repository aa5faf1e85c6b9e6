"""Runs form a set: what has the same bound events, aggregates and start is one run, whatever way it came."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sequences.book import STOCK, by_engine, by_reference, columns_of, events_of, select, spines_of

from headgate.sequences.automaton import Options

NAN = float("nan")


def found(aggregate: str, middle: tuple[Any, Any], *, kernel: bool) -> int:
    """How many runs reach D from A over two simultaneous events with these prices."""
    rows = [("A", 1.0, 1, 0), ("B", middle[0], 2, 1), ("C", middle[1], 3, 1), ("D", 1.0, 4, 2)]
    source = f"FILTER {{e2.name = 'D'}} (FILTER {{name = 'A'}} (stock) FOLD {{TRUE, TRUE, {aggregate}}} stock)"
    spines = spines_of({"s": select("e2.name AS n", source)}, STOCK)
    engine = by_engine(spines, [[columns_of(STOCK, rows)]], options=Options(kernel=kernel))
    assert engine == by_reference(spines, {"stock": events_of(STOCK, rows)})
    return len(engine["s"])


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("aggregate", ["COLLECT(price) AS c", "SUM(price) AS c", "MAX(price) AS c", "LAST(price) AS c"])
def test_runs_that_collected_nan_alike_are_one(aggregate: str, kernel: bool) -> None:
    assert found(aggregate, (NAN, -NAN), kernel=kernel) == 1


@pytest.mark.parametrize("kernel", [True, False])
def test_runs_whose_recurrence_became_null_are_one(kernel: bool) -> None:
    assert found("$.c + vol / (vol - $2.vol) AS c INIT 0", (7.0, 8.0), kernel=kernel) == 1
    assert found("$.c + price AS c INIT 0", (None, None), kernel=kernel) == 1


@pytest.mark.parametrize("kernel", [True, False])
def test_runs_with_zeros_of_either_sign_are_one(kernel: bool) -> None:
    assert found("MIN(price) AS c", (0.0, -0.0), kernel=kernel) == 1


@pytest.mark.parametrize("kernel", [True, False])
def test_runs_with_different_aggregates_are_two(kernel: bool) -> None:
    assert found("SUM(price) AS c", (7.0, 8.0), kernel=kernel) == 2

"""ABSENT: what comes out when something did not happen."""

from __future__ import annotations

import pytest
from tests.sequences.book import STOCK, by_engine, by_reference, columns_of, events_of, match, spines_of

from headgate.sequences.automaton import Options

ROWS = [("A", 1.0, 1, 0), ("B", 1.0, 1, 3), ("C", 1.0, 1, 9)]


def test_absent_comes_out_when_nothing_fits_in_time() -> None:
    text = "SELECT e1.name AS n FROM FILTER {name = 'A'} (stock) ABSENT {$2.name = 'C'} stock WITHIN 5"
    assert match(text, ROWS) == [(0, 5, "n='A'")]


def test_absent_does_not_come_out_when_something_fits_in_time() -> None:
    text = "SELECT e1.name AS n FROM FILTER {name = 'A'} (stock) ABSENT {$2.name = 'B'} stock WITHIN 5"
    assert match(text, ROWS) == []


def test_a_bound_on_dur_in_the_theta_of_absent_counts() -> None:
    """B comes when DUR is 4, so theta is not TRUE for it and nothing has happened."""
    text = "SELECT e1.name AS n FROM FILTER {name = 'A'} (stock) ABSENT {$2.name = 'B' AND DUR <= 3} stock WITHIN 5"
    assert match(text, ROWS) == [(0, 5, "n='A'")]


@pytest.mark.parametrize("missing", ["null", "strict", "default", "total"])
@pytest.mark.parametrize("kernel", [True, False])
def test_a_filter_around_absent_counts_in_every_mode(missing: str, kernel: bool) -> None:
    texts = {
        "never": "SELECT e1.name AS n FROM FILTER {1 > 2} (stock ABSENT {$2.name = 'Z'} stock WITHIN 2)",
        "one": "SELECT e1.name AS n FROM FILTER {e1.name = 'B' AND 1 < 2} (stock ABSENT {$2.name = 'Z'} stock WITHIN 2)",
    }
    spines = spines_of(texts, STOCK)
    found = by_engine(spines, [[columns_of(STOCK, ROWS)]], missing, Options(kernel=kernel))
    assert found == by_reference(spines, {"stock": events_of(STOCK, ROWS)}, missing)
    assert found == {"never": [], "one": [(3, 5, "n='B'")]}


@pytest.mark.parametrize("kernel", [True, False])
def test_a_window_that_ends_beyond_64_bits_never_ends(kernel: bool) -> None:
    texts = {"long": "SELECT e1.name AS n FROM stock ABSENT {$2.name = 'Z'} stock WITHIN 9223372036854775807"}
    spines = spines_of(texts, STOCK)
    found = by_engine(spines, [[columns_of(STOCK, ROWS[1:])]], "null", Options(kernel=kernel))
    assert found == by_reference(spines, {"stock": events_of(STOCK, ROWS[1:])}, "null") == {"long": []}

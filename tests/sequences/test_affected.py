"""An event touches the runs it may affect and no others, however many wait."""

from __future__ import annotations

import pytest
from tests.sequences.book import STOCK, columns_of, session_of, spines_of


@pytest.mark.parametrize("waiting", [100, 20_000])
def test_events_that_affect_no_run_touch_none(waiting: int) -> None:
    text = "SELECT * FROM FILTER {vol = 1} (stock) NEXT {$2.name = $1.name} stock"
    session = session_of(spines_of({"s": text}, STOCK))
    session.feed([columns_of(STOCK, [(f"n{i}", 1.0, 1, i) for i in range(waiting)])])
    before = session.stats()["levels"][0]
    session.feed([columns_of(STOCK, [("other", 1.0, 2, waiting + i) for i in range(10_000)], waiting)])
    after = session.stats()["levels"][0]
    assert before["runs"] == after["runs"] == waiting
    assert after["touched"] == before["touched"]

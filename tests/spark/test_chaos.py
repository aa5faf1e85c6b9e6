"""The kill test with few rounds; `headgate bench chaos` has many."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.chaos import chaos

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout(1200)]


def test_no_match_is_lost_or_doubled_when_the_query_is_killed_while_its_book_changes(tmp_path: Path) -> None:
    report = chaos(tmp_path, rounds=2)
    assert (report.lost, report.doubled, report.foreign) == (0, 0, 0), report
    assert report.expected > 0
    assert report.versions > 1
    assert (report.drivers, report.workers) == (1, 1)

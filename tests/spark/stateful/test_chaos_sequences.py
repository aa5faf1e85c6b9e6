"""The kill test with sequences in flight, one life long; `headgate bench chaos-sequences` has many."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.chaos_sequences import run_rounds

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]


def test_no_match_of_a_sequence_is_lost_or_doubled_when_the_query_is_killed(tmp_path: Path) -> None:
    report = run_rounds(tmp_path, rounds=1)
    assert (report.unread, report.lost, report.doubled, report.foreign, report.unlike) == (0, 0, 0, 0, 0), report
    assert report.expected > 0
    assert report.drivers == 1

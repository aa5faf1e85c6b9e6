"""The kill test with few rounds, `headgate bench chaos` has many; and the account that it goes by."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.chaos import chaos, finished

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]


def test_no_match_is_lost_or_doubled_when_the_query_is_killed_while_its_book_changes(tmp_path: Path) -> None:
    report = chaos(tmp_path, rounds=2)
    assert (report.lost, report.doubled, report.foreign) == (0, 0, 0), report
    assert report.expected > 0
    assert report.versions > 1
    assert (report.drivers, report.workers) == (2, 1)
    assert report.unread == 0


def test_a_batch_planned_after_a_kill_may_read_two_lists_of_files(tmp_path: Path) -> None:
    """The source saw list 1 before the kill and list 2 after it: batch 1 reads both, and list 2 is not batch 2."""

    def log(name: str, *lines: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("\n".join(("v1", *lines)), "utf-8")

    for number in range(4):
        log(f"sources/0/{number}", json.dumps({"path": f"file:///in/{number}", "batchId": number}))
    for batch, until in enumerate((0, 2, 3)):
        log(f"offsets/{batch}", "{}", json.dumps({"logOffset": until}))
    log("commits/0", "{}")
    log("commits/1", "{}")
    assert finished(tmp_path) == {0: [Path("/in/0")], 1: [Path("/in/1"), Path("/in/2")]}

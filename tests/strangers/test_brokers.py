"""The short form of `headgate bench crowd`: strangers on one broker that is killed meanwhile, on each database and engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.crowd import Size, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    ("engine", "database", "size"),
    [
        ("local", "sqlite", Size(honest=60, hostile=20, events=1600, kills=2)),
        ("local", "postgresql", Size(honest=40, hostile=10, events=800, kills=1)),
        pytest.param("spark", "sqlite", Size(honest=30, hostile=10, events=800, kills=1), marks=pytest.mark.spark),
    ],
)
def test_each_honest_subscriber_gets_what_a_broker_of_his_own_would_give(
    engine: str, database: str, size: Size, tmp_path: Path
) -> None:
    try:
        verdict = next(run("small", tmp_path, engine, size, database))
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    assert verdict["failures"] == {}
    assert (verdict["lost"], verdict["doubled"], verdict["foreign"]) == (0, 0, 0), verdict
    assert verdict["expected"] > 100

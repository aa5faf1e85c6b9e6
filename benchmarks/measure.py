"""Measuring: several ways to do the same work, interleaved, repeated, with their medians and spread.

Absolute times wander on a shared machine; ratios taken within one run do not. So everything that is to be compared is
passed to one call, and the rounds alternate between them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    median: float
    least: float
    most: float
    rounds: int

    def row(self, prefix: str) -> dict[str, float]:
        return {f"{prefix}_s": self.median, f"{prefix}_least_s": self.least, f"{prefix}_most_s": self.most}


def interleaved(ways: Mapping[str, Callable[[], object]], rounds: int = 5) -> dict[str, Timing]:
    """Each way once to warm up, then `rounds` times in turn."""
    for run in ways.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, run in ways.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: Timing(statistics.median(t), min(t), max(t), rounds) for name, t in times.items()}

"""Measuring: several ways to do the same work, interleaved, repeated, with their medians and spread.

Absolute times wander on a shared machine; ratios taken within one run do not. So everything that is to be compared is
passed to one call, and the rounds alternate between them. The clock counts the processor time of this process, all its
threads together: for work on one core that is what a watch would show if the machine did nothing else.

A benchmark gives rows (dicts that are valid JSON); one that states a must has the key `must` and says in `holds` whether
it was met, None where the scale is too small to tell.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
clock = time.process_time
SCALES = ("small", "paper")


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
            start = clock()
            run()
            times[name].append(clock() - start)
    return {name: Timing(statistics.median(t), min(t), max(t), rounds) for name, t in times.items()}


class Differ(AssertionError):
    """Two ways to do the same work gave different results: no time of theirs means anything."""


def same_counts(counts: Mapping[str, Any]) -> int:
    """The total of counts that every way must agree on, slot by slot."""
    (name, first), *others = counts.items()
    for other, found in others:
        wrong = np.flatnonzero(first != found)
        if len(wrong):
            at = wrong[0]
            raise Differ(f"{len(wrong)} slots differ; slot {at}: {name} counts {first[at]}, {other} counts {found[at]}")
    return int(first.sum())


def must(what: str, value: float, scale: str, *, least: float | None = None, most: float | None = None) -> Row:
    """The verdict on one figure: at least `least`, or less than `most`."""
    holds = value >= least if least is not None else most is not None and value < most
    bound = {"at_least": least} if least is not None else {"less_than": most}
    return {"must": what, "value": round(value, 3), **bound, "holds": holds if scale == "paper" else None}


def peak_bytes() -> int:
    """The most memory this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def resident_bytes() -> int:
    """The memory this process has now."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * resource.getpagesize()


def main(run: Callable[[str, Path], Iterator[Row]]) -> None:
    """A benchmark as a program of its own; `headgate bench` does the same."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", choices=SCALES, default="small")
    parser.add_argument("--out", type=Path, default=Path("bench-out"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for row in run(given.scale, given.out):
        print(json.dumps(row), flush=True)

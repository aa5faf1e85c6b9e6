"""Filters and sequences against the peers that users would pick instead, on the same files.

All systems of a workload run at once, each a process on the same core; what they match is compared, event by event, and a
difference ends the benchmark. Then they take turns: a round asks each for some passes over the events, and the figure is
the median of the rounds, in processor time an event, with the least and the most beside it.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import measure
from benchmarks.measure import Differ, Row
from benchmarks.peers.harness import ROOT, SYSTEMS, Failed, Harness, make
from benchmarks.workloads import files

FILTERS = ("headgate", "headgate-single", "event-ruler", "quamina", "a-tree", "rule-engine", "json-logic")
BATCHES = tuple(name for name in FILTERS if name != "headgate-single")
SEQUENCES = ("headgate", "esper", "flink-cep")
ROUNDS = 5
PASS_S = 0.15
"""A round repeats its pass until it has taken about this long, so that the clock's grain does not matter."""
WARM_S = {"Java": 4.0}
"""Seconds of passes before the first round; what compiles as it runs needs more than the 1 second of the others."""
SLOW_S = 1.0
"""A system whose one pass takes this long gets no more than `SLOW_ROUNDS`."""
SLOW_ROUNDS = 2
CACHE = ROOT / ".cache" / "workloads" / files.digest()


@dataclass(frozen=True)
class Job:
    table: str
    workload: str
    systems: tuple[str, ...]
    x: int
    """What the table grows with: rules, attributes, events."""
    most: dict[str, int]
    """By system the largest x at which it is asked at all."""


LISTS = {"rule-engine": 1_000, "json-logic": 1_000}
JOBS: dict[str, tuple[Job, ...]] = {
    "small": (
        *(Job("bridge", f"bridge-{n}-1024", FILTERS, n, LISTS) for n in (5, 1_000, 100_000)),
        *(Job("ranges", f"ranges-{n}-1024", FILTERS, n, LISTS) for n in (1_000,)),
        *(Job("events", f"bridge-1000-{n}", FILTERS[:4], n, {"headgate-single": 1_024}) for n in (1, 64, 4_096)),
        *(Job("attributes", f"attributes-{n}-1024", BATCHES, n, {}) for n in (5, 50, 500)),
        *(Job("abe", f"abe-{n}-1024", BATCHES, n, {}) for n in (1_000, 10_000)),
        *(Job("stocks", f"stocks-{n}-20000", SEQUENCES, n, {"flink-cep": 100}) for n in (1, 100, 10_000)),
    ),
    "paper": (
        *(Job("bridge", f"bridge-{n}-1024", FILTERS, n, LISTS) for n in (5, 100, 1_000, 10_000, 100_000)),
        *(Job("ranges", f"ranges-{n}-1024", FILTERS, n, LISTS) for n in (5, 1_000, 10_000)),
        *(
            Job("events", f"bridge-1000-{n}", FILTERS[:4], n, {"headgate-single": 4_096})
            for n in (1, 16, 64, 256, 1_024, 4_096, 65_536)
        ),
        *(Job("attributes", f"attributes-{n}-1024", FILTERS, n, {}) for n in (5, 10, 20, 50, 100, 200, 500)),
        *(Job("abe", f"abe-{n}-1024", FILTERS, n, {}) for n in (100, 1_000, 10_000, 100_000)),
        *(
            Job("stocks", f"stocks-{n}-20000", SEQUENCES, n, {"flink-cep": 100})
            for n in (1, 10, 100, 1_000, 10_000)
        ),
    ),
}  # fmt: skip


def run(scale: str, out: Path, tables: tuple[str, ...] = ()) -> Iterator[Row]:
    """A row for each system and workload; those that cannot take part say why."""
    made: dict[str, str | None] = {}
    rows: list[Row] = []
    for job in JOBS[scale]:
        if tables and job.table not in tables:
            continue
        for row in compared(job, made):
            rows.append(row)
            yield row
    for table in dict.fromkeys(r["table"] for r in rows):
        plot([r for r in rows if r["table"] == table], out / f"peers-{table}.png")


def compared(job: Job, made: dict[str, str | None]) -> Iterator[Row]:
    folder = files.folder(job.workload, CACHE)
    about = files.about(folder)
    rows: dict[str, Row] = {}
    with ExitStack() as stack:
        running: dict[str, Harness] = {}
        for name in job.systems:
            rows[name] = {"table": job.table, "workload": job.workload, "x": job.x, "system": name}
            why = _why_not(name, job, about, made)
            if why is None:
                try:
                    running[name] = stack.enter_context(Harness(SYSTEMS[name], folder))
                    rows[name] |= _built(running[name])
                except Failed as problem:
                    running.pop(name, None)
                    why = _failed(name, problem)
            if why is not None:
                rows[name]["why"] = why
        found: dict[str, list[list[int]]] = {}
        for name in list(running):
            try:
                found[name], seconds = running[name].ask("matches")
                rows[name]["first_s"] = round(seconds, 3)
            except Failed as problem:
                running.pop(name).close()
                rows[name]["why"] = _failed(name, problem)
        same(found)
        for name, matched in found.items():
            rows[name]["matches"] = sum(map(len, matched))
            rows[name]["events"] = len(matched)
        _timed(running, rows)
        for name, harness in running.items():
            rows[name]["peak_mib"] = round(harness.peak_bytes() / (1 << 20))
    yield from rows.values()


def _failed(name: str, problem: Failed) -> str:
    """A peer that fails is a line of the table; a comparison without ourselves is none."""
    if name == "headgate":
        raise problem
    return f"failed: {problem}"


def _why_not(name: str, job: Job, about: dict[str, Any], made: dict[str, str | None]) -> str | None:
    if name in about["cannot"]:
        return f"cannot: {about['cannot'][name]}"
    if job.x > job.most.get(name, job.x):
        return "not asked: too slow at this size"
    system = SYSTEMS[name]
    if system.folder not in made:
        made[system.folder] = make(system)
    why = made[system.folder]
    return None if why is None else f"not built: {why}"


def _built(harness: Harness) -> Row:
    answer, seconds = harness.ask("build")
    return {"rules": answer["rules"], "build_s": round(seconds, 3)}


def same(found: dict[str, list[list[int]]]) -> None:
    """Every system matches what the first one does, as far as it was asked."""
    if not found:
        return
    (first, expected), *others = found.items()
    for name, matched in others:
        for event, (a, b) in enumerate(zip(expected, matched, strict=False)):
            if a != b:
                raise Differ(f"event {event}: {first} matches {a[:20]}, {name} matches {b[:20]}")


def _timed(running: dict[str, Harness], rows: dict[str, Row]) -> None:
    passes: dict[str, int] = {}
    for name, harness in running.items():
        # A pass by itself first: what goes before the first match of all, such as starting a cluster, is not in it.
        _, once = harness.ask("run 1")
        warm = rows[name]["first_s"] + once
        while warm < WARM_S.get(SYSTEMS[name].language, 1.0):
            passes[name] = max(1, round(PASS_S / max(once, 1e-5)))
            _, seconds = harness.ask(f"run {passes[name]}")
            once, warm = seconds / passes[name], warm + seconds
        passes[name] = max(1, round(PASS_S / max(once, 1e-5)))
        rows[name]["slow"] = once > SLOW_S
    taken: dict[str, list[float]] = {name: [] for name in running}
    for turn in range(ROUNDS):
        for name, harness in running.items():
            if turn >= SLOW_ROUNDS and rows[name]["slow"]:
                continue
            _, seconds = harness.ask(f"run {passes[name]}")
            taken[name].append(1e6 * seconds / passes[name] / rows[name]["events"])
    for name, times in taken.items():
        del rows[name]["slow"]
        rows[name] |= {
            "us_an_event": round(statistics.median(times), 2), "least_us": round(min(times), 2),
            "most_us": round(max(times), 2), "rounds": len(times),
        }  # fmt: skip


AXES = {"events": "events in a pass", "attributes": "attributes of an event", "stocks": "patterns"}


def plot(rows: list[Row], to: Path) -> None:
    """Microseconds an event of each system, by what the table grows with; bars are the least and the most."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for name in dict.fromkeys(r["system"] for r in rows):
        points = [r for r in rows if r["system"] == name and "us_an_event" in r]
        if points:
            middle = [r["us_an_event"] for r in points]
            around = [[m - r["least_us"] for m, r in zip(middle, points, strict=True)],
                      [r["most_us"] - m for m, r in zip(middle, points, strict=True)]]  # fmt: skip
            axes.errorbar([r["x"] for r in points], middle, around, marker="o", capsize=3, label=SYSTEMS[name].title)
    axes.set(xscale="log", yscale="log", ylabel="microseconds an event")
    axes.set_xlabel(AXES.get(rows[0]["table"], "rules"))
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(to, dpi=85)
    pyplot.close(figure)


if __name__ == "__main__":
    measure.main(run)

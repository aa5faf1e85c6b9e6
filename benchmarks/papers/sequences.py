"""Figures 6a to 6c, 7 and 8 of the Cayuga paper (EDBT 2006), with the paper's workload.

    python -m benchmarks.papers.sequences --scale small

Each point is one JSON line; each figure also a PNG. The paper's numbers stand beside ours where its text has them; its
machine was a Pentium 4 at 3 GHz. A feed is measured from columns to matches, in CPU time of this process, after a
warm-up.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl

from benchmarks.papers import sequences_rss
from benchmarks.papers.sequences_workload import TEMPLATES, Setting, spines, stream
from headgate.columns import Columns
from headgate.language.spine import Spine
from headgate.sequences.automaton import Options
from headgate.sequences.engine import Index
from headgate.sequences.levels import Subscription

mpl.use("Agg")
from matplotlib import pyplot as plt

MODES = {
    "Cayuga": Options(),
    "No State Merging": Options(merge=False),
    "No FR-Index": Options(fr=False),
    "No Instance Index": Options(an=False, ai=False),
    "No MQO": Options(merge=False, an=False, ai=False, fr=False),
}
"""The paper's table 4."""
_BATCH = 65_536


@dataclass(frozen=True)
class Scale:
    events: int
    subscriptions: tuple[int, ...]
    default: int
    modes: tuple[int, ...]
    mode_events: int
    rss: tuple[int, ...]


SCALES = {
    "small": Scale(20_000, (2_000, 5_000, 10_000), 5_000, (1_000, 2_000), 2_000, (1_000, 2_000)),
    "paper": Scale(
        100_000,
        (100_000, 200_000, 300_000, 400_000),
        200_000,
        (10_000, 20_000, 40_000),
        10_000,
        (10_000, 20_000, 40_000),
    ),
}


def measure(plans: list[Spine], events: Columns, options: Options | None = None) -> dict[str, Any]:
    """Compiles and feeds; events a second of CPU time, after one small feed that compiles the kernels."""
    start = time.process_time()
    index = Index([Subscription(f"q{i}", spine) for i, spine in enumerate(plans)], options=options)
    compiled = time.process_time() - start
    warm = min(len(events) // 10, 1000)
    session = index.session()
    session.feed([events.slice(0, warm)])
    start, wall = time.process_time(), time.perf_counter()
    matches = 0
    for at in range(warm, len(events), _BATCH):
        matches += len(session.feed([events.slice(at, min(at + _BATCH, len(events)))]))
    took = time.process_time() - start
    stats = session.stats()["levels"][0]
    return {
        "events_per_second": round((len(events) - warm) / took),
        "wall_seconds": round(time.perf_counter() - wall, 3),
        "compile_seconds": round(compiled, 1),
        "matches": matches,
        "states": len(index.levels[0].numbered.states),
        "static_predicates": len(index.levels[0].slots.predicates),
        "runs": stats["runs"],
        "touched_per_event": round(stats["touched"] / len(events), 2),
    }


def figure_6a(scale: Scale) -> Iterator[dict[str, Any]]:
    events = stream(scale.events)
    for template in TEMPLATES:
        for count in scale.subscriptions:
            found = measure(spines(template, count), events)
            yield {"figure": "6a", "template": template, "x": count, **found, "paper": "above 1000 at 400,000"}


def figure_6b(scale: Scale) -> Iterator[dict[str, Any]]:
    events = stream(scale.events)
    for template in TEMPLATES:
        for zipf in (0.8, 1.0, 1.2, 1.4):
            found = measure(spines(template, scale.default, Setting(zipf1=zipf)), events)
            yield {"figure": "6b", "template": template, "x": zipf, **found, "paper": "rises with the exponent"}


def figure_6c(scale: Scale) -> Iterator[dict[str, Any]]:
    events = stream(scale.events)
    for template in TEMPLATES:
        for selectivity in (0.5, 0.6, 0.7, 0.8):
            found = measure(spines(template, scale.default, Setting(selectivity=selectivity)), events)
            yield {"figure": "6c", "template": template, "x": selectivity, **found, "paper": "falls, inverse quadratic"}


def figure_7(scale: Scale) -> Iterator[dict[str, Any]]:
    events = stream(scale.mode_events)
    for name, options in MODES.items():
        for count in scale.modes:
            slow = not (options.fr and options.an)
            found = measure(spines("Filter", count), events.slice(0, 500) if slow else events, options)
            yield {"figure": "7", "template": name, "x": count, **found, "paper": "orders of magnitude by the indexes"}


def figure_8(scale: Scale) -> Iterator[dict[str, Any]]:
    events = sequences_rss.stream()
    events = events if scale is SCALES["paper"] else events.slice(0, 5_000)
    for template in sequences_rss.TEMPLATES:
        for count in scale.rss:
            found = measure(sequences_rss.spines(template, count), events)
            yield {"figure": "8", "template": template, "x": count, **found, "paper": "Iteration above 100 at 40,000"}


FIGURES = {"6a": figure_6a, "6b": figure_6b, "6c": figure_6c, "7": figure_7, "8": figure_8}


def run(scale: str, out: Path, figures: tuple[str, ...] = tuple(FIGURES)) -> Iterator[dict[str, Any]]:
    """The points of the figures, one after the other; a picture is drawn when a figure is done."""
    out.mkdir(parents=True, exist_ok=True)
    for name in figures:
        points = []
        for point in FIGURES[name](SCALES[scale]):
            points.append(point)
            yield point
        _draw(name, points, out / f"sequences-{name}.png")


def _draw(name: str, points: list[dict[str, Any]], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(6, 4))
    for template in dict.fromkeys(p["template"] for p in points):
        ours = [p for p in points if p["template"] == template]
        axes.plot([p["x"] for p in ours], [p["events_per_second"] for p in ours], marker="o", label=template)
    axes.set_yscale("log")
    axes.set_ylabel("events / second")
    axes.set_xlabel({"6b": "Zipf exponent", "6c": "selectivity of a range"}.get(name, "subscriptions"))
    axes.set_title(f"Cayuga, figure {name}: our engine")
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", choices=sorted(SCALES), default="small")
    parser.add_argument("--out", type=Path, default=Path("bench-out"))
    parser.add_argument("--figure", choices=sorted(FIGURES), action="append")
    chosen = parser.parse_args()
    for point in run(chosen.scale, chosen.out, tuple(chosen.figure or FIGURES)):
        print(json.dumps(point), flush=True)


if __name__ == "__main__":
    main()

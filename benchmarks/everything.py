"""All benchmarks, part by part: `python -m benchmarks.everything --scale small`, which `make bench` calls.

Each part is a process of its own and leaves its rows as JSON lines in `OUT/SCALE/PART.jsonl`, its pictures beside them. A
part whose file is there is not run again, so an interrupted run goes on where it stopped; `--fresh` begins anew, and
`--only PART ...` runs some. A part that fails keeps what it printed in `PART.failed` and fails the run at its end.

What takes one core shares the machine at the small scale: peers of the matchers on one core, the rest on another. Some
parts run alone, and at the papers' sizes all do.

`python -m benchmarks.page` makes `docs/results.md` of the files.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measure import SCALES, Row

ROOT = Path(__file__).parents[1]
MATCHERS = "benchmarks.peers.matchers"
PARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "peers-bridge": (MATCHERS, {"tables": ("bridge",)}),
    "peers-ranges": (MATCHERS, {"tables": ("ranges",)}),
    "peers-events": (MATCHERS, {"tables": ("events",)}),
    "peers-attributes": (MATCHERS, {"tables": ("attributes",)}),
    "peers-abe": (MATCHERS, {"tables": ("abe",)}),
    "peers-stocks": (MATCHERS, {"tables": ("stocks",)}),
    "peers-graphs": ("benchmarks.peers.graphs", {}),
    "peers-operators": ("benchmarks.peers.operators", {}),
    "peers-covering": ("benchmarks.peers.covering", {}),
    "peers-spark": ("benchmarks.peers.spark", {}),
    "filters": ("benchmarks.papers.filters", {}),
    "filters-million": ("benchmarks.filters_million", {}),
    "abe": ("benchmarks.abe", {}),
    "sequences": ("benchmarks.papers.sequences", {}),
    "graphs": ("benchmarks.papers.graphs", {}),
    "operators": ("benchmarks.papers.operators", {}),
    "covering": ("benchmarks.papers.covering", {}),
    "decode": ("benchmarks.decode", {}),
    "parse": ("benchmarks.parse", {}),
    "sequences-spark": ("benchmarks.sequences_spark", {}),
    "spark": ("benchmarks.spark", {}),
    "broker": ("benchmarks.broker", {}),
    "chaos": ("benchmarks.chaos", {}),
    "chaos-sequences": ("benchmarks.chaos_sequences", {}),
}
"""The module of each part and what its `run` gets besides the scale and the folder."""
FULL_ONLY = ("spark", "broker", "chaos", "chaos-sequences")
"""Minutes each, and about services rather than speed beside others: `make bench` leaves them out."""
ALONE = ("operators", "peers-spark", "sequences-spark", *FULL_ONLY)
"""Spark takes all cores; and what holds itself to a few milliseconds wants quiet."""


def parts(scale: str) -> list[str]:
    return [name for name in PARTS if scale == "paper" or name not in FULL_ONLY]


LIMIT_S = {"small": 900, "paper": 6 * 3600}


def machine() -> Row:
    """What the figures were taken on. The host's name is nobody's business."""
    model = next((x.partition(":")[2].strip() for x in _lines("/proc/cpuinfo") if x.startswith("model name")), "")
    memory = next((int(x.split()[1]) for x in _lines("/proc/meminfo") if x.startswith("MemTotal")), 0)
    command = ["git", "-c", "safe.directory=*", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    return {
        "processor": model or platform.processor(), "cores": os.cpu_count(), "memory_gib": round(memory / (1 << 20)),
        "python": platform.python_version(), "commit": done.stdout.strip(), "day": f"{datetime.now(UTC):%Y-%m-%d}",
        "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text("utf-8").splitlines()
    except OSError:
        return []


def rows_of(name: str, scale: str, out: Path) -> Iterator[Row]:
    module, more = PARTS[name]
    yield from import_module(module).run(scale, out, **more)


def one(name: str, scale: str, out: Path) -> None:
    """A part, in this process: the machine, its rows, and the seconds it took."""
    out.mkdir(parents=True, exist_ok=True)
    kept, begun = out / f"{name}.failed", time.monotonic()
    with kept.open("w", encoding="utf-8") as file:
        for row in itertools.chain([{"machine": machine()}], rows_of(name, scale, out)):
            file.write(json.dumps(row) + "\n")
            file.flush()
        file.write(json.dumps({"part": name, "scale": scale, "wall_s": round(time.monotonic() - begun, 1)}) + "\n")
    kept.rename(out / f"{name}.jsonl")


def run(names: list[str], scale: str, out: Path, fresh: bool) -> list[str]:
    """The parts that failed."""
    wanted = []
    for name in names:
        if (out / f"{name}.jsonl").exists() and not fresh:
            print(f"{name}: done before", flush=True)
        else:
            wanted.append(name)
    alone = [name for name in wanted if scale == "paper" or name in ALONE]
    # They are built by whoever is first: not by two at once.
    peers = [name for name in wanted if name not in alone and PARTS[name][0] == MATCHERS]
    rest = [name for name in wanted if name not in alone and name not in peers]
    cores = sorted(os.sched_getaffinity(0))
    with ThreadPoolExecutor(2) as pool:
        lanes = [pool.submit(_lane, lane, scale, out, core) for lane, core in ((peers, cores[0]), (rest, cores[-1]))]
    return [name for lane in lanes for name in lane.result()] + _lane(alone, scale, out, None)


def _lane(names: list[str], scale: str, out: Path, core: int | None) -> list[str]:
    """One part after the other, on one core or on all; those that failed."""
    return [name for name in names if not _done(name, scale, out, core)]


def _done(name: str, scale: str, out: Path, core: int | None) -> bool:
    begun = time.monotonic()
    command = [
        sys.executable,
        "-m",
        "benchmarks.everything",
        "--scale",
        scale,
        "--out",
        str(out.parent),
        "--part",
        name,
    ]
    command += [] if core is None else ["--core", str(core)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    with (out / f"{name}.log").open("w", encoding="utf-8") as log:
        try:
            code = subprocess.run(  # noqa: S603 - our own words
                command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=log, timeout=LIMIT_S[scale]
            ).returncode
        except subprocess.TimeoutExpired:
            code = -1
    how = f"FAILED, see {log.name}" if code else "done"
    print(f"{name}: {how} in {time.monotonic() - begun:.0f} s", flush=True)
    return code == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", choices=SCALES, default="small")
    parser.add_argument("--out", type=Path, default=Path("bench-out"))
    parser.add_argument("--only", nargs="*", choices=PARTS, default=[], metavar="PART")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--core", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    out = given.out / given.scale
    if given.part:
        if given.core is not None:
            os.sched_setaffinity(0, {given.core})
        one(given.part, given.scale, out)
        return
    out.mkdir(parents=True, exist_ok=True)
    failed = run(given.only or parts(given.scale), given.scale, out, given.fresh)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()

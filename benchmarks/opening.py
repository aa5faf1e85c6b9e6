"""Opening a saved plan in a fresh process: the time of `Plan.open` alone, and until a first batch was matched.

Two plans: sequences of the Cayuga paper's Filter template, and a million conjunctions. The process that opens them has
imported the package and nothing else; that the parser is not called is asserted by making it raise.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import measure
from benchmarks.measure import Row, must
from benchmarks.papers.sequences_workload import SCHEMA, texts
from benchmarks.workloads.filters import MILLION_SCHEMA, million_texts
from headgate import Subscriptions

SEQUENCES = {"small": 1_000, "paper": 10_000}
FILTERS = {"small": 50_000, "paper": 1_000_000}
ROUNDS = 3
_CHILD = """
import json, sys, time
from headgate import Plan
from headgate.language import parser
def refuse(*_, **__):
    raise AssertionError("the parser was called")
parser._reduce = parser.template = refuse
start, used = time.perf_counter(), time.process_time()
plan = Plan.open(sys.argv[1])
opened = {"wall_s": time.perf_counter() - start, "cpu_s": time.process_time() - used, "subscriptions": len(plan)}
start = time.perf_counter()
plan.match({sys.argv[2]: []})
print(json.dumps({**opened, "empty_batch_s": time.perf_counter() - start}))
"""


def _sequences(count: int) -> Subscriptions:
    book = Subscriptions().stream(SCHEMA.stream, SCHEMA)
    for number, text in enumerate(texts("Filter", count)):
        book.add(str(number), text)
    return book


def _filters(count: int) -> Subscriptions:
    book = Subscriptions().stream(MILLION_SCHEMA.stream, MILLION_SCHEMA)
    for number, text in enumerate(million_texts(count)):
        book.add(str(number), text, on=MILLION_SCHEMA.stream)
    return book


def _opened(path: Path, stream: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-c", _CHILD, str(path), stream], capture_output=True, text=True, check=True)  # noqa: S603 - this interpreter and our own program
    opened: dict[str, Any] = json.loads(done.stdout)
    return opened


def run(scale: str, out: Path) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        for what, make, count, stream, most in (
            ("sequences", _sequences, SEQUENCES[scale], SCHEMA.stream, 1.0),
            ("filters", _filters, FILTERS[scale], MILLION_SCHEMA.stream, 0.5),
        ):
            path = Path(folder) / what
            start = time.process_time()
            make(count).compile().save(path)
            made = time.process_time() - start
            rows = [_opened(path, stream) for _ in range(ROUNDS)]
            best = min(rows, key=lambda row: float(row["wall_s"]))
            yield {"plan": what, "texts_to_file_cpu_s": round(made, 2), "bytes": path.stat().st_size, **best}
            yield must(f"seconds to open {count:,} {what}", float(best["wall_s"]), scale, most=most)


if __name__ == "__main__":
    measure.main(run)

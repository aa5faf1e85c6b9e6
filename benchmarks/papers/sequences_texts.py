"""From texts to a plan: what it costs to add many sequences to a book and to compile it, on one core.

    python -m benchmarks.papers.sequences_texts --count 20000
    python -m benchmarks.papers.sequences_texts --count 400000 --template Filter

The texts are those of the Cayuga paper's five templates. A template is measured in a process of its own, so that the
memory it takes can be told: KB a subscription are those by which the process grew, its texts not counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.papers.sequences_workload import SCHEMA, TEMPLATES, texts
from headgate import Subscriptions


def measure(template: str, count: int) -> dict[str, Any]:
    """CPU seconds of a book of `count` texts. A book of a few is compiled first, so that nothing is loaded later."""
    book_of(texts(template, 10)).compile()
    table = pa.table({"id": [f"q{i}" for i in range(count)], "text": texts(template, count)})
    before = resident_kb()
    start = time.process_time()
    book = book_of(table.column("text").to_pylist())
    added = time.process_time()
    kept = resident_kb()
    plan = book.compile()
    compiled = time.process_time()
    return {
        "template": template,
        "texts": count,
        "add_seconds": round(added - start, 2),
        "compile_seconds": round(compiled - added, 2),
        "us_a_text": round((compiled - start) / count * 1e6, 1),
        "add_kb": round((kept - before) / count, 2),
        "plan_kb": round((resident_kb() - kept) / count, 2),
        "subscriptions": len(plan),
    }


def book_of(bodies: list[str]) -> Subscriptions:
    book = Subscriptions().stream("s", SCHEMA)
    return book.add_table(pa.table({"id": [f"q{i}" for i in range(len(bodies))], "text": bodies}))


def resident_kb() -> int:
    """What the process holds now; the peak would count what was let go again."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--template", choices=sorted(TEMPLATES), action="append")
    chosen = parser.parse_args()
    templates = chosen.template or list(TEMPLATES)
    if len(templates) == 1:
        print(json.dumps(measure(templates[0], chosen.count)), flush=True)
        return
    for template in templates:
        own = [sys.executable, __file__, "--count", str(chosen.count), "--template", template]
        subprocess.run(own, check=True)  # noqa: S603 - this very file


if __name__ == "__main__":
    main()

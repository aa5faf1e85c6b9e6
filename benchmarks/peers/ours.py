"""Headgate as one of the peers: `python -m benchmarks.peers.ours SYSTEM FOLDER`, SYSTEM one of

* `headgate`: events in batches of 1,024, as a stream gives them, in one session;
* `headgate-single`: one event a call, as a service gets them.

From lines of JSON to the pairs of event and subscription, like everyone here.
"""

from __future__ import annotations

import json
import sys
from io import BytesIO
from pathlib import Path

import pyarrow as pa

import headgate as hg
from benchmarks.peers.answers import answer
from headgate.events import read
from headgate.plan import Plan
from headgate.runtime.session import Session

BATCH = {"headgate": 1_024, "headgate-single": 1}
STREAM = "ticks"


class Ours:
    def __init__(self, system: str, folder: Path) -> None:
        self.about = json.loads((folder / "about.json").read_text("utf-8"))
        self.rules = [json.loads(line) for line in (folder / "rules-headgate.jsonl").read_text("utf-8").splitlines()]
        lines = (folder / "events.jsonl").read_bytes().splitlines(keepends=True)
        self.events = len(lines)
        self.size = BATCH[system]
        self.batches = [b"".join(lines[at : at + self.size]) for at in range(0, len(lines), self.size)]
        self.sequences = "time" in self.about
        self.plan: Plan | None = None

    def build(self) -> int:
        time = f" TIME {self.about['time']}" if self.sequences else ""
        subs = hg.Subscriptions.parse(f"CREATE STREAM {STREAM} ({self.about['schema']}){time};")
        names = [str(i) for i in range(len(self.rules))]
        if self.sequences:
            for name, text in zip(names, self.rules, strict=True):
                subs.add(name, text)
        else:
            subs.add_table(pa.table({"id": names, "text": self.rules}), on=STREAM)
        self.plan = subs.compile()
        return len(self.plan)

    def _found(self, session: Session, text: bytes, first: int) -> pa.Table:
        assert self.plan is not None
        schema = self.plan.schemas[STREAM]
        (part,) = read("-", schema, self.plan.needs(STREAM) | set(schema.time), first=first, source=BytesIO(text))
        if self.sequences:
            return session.feed({STREAM: part})
        found: pa.Table = session.whole({STREAM: part}, "pairs", "raise")
        return found

    def run(self, times: int) -> int:
        assert self.plan is not None
        total = 0
        for _ in range(times):
            session = self.plan.session()
            for number, text in enumerate(self.batches):
                total += self._found(session, text, number * self.size).num_rows
        return total

    def matches(self) -> list[list[int]]:
        assert self.plan is not None
        kept: list[list[int]] = [[] for _ in range(self.events)]
        session = self.plan.session()
        for number, text in enumerate(self.batches):
            found = self._found(session, text, number * self.size)
            for row in found.select(["event", "subscription"]).to_pylist():
                kept[row["event"]].append(int(row["subscription"]))
        return [sorted(k) for k in kept]


if __name__ == "__main__":
    answer(Ours(sys.argv[1], Path(sys.argv[2])))

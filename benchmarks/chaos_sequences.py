"""The kill test with sequences in flight: what `chaos` does to filters, done to state.

Each micro-batch is one file; Spark's log tells which. What must be in the sink is found in two ways. The stateful core,
in this process, without Spark and with one bucket, takes the same batches with the same versions of the book. And for the
subscriptions that are never touched, a session takes all events at once: no batch, no bucket, no state.

python -m benchmarks.chaos_sequences [rounds]
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import chaos
from headgate.columns import Columns
from headgate.events import decode
from headgate.plan.sequence_book import SequenceBook
from headgate.runtime.stateful.buckets import Bucket
from headgate.runtime.stateful.packing import TICK, Sent
from headgate.runtime.stateful.route import dated, parcels
from headgate.runtime.stateful.state_storage import InMemory
from headgate.runtime.stateful.watermark import Timing
from headgate.schema import Kind, Schema
from headgate.store import Store

DELAY = 20
STABLE = {
    "pair": "SELECT e1.x AS a, e2.x AS b FROM s NEXT {$2.y = $1.y} s",
    "rising": "SELECT n, e1.y AS y FROM s FOLD {$2.y = $.y AND DUR <= 60, $2.x > $.x, COUNT(*) AS n} s",
    "anywhere": "SELECT e1.x AS a, e2.x AS b FROM FILTER {x > 90} (s) NEXT {$2.x < $1.x - 85} s",
    "silence": "SELECT e1.x AS a FROM FILTER {x > 70} (s) ABSENT {$2.y = $1.y AND $2.x > 70} s WITHIN 30",
    "made": "SELECT e1.y AS y, e2.x AS x FROM FILTER {x < 30} (s) NEXT {$2.y = $1.y} s PUBLISH lows",
    "of the made": "SELECT e1.x AS a, e2.x AS b FROM lows NEXT {$2.y = $1.y} s",
}


def victim(folder: Path, last: bool) -> None:
    """Run the query: until all there is has been read, or until killed."""
    from pyspark.sql import DataFrame

    from headgate.spark import spark_session, start
    from headgate.spark.sinks import Files

    spark = spark_session("local[2,4]", "headgate chaos", chaos.conf(folder), ui=False)
    spark.sparkContext.setLogLevel("ERROR")
    df = spark.readStream.schema("id string, x bigint, y string, at bigint").option("maxFilesPerTrigger", 1)
    files = Files(str(folder / "out"))

    class Noted:
        name = "files, with a note of each beginning"

        def write(self, df: DataFrame, query: str, batch: int) -> None:
            with (folder / "begun").open("a") as f:
                f.write(f"{batch}\n")
            files.write(df, query, batch)

    start(
        df.json(str(folder / "in")),
        Store(folder / "book.db"),
        Noted(),
        folder / "checkpoint",
        on="s",
        event_id="id",
        errors=str(folder / "bad"),
        trigger="available" if last else None,
        watermark=DELAY,
        buckets=4,
    ).wait()


class World(chaos.World):
    """Events with a time that is not quite in order, and a book of sequences, some of which come and go."""

    module = "benchmarks.chaos_sequences"

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.rng = random.Random(seed)
        self.store = Store(folder / "book.db")
        self.store.stream("s", {"x": "bigint", "y": "string", "at": "bigint"}, time="at")
        for name, text in STABLE.items():
            self.store.add(name, text)
        self.store.add("filter", "x > 50", on="s")
        self.files = self.names = self.now = 0
        (folder / "in").mkdir()

    def row(self, i: int) -> dict[str, Any]:
        self.now += self.rng.randrange(3)
        at = self.now - self.rng.randrange(DELAY // 2)
        return {"id": f"e{self.files}-{i}", "x": self.rng.randrange(100), "y": self.rng.choice("abcdefgh"), "at": at}

    def change(self) -> None:
        passing = [name for name in self.store.book() if name.startswith("n")]
        match self.rng.randrange(3):
            case 1 if len(passing) > 3:
                self.store.remove(self.rng.choice(passing))
            case 2 if passing:
                self.store.replace(self.rng.choice(passing), self._text())
            case _:
                self.names += 1
                self.store.add(f"n{self.names}", self._text())

    def _text(self) -> str:
        low = self.rng.randrange(100)
        theta = self.rng.choice(["$2.y = $1.y", "$2.x > $1.x", "$2.y = $1.y AND $2.x > $1.x"])
        return " ".join(("SELECT e1.x AS a, e2.x AS b FROM", f"FILTER {{x > {low}}} (s) NEXT {{{theta}}} s"))


@dataclass(frozen=True)
class Report(chaos.Report):
    unlike: int
    """Matches of the subscriptions that were never touched that differ from those of one session over all events."""

    @property
    def sound(self) -> bool:
        return super().sound and not self.unlike


def run_rounds(folder: Path, rounds: int, seed: int = 1) -> Report:
    world = World(folder, seed)
    kinds = [n % 2 == 0 for n in range(rounds)]
    for driver in kinds:
        chaos.round_of(world, driver)
    with (folder / "log").open("a") as log:
        done = chaos.spawn(world, log, last=True).wait(chaos.PATIENCE_S)
    assert done == 0, (folder / "log").read_text()[-3000:]
    return account(world, kinds)


def account(world: World, kinds: Sequence[bool]) -> Report:
    query = json.loads((world.folder / "checkpoint" / "headgate" / "query.json").read_text())["query"]
    batches = chaos.finished(world.folder / "checkpoint")
    wanted: Counter[chaos.Match] = Counter()
    versions = []
    bucket, kept = Bucket(0, 1), InMemory()
    everything = []
    for batch, files in batches.items():
        if not files:
            continue
        version = world.store.logs.recorded(query, batch)
        assert version is not None, f"batch {batch} has no version"
        versions.append(version)
        events = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        everything += events
        wanted.update(_step(world.store, version, events, bucket, kept))
    begun = Counter((world.folder / "begun").read_text().split())
    got: Counter[chaos.Match] = Counter()
    for file in sorted((world.folder / "out").glob("query=*/batch=*/*.parquet")):
        rows = pq.ParquetFile(file).read().select(["id", "event", "subscription"]).to_pylist()
        got.update((r["id"], r["event"], r["subscription"]) for r in rows)
    stable = {m for m in got if m[2] in STABLE}
    workers = len(kinds) - sum(kinds)
    read = {file for files in batches.values() for file in files}
    return Report(
        rounds=len(kinds),
        kills=len(kinds) + workers,
        drivers=len(kinds),
        workers=workers,
        batches=len(batches),
        replayed=sum(n > 1 for n in begun.values()),
        versions=len(set(versions)),
        unread=chaos.EVENTS * len(set((world.folder / "in").iterdir()) - read),
        expected=len(wanted),
        lost=len(wanted - got),
        doubled=sum(n - 1 for n in got.values()),
        foreign=len(set(got) - set(wanted)),
        unlike=len(stable ^ _at_once(world.store, versions[0], everything, bucket.time.open.get(Kind.BIGINT, 0))),
    )


def _columns(events: Sequence[dict[str, Any]], schema: Schema) -> Columns:
    decoded = decode([{k: v for k, v in e.items() if k != "id"} for e in events], schema)
    return replace(decoded.columns, identity=pa.array([e["id"] for e in events]))


def _step(store: Store, version: int, events: list[Any], bucket: Bucket, kept: InMemory) -> list[chaos.Match]:
    """One batch through the filters and the stateful core."""
    book = store.book(version)
    plain = book.part([n for n in book if not book[n].text.startswith("SELECT")])
    columns = _columns(events, book.streams["s"])
    found = [(r["id"], events[r["event"]]["id"], r["subscription"]) for r in plain.match({"s": columns}).to_pylist()]
    sequences = SequenceBook.of(book.part([n for n in book if book[n].text.startswith("SELECT")]), 1)
    usable, _ = dated(columns, [("at",)])
    ids = pa.array([e["id"] for e in events])
    sent = list(parcels(sequences, usable, ids))
    sent.append(Sent(TICK, "s", latest=int(usable.t1.max())))
    outcome = bucket.advance(sequences, sent, Timing({"s": DELAY}), kept)
    for table in outcome.tables:
        rows = table.to_pylist()
        found += [(r["id"], r["event"], r["subscription"]) for r in rows if r["error"] is None]
    return found


def _at_once(store: Store, version: int, events: list[Any], until: int) -> set[chaos.Match]:
    """What a session finds that takes all events below a time in one call."""
    book = store.book(version)
    index = book.part(list(STABLE)).sequences
    assert index is not None
    table = index.session().feed([_columns(events, book.streams["s"])], until).to_arrow()
    return {(r["id"], events[r["event"]]["id"], r["subscription"]) for r in table.to_pylist()}


def run(scale: str, out: Path) -> Iterator[dict[str, Any]]:
    """`headgate bench chaos-sequences`: every round kills a driver, every second one a worker too."""
    folder = (out / "chaos-sequences").absolute()  # as Spark names the files that it has read
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    report = run_rounds(folder, 2 if scale == "small" else 14)
    yield asdict(report)
    yield {
        "must": f"events unread and matches lost, doubled or foreign after {report.kills} kills",
        "value": report.unread + report.lost + report.doubled + report.foreign + report.unlike,
        "less_than": 1,
        "holds": report.sound,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", nargs="?", type=int, default=14)
    parser.add_argument("--victim", type=Path)
    parser.add_argument("--last", action="store_true")
    given = parser.parse_args()
    if given.victim is not None:
        victim(given.victim, given.last)
        return
    with tempfile.TemporaryDirectory() as folder:
        report = run_rounds(Path(folder), given.rounds)
    print(json.dumps({**asdict(report), "sound": report.sound}))
    sys.exit(not report.sound)


if __name__ == "__main__":
    main()

"""Kill a streaming query again and again while its book changes, then look for matches lost or doubled.

Each round starts the query in a process of its own, adds events and changes subscriptions while it runs, and kills at a
random moment the whole driver, in every second round one of its Python workers before it, with SIGKILL. At the end the
query runs through, and the sink is compared with what each micro-batch must have given: its own events, matched with the
book at the version that was written down for it.

Which events are a batch's own takes two of Spark's logs. The file source numbers the lists of files that it has seen; the
offsets say up to which list each batch reads. These numbers are not the same: a query that is killed after the list is
written and before the batch is planned finds the list again, and plans one batch of two lists. A batch counts as done when
it stands in the log of commits.

python -m benchmarks.chaos [rounds]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.events import decode
from headgate.store import Store

EVENTS = 25
"""In a file, which is a micro-batch."""
BACKLOG = 4
"""Files that may wait: the query starts slowly, and what it has not read when the rounds are over takes long."""
PATIENCE_S = 300.0
Match = tuple[str, str, str]


@dataclass(frozen=True)
class Report:
    rounds: int
    kills: int
    drivers: int
    workers: int
    batches: int
    replayed: int
    """Batches that were begun more than once."""
    versions: int
    unread: int
    """Events that no finished batch has read."""
    expected: int
    lost: int
    doubled: int
    foreign: int

    @property
    def sound(self) -> bool:
        return not (self.unread or self.lost or self.doubled or self.foreign) and self.expected > 0


# ------------------------------------------------------------------ the query that is killed


def conf(folder: Path) -> dict[str, str]:
    return {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        # The account needs the logs whole.
        "spark.sql.streaming.minBatchesToRetain": "100000",
    }


def victim(folder: Path, last: bool) -> None:
    """Run the query: until all there is has been read, or until killed."""
    from pyspark.sql import DataFrame

    from headgate.spark import spark_session, start
    from headgate.spark.sinks import Files

    # Four attempts a task: a killed Python worker must not end the query.
    spark = spark_session("local[2,4]", "headgate chaos", conf(folder), ui=False)
    spark.sparkContext.setLogLevel("ERROR")
    df = spark.readStream.schema("id string, x bigint, y string").option("maxFilesPerTrigger", 1)
    files = Files(str(folder / "out"))

    class Noted:
        name = "files, with a note of each beginning"

        def write(self, df: DataFrame, query: str, batch: int) -> None:
            with (folder / "begun").open("a") as f:
                f.write(f"{batch}\n")
            files.write(df, query, batch)

    running = start(
        df.json(str(folder / "in")),
        Store(folder / "book.db"),
        Noted(),
        folder / "checkpoint",
        on="s",
        event_id="id",
        trigger="available" if last else None,
    )
    running.wait()


# ------------------------------------------------------------------ the rounds


class World:
    """The folder of a run: events, book, and what chance does to them."""

    module = "benchmarks.chaos"
    """Where the query that is killed is started from."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.rng = random.Random(seed)
        self.store = Store(folder / "book.db")
        self.store.stream("s", {"x": "bigint", "y": "string"})
        for n in range(10):
            self.store.add(f"s{n}", f"x >= {n * 10} AND x < {n * 10 + 15}")
        self.files = self.names = 0
        (folder / "in").mkdir()

    def events(self) -> None:
        rows = [self.row(i) for i in range(EVENTS)]
        fresh = self.folder / "fresh.json"
        fresh.write_text("\n".join(map(json.dumps, rows)), "utf-8")
        fresh.replace(self.folder / "in" / f"{self.files:06}.json")
        self.files += 1

    def row(self, i: int) -> dict[str, Any]:
        return {"id": f"e{self.files}-{i}", "x": self.rng.randrange(100), "y": self.rng.choice("abc")}

    def change(self) -> None:
        names = list(self.store.book())
        match self.rng.randrange(3):
            case 0:
                self.names += 1
                self.store.add(f"n{self.names}", f"y = '{self.rng.choice('abc')}' AND x < {self.rng.randrange(100)}")
            case 1 if len(names) > 5:
                self.store.remove(self.rng.choice(names))
            case _:
                self.store.replace(self.rng.choice(names), f"x > {self.rng.randrange(100)}")

    def stir(self) -> None:
        """More events and another change, unless enough is waiting."""
        if self.files - self.begun() < BACKLOG:
            self.events()
            self.change()

    def begun(self) -> int:
        """How many batches were begun so far, replays included."""
        notes = self.folder / "begun"
        return len(notes.read_text().splitlines()) if notes.exists() else 0


def round_of(world: World, driver: bool) -> None:
    """One life of the query, ended by SIGKILL; of a worker first, and of all of it in the end."""
    with (world.folder / "log").open("a") as log:
        running = spawn(world, log, last=False)
        try:
            before = world.begun()
            wanted = before + world.rng.randint(1, 3)
            deadline = time.monotonic() + PATIENCE_S
            while world.begun() < wanted:
                _alive(running, world, deadline)
                world.stir()
                time.sleep(0.1)
            if not driver:
                # The first batch may not have come to its first task yet.
                while not _kill_worker(running.pid):
                    _alive(running, world, deadline)
                    time.sleep(0.05)
                after = world.begun()
                while world.begun() <= after:
                    _alive(running, world, deadline)
                    world.stir()
                    time.sleep(0.1)
            # Some way into the next batch, wherever that is.
            time.sleep(world.rng.uniform(0.0, 1.0))
        finally:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()


def chaos(folder: Path, rounds: int, seed: int = 1) -> Report:
    """All rounds, then one life to the end, then the account."""
    world = World(folder, seed)
    kinds = [n % 2 == 0 for n in range(rounds)]
    for driver in kinds:
        round_of(world, driver)
    with (folder / "log").open("a") as log:
        done = spawn(world, log, last=True).wait(PATIENCE_S)
    assert done == 0, (folder / "log").read_text()[-3000:]
    return account(world, kinds)


def account(world: World, kinds: Sequence[bool]) -> Report:
    checkpoint = world.folder / "checkpoint"
    claim = json.loads((checkpoint / "headgate" / "query.json").read_text())
    wanted: Counter[Match] = Counter()
    versions = set()
    batches = finished(checkpoint)
    for batch, files in batches.items():
        version = world.store.logs.recorded(claim["query"], batch)
        assert version is not None, f"batch {batch} has no version"
        versions.add(version)
        wanted.update(_matches(world.store, version, files))
    read = {file for files in batches.values() for file in files}
    begun = Counter((world.folder / "begun").read_text().split())
    got: Counter[Match] = Counter()
    for file in sorted((world.folder / "out").glob("query=*/batch=*/*.parquet")):
        rows = pq.ParquetFile(file).read().select(["id", "event", "subscription"]).to_pylist()
        got.update((r["id"], r["event"], r["subscription"]) for r in rows)
    workers = len(kinds) - sum(kinds)
    return Report(
        rounds=len(kinds),
        kills=len(kinds) + workers,
        drivers=len(kinds),
        workers=workers,
        batches=len(batches),
        replayed=sum(n > 1 for n in begun.values()),
        versions=len(versions),
        unread=EVENTS * len(set((world.folder / "in").iterdir()) - read),
        expected=len(wanted),
        lost=len(wanted - got),
        doubled=sum(n - 1 for n in got.values()),
        foreign=len(set(got) - set(wanted)),
    )


def _matches(store: Store, version: int, files: Sequence[Path]) -> list[Match]:
    plan = store.book(version).compile()
    events = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    decoded = decode([{"x": e["x"], "y": e["y"]} for e in events], plan.schemas["s"])
    columns = replace(decoded.columns, identity=pa.array([e["id"] for e in events]))
    return [(r["id"], events[r["event"]]["id"], r["subscription"]) for r in plan.match({"s": columns}).to_pylist()]


def finished(checkpoint: Path) -> dict[int, list[Path]]:
    """The files of each batch that was committed."""
    seen = _seen(checkpoint / "sources" / "0")
    done = {int(log.name) for log in _logs(checkpoint / "commits")}
    found: dict[int, list[Path]] = {}
    since = -1
    for log in sorted(_logs(checkpoint / "offsets"), key=lambda log: int(log.name)):
        # The version, then what holds for the batch, then a line for each source; `-` where it has nothing yet.
        offset = log.read_text().splitlines()[2]
        until = since if offset == "-" else int(json.loads(offset)["logOffset"])
        if int(log.name) in done:
            found[int(log.name)] = [file for number in range(since + 1, until + 1) for file in seen.get(number, ())]
        since = until
    return found


def _seen(source: Path) -> dict[int, dict[Path, None]]:
    """The lists of files that a file source has seen, by their numbers; every tenth log repeats those before."""
    found: dict[int, dict[Path, None]] = {}
    for log in _logs(source):
        for line in log.read_text().splitlines()[1:]:
            entry = json.loads(line)
            found.setdefault(entry["batchId"], {})[Path(entry["path"].removeprefix("file://"))] = None
    return found


def _logs(folder: Path) -> list[Path]:
    """Spark's logs in a folder, without checksums and what a kill left half written."""
    return [log for log in folder.iterdir() if not log.name.startswith(".") and log.suffix in ("", ".compact")]


def spawn(world: World, log: Any, last: bool) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", world.module, "--victim", str(world.folder), *(["--last"] if last else [])]
    return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)  # noqa: S603 - this interpreter, this module


def _alive(running: subprocess.Popen[bytes], world: World, deadline: float) -> None:
    if running.poll() is not None:
        raise AssertionError(f"the query ended by itself:\n{(world.folder / 'log').read_text()[-3000:]}")
    if time.monotonic() > deadline:
        raise AssertionError("the query makes no progress")


def _kill_worker(driver: int) -> bool:
    """One of the Python workers that Spark's daemon has forked, if any; they have a process group of their own."""
    parents: dict[int, int] = {}
    daemons = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if b"pyspark.daemon" in (entry / "cmdline").read_bytes():
                daemons.add(int(entry.name))
        except OSError:
            continue

    def ours(process: int) -> bool:
        return process == driver or (process in parents and ours(parents[process]))

    for process in daemons:
        if parents[process] in daemons and ours(process):
            os.kill(process, signal.SIGKILL)
            return True
    return False


def run(scale: str, out: Path) -> Iterator[dict[str, Any]]:
    """`headgate bench chaos`: every round kills a driver, every second one a worker too."""
    rounds = 2 if scale == "small" else 14
    folder = (out / "chaos").absolute()  # as Spark names the files that it has read
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    report = chaos(folder, rounds)
    yield {**asdict(report)}
    wrong = report.unread + report.lost + report.doubled + report.foreign
    yield {
        "must": f"events unread and matches lost, doubled or foreign after {report.kills} kills",
        "value": wrong,
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
        report = chaos(Path(folder), given.rounds)
    print(json.dumps({**asdict(report), "sound": report.sound}))
    sys.exit(not report.sound)


if __name__ == "__main__":
    main()

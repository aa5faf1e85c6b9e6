"""The broker: how fast events are taken in, how soon they are delivered, and that nothing is lost or doubled.

`rate`      events published in batches, with matching on Spark at the same time
`delay`     from publishing to a client of server-sent events, at 500 events a second
`sequences` the same for a sequence, at 100 events a second, beside the watermark's own delay
`complete`  many subscriptions, some of which come and go, and many events: every notification against `plan.match`
`killed`    the same on PostgreSQL, with the broker, the Spark driver and the database killed and started again

What must arrive, while subscriptions come and go, is by the order of things that the broker has answered: a subscription
sees each event that is published after it was made and matched before it is cancelled. It may see those that were on
their way then, and no others.

    python -m benchmarks.broker [--scale paper] [--only delay ...]
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.request import urlopen

import headgate as hg
from benchmarks.measure import Row, must
from benchmarks.services import PATIENCE_S, Broker, Postgres
from headgate.broker.client import BrokerError, Client
from headgate.broker.settings import secret_of
from headgate.errors import EnvironmentProblem
from headgate.store.database import Database
from headgate.store.keys import Keys

T = TypeVar("T")
STOCK = {"name": "string", "price": "double", "number": "bigint", "sent": "double"}
NAMES = 2000
BATCH = 500
PARTS = ("rate", "delay", "sequences", "complete", "killed")
PAIR = "SELECT b.number AS number FROM trade AS a NEXT {$2.name = $1.name} trade AS b"


@dataclass(frozen=True)
class Size:
    subscriptions: int
    events: int
    churn: int
    """Subscriptions that come and go."""
    kills: int
    """Of each of the three."""
    seconds: int
    """Of the measurement of the delay."""


SIZES = {"small": Size(500, 4000, 20, 1, 8), "paper": Size(10_000, 100_000, 300, 5, 60)}


def key_of(broker: Broker) -> str:
    """An API key: the feed of one key has all its subscriptions."""
    database = Database(broker.store)
    made, _ = Keys(database, secret_of(broker.folder)).create("benchmark")
    database.close_all()
    return made


def text_of(rng: random.Random, number: int) -> str:
    return f"name = 'n{number % NAMES}' AND price < {rng.randrange(20, 100)}"


def event_of(rng: random.Random, number: int) -> dict[str, Any]:
    return {"name": f"n{rng.randrange(NAMES)}", "price": rng.random() * 100, "number": number, "sent": time.time()}


@dataclass
class Listener:
    """Reads the feed of a key to the end, through every break, and counts what came."""

    url: str
    key: str
    seen: Counter[tuple[str, int]] = field(default_factory=Counter)
    """By subscription and the event's number."""
    delays: list[tuple[float, float]] = field(default_factory=list)
    """When it came, and after how long."""
    repeated: int = 0
    _ids: set[str] = field(default_factory=set)
    _stop: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        seq = 0
        while not self._stop.is_set():
            try:
                with Client(self.url, self.key) as client:
                    for note in client.feed(since=seq):
                        seq = int(note["seq"])
                        now = time.time()
                        if note["id"] in self._ids:
                            self.repeated += 1
                            continue
                        self._ids.add(note["id"])
                        self.seen[note["subscription"], int(note["data"]["number"])] += 1
                        self.delays.append((now, now - float(note["data"]["sent"])))
                        if self._stop.is_set():
                            return
            except (EnvironmentProblem, BrokerError):
                time.sleep(0.5)


def again(call: Callable[[], T], patience: float = PATIENCE_S) -> T:
    """The answer of a broker that may be away just now."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return call()
        except (EnvironmentProblem, BrokerError) as problem:
            if isinstance(problem, BrokerError) and problem.status not in (429, 503):
                raise
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


@dataclass
class Member:
    """A subscription, and ids of events: it must see those after `after` and up to `until`, and may see those after
    `since` and up to `last`."""

    text: str
    ticket: str = ""
    since: int = 0
    after: int = 0
    until: int | None = None
    last: int | None = None


class World:
    """What was subscribed and published, and what that must have given."""

    def __init__(self, broker: Broker, size: Size, seed: int = 5) -> None:
        self.broker = broker
        self.size = size
        self.rng = random.Random(seed)
        self.key = key_of(broker)
        self.members: dict[str, Member] = {}
        self.events: list[dict[str, Any]] = []
        self.ids: dict[int, int] = {}
        """The number of the event with an id in the log."""
        self.published = 0
        self.matched = Matched(broker.store)
        self._made = 0

    def client(self) -> Client:
        return Client(self.broker.url, self.key)

    def declare(self) -> None:
        with self.client() as client:
            again(lambda: client.declare("stock", STOCK))

    def fill(self, count: int) -> None:
        with self.client() as client:
            for start in range(0, count, 1000):
                texts = [text_of(self.rng, start + n) for n in range(min(1000, count - start))]
                wanted = [{"text": t, "stream": "stock"} for t in texts]
                for text, made in zip(texts, again(lambda w=wanted: client.subscribe_all(w)), strict=True):  # type: ignore[misc]  # a default argument binds the loop variable
                    self.members[made.id] = Member(text, made.ticket)

    def publish(self, client: Client, count: int) -> None:
        fresh = [event_of(self.rng, len(self.events) + n) for n in range(count)]
        key = f"batch {len(self.events)}"
        self.events += fresh
        first, last = again(lambda: client.publish("stock", fresh, key))
        for offset, event in enumerate(fresh):
            self.ids[first + offset] = int(event["number"])
        self.published = last

    def change(self, client: Client) -> None:
        """One more subscription, and one less."""
        self._made += 1
        text = text_of(self.rng, self.rng.randrange(NAMES))
        since = self.matched.last()
        made = again(lambda: client.subscribe(text, stream="stock"))
        self.members[made.id] = Member(text, made.ticket, since, self.published)
        id, member = self.rng.choice([(i, m) for i, m in self.members.items() if m.last is None and m.ticket])
        member.until = self.matched.last()
        try:
            again(lambda: client.unsubscribe(id, member.ticket))
        except BrokerError as problem:
            if problem.status != 403:  # it was done, and the answer was lost
                raise
        member.last = self.published

    def verdict(self, listener: Listener) -> dict[str, int]:
        """Every expected notification, against `plan.match`."""
        book = hg.Subscriptions().stream("stock", STOCK)
        for id, member in self.members.items():
            book.add(id, member.text, on="stock")
        pairs = book.compile().match({"stock": self.events}, output="pairs")
        id_of = {number: id for id, number in self.ids.items()}
        expected: set[tuple[str, int]] = set()
        possible: set[tuple[str, int]] = set()
        for name, number in zip(
            pairs.column("subscription").to_pylist(), pairs.column("event").to_pylist(), strict=True
        ):
            member, at = self.members[str(name)], id_of[int(number)]
            if at > member.since and (member.last is None or at <= member.last):
                possible.add((str(name), int(number)))
            if at > member.after and (member.until is None or at <= member.until):
                expected.add((str(name), int(number)))
        # A subscription whose making was answered by a broken connection may live without our knowing its name.
        known = {pair: n for pair, n in listener.seen.items() if pair[0] in self.members}
        return {
            "expected": len(expected),
            "arrived": len(known),
            "lost": len(expected - known.keys()),
            "doubled": sum(n > 1 for n in known.values()),
            "foreign": len(known.keys() - possible),
        }

    def settle(self, listener: Listener, quiet: float = 10.0) -> None:
        """Until all is matched and nothing more comes."""
        deadline = time.monotonic() + PATIENCE_S
        while self.matched.last() < self.published and time.monotonic() < deadline:
            time.sleep(0.2)
        count, since = -1, time.monotonic()
        while time.monotonic() < min(deadline, since + quiet):
            if len(listener.seen) != count:
                count, since = len(listener.seen), time.monotonic()
            time.sleep(0.2)


class Matched:
    """How far matching has come, by the store; a database that is away has not come further."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._last = 0

    def last(self) -> int:
        try:
            database = Database(self._url)
            self._last = int(database.value("SELECT coalesce(max(event), 0) FROM progress"))
            database.close_all()
        except EnvironmentProblem:
            pass
        return self._last


# -- the parts


def rate(world: World, scale: str) -> Iterator[Row]:
    with world.client() as client:
        world.publish(client, BATCH)
        count = world.size.events
        bodies = [event_of(world.rng, n) for n in range(BATCH)]
        began = time.perf_counter()
        for _ in range(count // BATCH):
            client.publish("stock", bodies)
        spent = time.perf_counter() - began
    yield {"part": "rate", "events": count, "batch": BATCH, "seconds": round(spent, 2)}
    yield must("events published a second, in batches", count / spent, scale, least=5000)
    deadline = time.monotonic() + PATIENCE_S
    last = world.published + count
    while world.matched.last() < last and time.monotonic() < deadline:
        time.sleep(0.2)
    whole = time.perf_counter() - began
    yield {
        "part": "rate",
        "matched_events_per_second": round(count / whole),
        "seconds_until_all_were_matched": round(whole, 1),
    }
    world.events, world.ids, world.published = [], {}, last


def delay(world: World, scale: str) -> Iterator[Row]:
    """500 events a second, 25 at a time."""
    listener = Listener(world.broker.url, world.key)
    listener.start()
    with world.client() as client:
        # A query that has just started loads its plan with the first events; that is no figure of a running broker.
        for _ in range(6):
            world.publish(client, 100)
            while world.matched.last() < world.published:
                time.sleep(0.2)
        start = time.monotonic()
        for n in range(world.size.seconds * 20):
            pause = start + n / 20 - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            world.publish(client, 25)
        ended = time.time()
    world.settle(listener, 3.0)
    listener.stop()
    began = ended - world.size.seconds
    found = sorted(d for at, d in listener.delays if began <= at - d <= ended)
    yield {"part": "delay", **quantiles(found), "load": float(Path("/proc/loadavg").read_text("ascii").split()[0])}
    what = "seconds from publishing to server-sent events, 99 of 100, at 500 events/s"
    yield must(what, found[int(0.99 * len(found))] if found else math.inf, scale, most=2.0)


def quantiles(found: Sequence[float]) -> Row:
    row: Row = {"notifications": len(found)}
    if found:
        row |= {
            f"p{share}_s": round(found[min(len(found) - 1, share * len(found) // 100)], 3) for share in (50, 90, 99)
        }
    return row


def sequences(world: World) -> Iterator[Row]:
    """A pair of events of one name, from publishing the second to the notification; the watermark is a second."""
    listener = Listener(world.broker.url, world.key)
    listener.start()
    with world.client() as client:
        again(lambda: client.declare("trade", {**STOCK, "at": "timestamp"}, "at"))
        again(lambda: client.subscribe(PAIR, stream="trade"))
        start = time.monotonic()
        for n in range(world.size.seconds * 10):
            pause = start + n / 10 - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            at = datetime.now(UTC).isoformat()
            client.publish("trade", [event_of(world.rng, 10 * n + i) | {"name": f"n{i}", "at": at} for i in range(10)])
        ended = time.time()
    world.settle(listener, 10.0)
    listener.stop()
    # The query of the sequences starts with the first of them, and loads what it needs.
    late = sorted(d for at, d in listener.delays if ended - world.size.seconds / 2 <= at - d)
    with urlopen(f"{world.broker.url}/metrics", timeout=30) as answer:  # noqa: S310 - our own address
        said = answer.read().decode()
    watermark = re.search(r"^headgate_broker_sequences_watermark_delay_seconds (\S+)", said, re.MULTILINE)
    behind = round(float(watermark[1]), 3) if watermark else None
    yield {"part": "sequences", "events_a_second": 100, **quantiles(late), "watermark_delay_s": behind}


def complete(
    world: World, scale: str, kill: Callable[[int], str | None] = lambda _: None, name: str = "complete"
) -> Iterator[Row]:
    """Events in batches, subscriptions that come and go between them, and now and then something is killed."""
    listener = Listener(world.broker.url, world.key)
    listener.start()
    batches = world.size.events // BATCH
    turns = max(1, world.size.churn // max(1, batches))
    killed: Counter[str] = Counter()
    began = time.perf_counter()
    with world.client() as client:
        for number in range(batches):
            world.publish(client, BATCH)
            for _ in range(turns):
                world.change(client)
            if (what := kill(number)) is not None:
                killed[what] += 1
    spent = time.perf_counter() - began
    world.settle(listener)
    listener.stop()
    found = world.verdict(listener)
    yield {"part": name, "subscriptions": len(world.members), "events": len(world.events), "seconds": round(spent, 1),
           "repeated_on_the_wire": listener.repeated, "killed": dict(killed), **found}  # fmt: skip
    yield must(f"{name}: notifications lost", found["lost"], scale, most=1)
    yield must(f"{name}: notifications doubled, or of nobody", found["doubled"] + found["foreign"], scale, most=1)
    yield must(f"{name}: notifications expected", found["expected"], scale, least=1000)


def killer(broker: Broker, postgres: Postgres, size: Size) -> Callable[[int], str | None]:
    """After every few batches one of the three dies, in turn, and is started again when it was away a moment."""
    every = max(1, size.events // BATCH // (3 * size.kills + 1))
    victims = ["broker", "driver", "database"] if broker.engine == "spark" else ["broker", "database"]
    turn = iter(victims * size.kills)

    def kill(number: int) -> str | None:
        if number % every != every - 1 or (what := next(turn, None)) is None:
            return None
        if what == "broker":
            broker.kill()
            broker.start()
        elif what == "driver":
            deadline = time.monotonic() + PATIENCE_S
            while not broker.kill_query() and time.monotonic() < deadline:
                time.sleep(0.5)
        else:
            postgres.kill()
            time.sleep(1.0)
            postgres.start()
        broker.wait()
        return what

    return kill


def run(
    scale: str, out: Path, only: Sequence[str] = PARTS, engine: str = "spark", size: Size | None = None
) -> Iterator[Row]:
    size = size or SIZES[scale]
    with tempfile.TemporaryDirectory(prefix="headgate-broker-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        for part in [p for p in PARTS if p in only]:
            postgres = Postgres(folder / f"{part}-postgres") if part == "killed" else None
            if postgres is not None:
                postgres.create()
            store = postgres.url if postgres is not None else str(folder / f"{part}.db")
            broker = Broker(folder / part, store, engine, ("--cap", "10000000"))
            broker.start()
            try:
                broker.wait()
                world = World(broker, size)
                world.declare()
                world.fill(1000 if part in ("rate", "delay", "sequences") else size.subscriptions)
                if part == "rate":
                    yield from rate(world, scale)
                elif part == "delay":
                    yield from delay(world, scale)
                elif part == "sequences":
                    yield from sequences(world)
                elif postgres is None:
                    yield from complete(world, scale)
                else:
                    yield from complete(world, scale, killer(broker, postgres, size), "killed")
            finally:
                if broker.child is not None and broker.child.poll() is None:
                    broker.child.send_signal(signal.SIGTERM)
                    broker.child.wait(60)
                if postgres is not None:
                    postgres.end()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", choices=tuple(SIZES), default="small")
    parser.add_argument("--only", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--engine", default="spark", choices=("spark", "local"))
    given = parser.parse_args()
    for row in run(given.scale, Path("bench-out"), given.only, given.engine):
        print(json.dumps(row), flush=True)

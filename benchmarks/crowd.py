"""A crowd: each honest subscriber gets exactly what a broker of his own would have given him.

Honest subscribers come first; then honest events are published in batches, while hostile actors subscribe, publish, ask,
declare, forge and hold connections open, and the broker is killed and started again. In the end every honest subscriber's
notifications are compared with the matches of a fresh plan that has his subscription alone, over the log of events.

    python -m benchmarks.crowd [--scale paper] [--engine spark]
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import orjson

import headgate as hg
from benchmarks.broker import again, key_of
from benchmarks.measure import Row, must
from benchmarks.services import PATIENCE_S, Broker, Postgres
from benchmarks.workloads import crowd
from headgate.broker.client import Client, Subscribed
from headgate.store import Store
from headgate.store.shared import Shared

_BATCH = 200
_ACTS = 5
"""How often each hostile actor acts."""


@dataclass(frozen=True)
class Size:
    honest: int
    hostile: int
    events: int
    kills: int
    threads: int = 2
    """How many hostile actors act at the same time."""


SIZES = {"small": Size(100, 40, 4000, 3), "paper": Size(1000, 200, 100_000, 30)}


@dataclass
class Honest:
    wish: crowd.Wish
    made: Subscribed


@dataclass
class Hostile:
    """Actors that take turns in a few threads; what they are answered is counted by status."""

    url: str
    size: Size
    seed: int = 3
    victims: list[str] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    """Answers that tell of a defect: a status of 500 or more but 503, with what was asked."""
    acts: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _held: list[socket.socket] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        for i in range(self.size.threads):
            self._threads.append(threading.Thread(target=self._run, args=(i,), daemon=True))
            self._threads[i].start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        for held in self._held:
            held.close()

    def _run(self, number: int) -> None:
        rng = random.Random(self.seed + number)
        actions = [self._subscribe, self._publish, self._publish, self._declare, self._forge, self._hold, self._ask]
        own: dict[int, list[dict[str, str]]] = defaultdict(list)
        while not self._stop.is_set():
            actor = rng.randrange(self.size.hostile)
            time.sleep(0.01)
            with (
                suppress(httpx.HTTPError, OSError),
                httpx.Client(base_url=self.url, timeout=20, trust_env=False) as http,
            ):
                rng.choice(actions)(rng, http, own[actor])
                self.acts += 1

    def wait(self, acts: int) -> None:
        """Until they have acted so often: the honest ones leave them the time."""
        deadline = time.monotonic() + PATIENCE_S
        while self.acts < acts and time.monotonic() < deadline:
            time.sleep(0.02)

    def _said(self, what: str, answer: httpx.Response) -> httpx.Response:
        self.answers[f"{what} {answer.status_code}"] += 1
        if answer.status_code >= 500 and answer.status_code != 503:
            self.failures[f"{what} {answer.status_code} {answer.text[:200]}"] += 1
        return answer

    def _subscribe(self, rng: random.Random, http: httpx.Client, own: list[dict[str, str]]) -> None:
        if own and rng.random() < 0.5:
            mine = own.pop()
            ticket = {"Authorization": f"Bearer {mine['ticket']}"}
            self._said("cancel", http.delete(f"/v1/subscriptions/{mine['id']}", headers=ticket))
            return
        stream, text = rng.choice(crowd.HOSTILE_TEXTS)
        missing = rng.choice(["null", "strict", "default", "total"])
        answer = self._said(
            "subscribe", http.post("/v1/subscriptions", json={"text": text, "stream": stream, "missing": missing})
        )
        if answer.status_code == 201:
            own.append(answer.json())

    def _publish(self, rng: random.Random, http: httpx.Client, own: list[dict[str, str]]) -> None:
        stream, body, kind = rng.choice(crowd.HOSTILE_BODIES)
        headers = {"Content-Type": kind}
        self._said("publish", http.post(f"/v1/streams/{stream}/events", content=body, headers=headers))

    def _declare(self, rng: random.Random, http: httpx.Client, own: list[dict[str, str]]) -> None:
        name = rng.choice([*crowd.STREAMS, f"own{rng.randrange(50)}"])
        attributes = {rng.choice(["name", "state", "at", "x"]): rng.choice(["bigint", "string", "boolean"])}
        self._said("declare", http.post("/v1/streams", json={"name": name, "attributes": attributes}))

    def _forge(self, rng: random.Random, http: httpx.Client, own: list[dict[str, str]]) -> None:
        victim = rng.choice(self.victims)
        ticket = own[-1]["ticket"] if own else "forged"
        headers = {"Authorization": f"Bearer {ticket}"}
        way = rng.randrange(3)
        if way == 0:
            answer = http.delete(f"/v1/subscriptions/{victim}", headers=headers)
        elif way == 1:
            until = {"until": 1 << 40}
            answer = http.post(f"/v1/subscriptions/{victim}/acknowledgements", json=until, headers=headers)
        else:
            answer = http.get(f"/v1/subscriptions/{victim}/notifications", headers=headers)
        if self._said("forge", answer).is_success:
            self.failures[f"a forged ticket opened {victim}"] += 1

    def _hold(self, rng: random.Random, http: httpx.Client, own: list[dict[str, str]]) -> None:
        """Connections that are opened and not read, or never finish their request."""
        at = httpx.URL(self.url)
        held = socket.create_connection((at.host, at.port or 80), timeout=5)
        if own:
            mine = own[-1]
            text = f"GET /v1/subscriptions/{mine['id']}/events?since=0 HTTP/1.1\r\nHost: {at.host}:{at.port}\r\n"
            held.sendall(text.encode() + f"Authorization: Bearer {mine['ticket']}\r\n\r\n".encode())
        else:
            held.sendall(b"POST /v1/streams/stock/events HTTP/1.1\r\nContent-Length: 100\r\n")
        self._held.append(held)
        if len(self._held) > 50:
            self._held.pop(0).close()

    def _ask(self, rng: random.Random, http: httpx.Client, own: list[dict[str, str]]) -> None:
        stream, text = rng.choice(crowd.HOSTILE_TEXTS)
        self._said("check", http.post("/v1/check", json={"text": text, "stream": stream}))


def subscribed(client: Client, size: Size) -> list[Honest]:
    rng = random.Random(1)
    wishes = [crowd.wish(rng) for _ in range(size.honest)]
    return [Honest(w, again(partial(client.subscribe, w.text, stream=w.stream))) for w in wishes]


def published(client: Client, broker: Broker, size: Size, hostile: Hostile) -> None:
    """Publishes the honest events and kills the broker now and then."""
    rng = random.Random(2)
    batches = size.events // _BATCH
    every = max(1, batches // (size.kills + 1))
    kills = 0
    for number in range(batches):
        stream = crowd.STREAMS[number % len(crowd.STREAMS)]
        at = crowd.now()
        events = [crowd.event(rng, stream, number * _BATCH + n, at) for n in range(_BATCH)]
        again(partial(client.publish, stream, events, f"batch {number}"))
        hostile.wait(_ACTS * size.hostile * (number + 1) // batches)
        if number % every == every - 1 and kills < size.kills:
            kills += 1
            broker.kill()
            broker.start()
            broker.wait()


def notifications(client: Client, one: Honest) -> list[dict[str, Any]]:
    """All that he was ever notified of."""
    notes: list[dict[str, Any]] = []
    since = 0
    while page := again(partial(client.pull, one.made.id, one.made.ticket, since, 1000)):
        notes += page
        since = int(page[-1]["seq"])
    return notes


class Alone:
    """What a plan with one subscription gives over the events of the log."""

    def __init__(self, store: Store) -> None:
        logs = store.logs
        problems: list[Any] = []
        while more := logs.errors(problems[-1].seq if problems else 0):
            problems += more
        late = {(p.stream, p.event) for p in problems if p.code in ("late", "ahead")}
        self.late = len(late)
        self.ids: dict[str, list[str]] = defaultdict(list)
        self.events: dict[str, list[Any]] = defaultdict(list)
        for logged in logs.events(0, logs.last()):
            if (logged.stream, str(logged.id)) not in late:
                self.ids[logged.stream].append(str(logged.id))
                self.events[logged.stream].append(orjson.loads(logged.body))

    def matches(self, wish: crowd.Wish) -> Counter[tuple[str, str]]:
        """By the event's id and the output."""
        book = hg.Subscriptions()
        if wish.stream in crowd.DECLARED:
            attributes, at = crowd.DECLARED[wish.stream]
            book.stream(wish.stream, attributes, time=at)
        book.add("mine", wish.text, on=wish.stream)
        table, _ = book.compile().match({wish.stream: self.events[wish.stream]}, errors="collect")
        ids = self.ids[wish.stream]
        return Counter(
            (ids[int(row["event"])], _shown(row["output"])) for row in table.select(["event", "output"]).to_pylist()
        )


def _shown(output: Any) -> str:
    made = orjson.loads(output) if isinstance(output, str) else output
    return "" if made is None else orjson.dumps(made, option=orjson.OPT_SORT_KEYS).decode()


def verdict(client: Client, honest: list[Honest], alone: Alone) -> dict[str, Any]:
    lost: Counter[str] = Counter()
    foreign: Counter[str] = Counter()
    expected = doubled = 0
    example = ""
    for one in honest:
        notes = notifications(client, one)
        doubled += len(notes) - len({n["id"] for n in notes})
        got = Counter((str(n["event"]), _shown(n.get("output"))) for n in notes)
        want = alone.matches(one.wish)
        expected += want.total()
        missing, extra = want - got, got - want
        lost[one.wish.stream] += missing.total()
        foreign[one.wish.stream] += extra.total()
        if not example and (missing or extra):
            example = f"{one.wish.text}: lost {list(missing)[:3]}, foreign {list(extra)[:3]}"
    return {
        "expected": expected,
        "lost": lost.total(),
        "doubled": doubled,
        "foreign": foreign.total(),
        "streams": {"lost": dict(+lost), "foreign": dict(+foreign)},
        "late": alone.late,
        "example": example,
    }


def settle(store: Store, last: int) -> None:
    """Until all is matched, by filters and by sequences, and the watermark has passed the last sequence."""
    shared = Shared(store.database)
    deadline = time.monotonic() + PATIENCE_S
    while any(at is not None and at < last for at in (shared.progress() or 0, shared.sequences())):
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"matching stands at event {shared.progress()}, sequences at {shared.sequences()}, of {last}"
            )
        time.sleep(0.2)
    count, since = -1, time.monotonic()
    while time.monotonic() < min(deadline, since + 10.0):
        now = store.logs.last_notification()
        if now != count:
            count, since = now, time.monotonic()
        time.sleep(0.5)


def run(
    scale: str, out: Path, engine: str = "local", size: Size | None = None, database: str = "sqlite"
) -> Iterator[Row]:
    size = size or SIZES[scale]
    with tempfile.TemporaryDirectory(prefix="headgate-crowd-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        postgres = Postgres(folder / "postgres") if database == "postgresql" else None
        if postgres is not None:
            postgres.create()
        store = postgres.url if postgres is not None else str(folder / "crowd.db")
        broker = Broker(folder / "broker", store, engine, ("--cap", "10000000"))
        broker.start()
        try:
            broker.wait()
            yield from _played(scale, broker, store, size)
        finally:
            if broker.child is not None and broker.child.poll() is None:
                broker.kill()
            if postgres is not None:
                postgres.end()


def _played(scale: str, broker: Broker, store: str, size: Size) -> Iterator[Row]:
    began = time.perf_counter()
    with Client(broker.url, key_of(broker)) as client:
        # A stream can come to be by being named only where none is declared yet.
        if "door" in crowd.STREAMS:
            again(lambda: client.subscribe("state = 'on'", stream="door"))
        for name, (attributes, at) in crowd.DECLARED.items():
            again(partial(client.declare, name, attributes, at))
        honest = subscribed(client, size)
        hostile = Hostile(broker.url, size, victims=[one.made.id for one in honest])
        hostile.start()
        try:
            published(client, broker, size, hostile)
        finally:
            hostile.stop()
        opened = Store(store)
        last = opened.logs.last()
        settle(opened, last)
        found = verdict(client, honest, Alone(opened))
        opened.close()
    yield {"part": "crowd", "engine": broker.engine, "honest": size.honest, "hostile": size.hostile, "events": last,
           "kills": size.kills, "acts": hostile.acts, "seconds": round(time.perf_counter() - began, 1),
           "answers": dict(sorted(hostile.answers.items())), "failures": dict(hostile.failures), **found}  # fmt: skip
    yield must("crowd: notifications expected", found["expected"], scale, least=1000)
    yield must("crowd: notifications lost", found["lost"], scale, most=1)
    yield must("crowd: notifications doubled, or of nobody", found["doubled"] + found["foreign"], scale, most=1)
    yield must("crowd: answers that tell of a defect", hostile.failures.total(), scale, most=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", choices=tuple(SIZES), default="small")
    parser.add_argument("--engine", default="local", choices=("spark", "local"))
    parser.add_argument("--database", default="sqlite", choices=("sqlite", "postgresql"))
    given = parser.parse_args()
    for row in run(given.scale, Path("bench-out"), given.engine, database=given.database):
        print(json.dumps(row), flush=True)

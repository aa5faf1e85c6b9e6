"""The broker as one object: the store, and the threads and tasks that work on it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, ParamSpec, TypeVar

from headgate.broker.clock import WallClock
from headgate.broker.delivery.kafka import Topics
from headgate.broker.delivery.push import Channel, Pusher
from headgate.broker.delivery.webhook import Webhooks, hook_of
from headgate.broker.hub import SUBSCRIPTION, Hub
from headgate.broker.limits import Buckets
from headgate.broker.local import LocalEngine
from headgate.broker.log import Publisher
from headgate.broker.metrics import Numbers
from headgate.broker.peers import Peers
from headgate.broker.settings import Settings, identity_of
from headgate.broker.side_process import SideProcess
from headgate.broker.subscribing import KAFKA, PEER, PUSHED, WEBHOOK, Subscribing
from headgate.broker.supervisor import SparkEngine
from headgate.broker.tail import Tail
from headgate.broker.threads import in_thread
from headgate.broker.throttle import MinuteCounts
from headgate.broker.watch import Watch
from headgate.errors import HeadgateError
from headgate.schema import Schema
from headgate.store import Quarantined, Store
from headgate.store.keys import Keys
from headgate.store.logs import Notice
from headgate.store.outbox import Outbox
from headgate.store.publications import Publications
from headgate.store.shared import Shared
from headgate.store.tickets import Ticket, Tickets

log = logging.getLogger("headgate.broker")
T = TypeVar("T")
P = ParamSpec("P")
LEASE_S = 10.0
STUCK_S = 60.0
_KNOWN = 200_000


class Broker:
    """`start` in the event loop, `stop` in the end; between them `http` calls the parts."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store = Store(settings.store)
        database = self.store.database
        self.tickets = Tickets(database, settings.secret)
        self.keys = Keys(database, settings.secret)
        self.outbox = Outbox(database)
        self.shared = Shared(database)
        self.numbers = Numbers()
        self.buckets = Buckets()
        self.hub = Hub()
        self.publisher = Publisher(database, Publications(database, self.keys), settings.backlog)
        self.watch = Watch(self.numbers)
        self.tail = Tail(database, self._take, self.watch)
        self.id = identity_of(settings.data)
        self.leader = False
        self._matching = False
        self.watermark: float | None = None
        """Up to when sequences are decided, as their query told last."""
        self.started = time.time()
        self._book = ThreadPoolExecutor(1, "headgate-book")
        self._aside = SideProcess(settings.aside_seconds)
        self._subscribing = Subscribing(self.store, self.tickets, settings)
        self.engine = self._engine()
        self._streams: Mapping[str, Schema] = {}
        self.quarantined: list[Quarantined] = []
        """Definitions of the store that are set aside, as of a moment ago."""
        self._known: dict[str, Ticket | None] = {}
        self._counted_error = 0
        """The number of the last event error that is counted."""
        self._counts = MinuteCounts()
        self._clock = WallClock()
        self.turns = 0
        """How often the house was kept."""
        self._housekeeping: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.peers = Peers(self)

    def _engine(self) -> SparkEngine | LocalEngine | None:
        if self.settings.engine == "spark":
            return SparkEngine(self.settings, self._told)
        if self.settings.engine == "local":
            made = LocalEngine(self.settings.store, self._told)
            self.publisher.written = made.wake
            return made
        return None

    # -- life

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.webhooks = Webhooks(self.settings, self.outbox)
        self.topics = Topics(self.settings.kafka, self.outbox, 10.0) if self.settings.kafka else None
        self.pusher = Pusher(self.outbox, self.settings, self.numbers, self.family, self.watch)
        await in_thread(self.publisher.look, now=True)
        await in_thread(self.tail.start)
        self._counted_error = await in_thread(self.store.logs.last_error)
        self.publisher.start()
        await self._lead()
        self._housekeeping = asyncio.create_task(self._keep_house())
        await self.peers.start()

    async def stop(self) -> None:
        """What was taken in is written, what is under way is finished, connections are told."""
        self.hub.close()
        if self._housekeeping is not None:
            self._housekeeping.cancel()
        await self.peers.stop()
        await self.pusher.close()
        await self.webhooks.close()
        if self.topics is not None:
            self.topics.close()
        await in_thread(self.publisher.stop)
        if self.engine is not None and self._matching:
            await in_thread(self.engine.stop)
        await in_thread(self.tail.stop)
        with suppress(HeadgateError):  # a lease that cannot be given back runs out
            for name in ("broker", "matching"):
                await in_thread(self.shared.release, name, self.id)
        self._book.shutdown()
        await in_thread(self._aside.close)
        self.store.database.close_all()

    @property
    def trouble(self) -> dict[str, str]:
        """What does not go on, and why: matching, here or wherever it runs, or one of the loops."""
        found = self.watch.trouble()
        if self.engine is not None and self._matching and not self.engine.ready.is_set():
            found["matching"] = self.engine.trouble or "it has not started yet"
        elif (waited := self.publisher.stuck) > STUCK_S:
            found["matching"] = f"{self.publisher.pending:,} events wait, and none was matched for {waited:.0f} s"
        return found

    @property
    def ready(self) -> bool:
        return not self.trouble

    async def _lead(self) -> None:
        """Of the brokers on a store one delivers and sweeps, and one matches; each by a lease."""
        was, self.leader = self.leader, await in_thread(self.shared.lease, "broker", self.id, LEASE_S)
        if self.engine is not None:
            mine = await in_thread(self.shared.lease, "matching", self.id, LEASE_S)
            if mine and not self._matching:
                self._matching = True
                self.engine.start()
        if self.leader and not was:
            await self.resume_deliveries()

    # -- the book

    async def book(self, call: Callable[[Subscribing], T]) -> T:
        """Do something with the book, in the thread that may."""
        return await asyncio.get_running_loop().run_in_executor(self._book, call, self._subscribing)

    async def stream(self, name: str) -> Schema | None:
        if name not in self._streams:
            self._streams = await self.book(lambda s: s.schemas())
        return self._streams.get(name)

    async def declare(self, name: str, attributes: Mapping[str, str], time: str | None) -> None:
        await self.book(lambda s: s.declare(name, attributes, time))
        self._streams = {}

    async def aside(self, function: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Call a function of a module in the process beside this one."""
        return await in_thread(lambda: self._aside.call(function, *args, **named))

    async def reading(self, call: Callable[[], T]) -> T:
        return await in_thread(call)

    def forget(self, subscription: str) -> None:
        """What is known of a subscription may have changed."""
        self._known.pop(subscription, None)

    def known(self, subscription: str) -> Ticket | None:
        """The row of a subscription, remembered: it is asked for with every notification."""
        # Several threads ask, and what is there may be forgotten at any moment.
        try:
            return self._known[subscription]
        except KeyError:
            pass
        if len(self._known) >= _KNOWN:
            self._known.clear()
        row = self._known[subscription] = self.tickets.find(subscription)
        return row

    def family(self, subscription: str) -> str:
        """Sequences wait for their watermark, so their delay is told apart."""
        row = self._known.get(subscription)
        return "sequence" if row is not None and row.delivery.get("sequence") else "stateless"

    # -- notifications

    def _take(self, notices: Sequence[Notice]) -> None:
        """From the tail's thread: count, watch the caps, hand out, wake deliveries."""
        self.numbers.count("notifications_total", len(notices))
        self.hub.hand(notices, lambda s: getattr(self.known(s), "owner", None))
        self._watch(notices)
        if self._loop is None:
            return
        pushed: dict[str, Ticket] = {}
        for name in {n.subscription for n in notices}:
            row = self.known(name)
            if row is not None and row.ended is None and row.delivery.get("kind") in PUSHED:
                pushed[row.owner if row.delivery["kind"] == PEER and row.owner else name] = row
        if pushed and self.leader:
            self._loop.call_soon_threadsafe(self._wake, list(pushed.values()))

    def _watch(self, notices: Sequence[Notice]) -> None:
        """Pause a subscription that matches too much: it is more likely a mistake than a wish."""
        for name, count in self._counts.add(notices).items():
            row = self.known(name)
            if row is None or row.ended is not None or row.delivery.get("kind") == PEER:
                continue
            cap = int(row.delivery.get("cap") or self.settings.cap)
            if count > cap:
                self._counts.forget(name)
                reason = f"more than {cap:,} notifications in a minute: it is paused; renew it to go on"
                self._book.submit(self._capped, name, reason)

    def _capped(self, name: str, reason: str) -> None:
        try:
            if self._subscribing.cap(name, reason):
                self.numbers.count("capped_total")
                log.warning("subscription %s: %s", name, reason)
            self.forget(name)
        except HeadgateError as problem:
            log.warning("subscription %s could not be paused: %s", name, problem)

    # -- deliveries

    def _wake(self, rows: Sequence[Ticket]) -> None:
        for row in rows:
            channel = self.channel(row)
            if channel is not None:
                self.pusher.wake(channel)

    def channel(self, row: Ticket) -> Channel | None:
        name, kind = row.subscription, row.delivery.get("kind")
        logs = self.store.logs
        read = lambda since, most: logs.notices_of([name], since, most)  # noqa: E731 - it reads better here
        if kind == WEBHOOK:
            hook = hook_of(row, self.tickets.signing_key(name))
            return Channel(name, kind, read, partial(self.webhooks.send, hook))
        if kind == KAFKA and self.topics is not None:
            return Channel(name, kind, read, partial(self.topics.send, name, row.delivery), page=500)
        if kind == PEER and row.owner is not None:
            return self.peers.channel(row.owner)
        return None

    async def resume_deliveries(self) -> None:
        """After a start, or when this broker becomes the one that delivers: take up every cursor."""
        for name in await in_thread(self.outbox.cursors):
            row = await in_thread(self.tickets.find, name)
            if row is not None and row.ended is None:
                self._wake([row])
        for channel in self.peers.channels():
            self.pusher.wake(channel)

    # -- matching and the house

    def _told(self, said: dict[str, Any]) -> None:
        """From a thread of the engine."""
        if said.get("event") == "batch":
            self.numbers.count("matched_events_total", int(said["events"]))
            self.numbers.gauges["book_version"] = float(said["version"])
            self.tail.wake()
        elif said.get("event") == "sequences" and said["watermark"]:
            self.watermark = said["watermark"] / 1e6
            self.tail.wake()
        elif said.get("event") == "ended":
            self.numbers.count("matching_restarts_total")

    async def _keep_house(self) -> None:
        while True:
            try:
                self.numbers.tick()
                await in_thread(self.publisher.look, now=True)
                await in_thread(self._count_errors)
                await self._lead()
                self.quarantined = await self.book(lambda s: s.quarantined())
                if self._clock.believable() and self.leader:
                    for name in await self.book(lambda s: s.expire(time.time())):
                        self.ended(name)
                self.watch.well("house")
            except Exception as problem:  # noqa: BLE001 - the house must be kept
                self.watch.failed("house", problem)
                self.leader = False
            if self.leader and self.turns % 60 == 59 and self._clock.believable():
                try:
                    await in_thread(self._sweep)
                    self.watch.mend("trimming")
                except Exception as problem:  # noqa: BLE001 - what could not be trimmed now is trimmed later
                    self.watch.failed("trimming", problem)
            self.turns += 1
            await asyncio.sleep(1.0)

    def _count_errors(self) -> None:
        while page := self.store.logs.errors(self._counted_error):
            for code, amount in Counter(problem.code for problem in page).items():
                self.numbers.count("event_errors_total", amount, code)
            self._counted_error = page[-1].seq

    def ended(self, subscription: str) -> None:
        """A subscription is gone: nobody may listen to it any more."""
        self.forget(subscription)
        self.pusher.stop(subscription)
        self.hub.end((SUBSCRIPTION, subscription))

    def _sweep(self) -> None:
        """Forget what is old."""
        now = time.time()
        logs = self.store.logs
        done = [n for n in (self.shared.progress(), self.shared.sequences()) if n is not None]
        # An event that a peer waits for is kept for as long as its notification.
        done += [int(notice.event) - 1 for notice in self.peers.waiting() if notice.event.isdecimal()]
        logs.trim(min([logs.older(now - self.settings.events_kept), *done]))
        logs.trim_notifications(now - self.settings.notifications_kept)
        self.tickets.purge(now - self.settings.notifications_kept)
        self.outbox.unsay(now - self.settings.notifications_kept)
        Publications(self.store.database, self.keys).forget(now - self.settings.events_kept)

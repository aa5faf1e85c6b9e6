"""Brokers that know each other: subscriptions propagate with covering, events follow the reverse path.

A link is two brokers that post to each other, every message signed with the key of the network. What a neighbour must
know of our subscriptions is a set (see `routes`); it is sent as changes that are numbered, and as a whole when either
side has lost count, after a restart for instance. What a neighbour tells us goes into our book, with the neighbour as
the owner: so events that match it are found by the same matching, and the delivery to the neighbour is one channel with
a cursor, like a webhook's. An event is known in the network by the broker where it was published and its id there; one
that arrives again is taken once. The links must form a tree; one that closes a circle is refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import time
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import orjson

from headgate.broker.delivery.push import Channel, Outcome
from headgate.broker.delivery.webhook import signature, verify
from headgate.broker.problems import Refused
from headgate.broker.routes import Routes, Told
from headgate.broker.subscribing import PEER
from headgate.broker.threads import in_thread
from headgate.store import Store, schemas
from headgate.store.logs import Notice
from headgate.store.publications import Publication
from headgate.store.tickets import ACTIVE, ENDED, Ticket

if TYPE_CHECKING:
    from headgate.broker.service import Broker

log = logging.getLogger("headgate.broker")
OWNER = "peer:"
_FOREVER = 1e12
_PAGE = 500
_LOOK_S = 0.25
_HELLO_S = 2.0
FRESH_S = 300.0
"""How long a signature is good."""


@dataclass
class Link:
    """One neighbour."""

    name: str
    url: str
    epoch: str = field(default_factory=lambda: uuid.uuid4().hex)
    number: int = 0
    acked: dict[str, Told] | None = None
    """What it is known to know; None if that is not known."""
    unanswered: tuple[dict[str, Any], dict[str, Told]] | None = None
    """A message that may or may not have arrived, and what it meant."""
    seen: float = 0.0
    failure: str = ""


class Peers:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._settings = broker.settings
        self.me = broker.settings.name
        self._links: dict[str, Link] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._routes = Routes(self.me, self._source)
        self._client: httpx.AsyncClient | None = None
        self._seen: OrderedDict[str, float] = OrderedDict()
        """Signatures of messages that were taken while they were fresh."""

    # -- life

    async def start(self) -> None:
        if not self._settings.link_key:
            return
        self._client = httpx.AsyncClient(timeout=10.0, trust_env=False)
        self._store = Store(self._settings.store)
        self._tasks = [asyncio.create_task(self._greet(url)) for url in self._settings.peers]
        self._tasks.append(asyncio.create_task(self._sync()))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()
            self._store.database.close_all()

    def state(self) -> list[dict[str, Any]]:
        return [
            {
                "name": link.name,
                "url": link.url,
                "told": len(link.acked or {}),
                "level": link.acked is not None,
                "seen": link.seen,
                "failure": link.failure,
            }
            for link in self._links.values()
        ]

    def _source(self, subscription: str) -> str:
        """The neighbour that a subscription came from; an empty text for our own."""
        row = self._broker.known(subscription)
        owner = row.owner if row is not None else None
        return owner.removeprefix(OWNER) if owner is not None and owner.startswith(OWNER) else ""

    # -- signing

    def sign(self, path: str, body: bytes, at: int) -> str:
        return signature(self._settings.link_key, b"%s.%s" % (path.encode(), body), at)

    def verify(self, path: str, body: bytes, header: str) -> None:
        """Refused unless a message is from the network."""
        key = self._settings.link_key
        if not key or not verify(key, b"%s.%s" % (path.encode(), body), header, time.time(), FRESH_S):
            raise Refused(403, "link", "this message is not signed with the key of the network")
        now = time.monotonic()
        while self._seen and next(iter(self._seen.values())) < now - 2 * FRESH_S:
            self._seen.popitem(last=False)
        if header in self._seen:
            raise Refused(403, "link", "this message came before")
        self._seen[header] = now

    async def _post(self, link_url: str, path: str, message: Mapping[str, Any]) -> Any:
        assert self._client is not None
        # A message that is sent again is another one; only a copy of it is refused.
        body = orjson.dumps({**message, "nonce": secrets.token_hex(8)})
        headers = {"Content-Type": "application/json", "Headgate-Link": self.sign(path, body, int(time.time()))}
        answer = await self._client.post(f"{link_url.rstrip('/')}{path}", content=body, headers=headers)
        if answer.status_code == 409:
            raise Disagreement(str(answer.json().get("detail")))
        if not answer.is_success:
            raise Unreachable(f"{link_url} answered {answer.status_code}")
        return answer.json()

    # -- greeting

    async def _greet(self, url: str) -> None:
        """Say who we are, until the other side knows; and again now and then, for it may have forgotten."""
        while True:
            try:
                answer = await self._post(url, "/v1/links/hello", {"name": self.me, "url": self._settings.advertise})
                self._linked(str(answer["name"]), url)
            except Exception as problem:  # noqa: BLE001 - whatever the other side answers, it is greeted again
                log.info("peer %s: %s", url, problem)
            await asyncio.sleep(_HELLO_S)

    async def hello(self, message: Mapping[str, Any]) -> dict[str, Any]:
        name, url = str(message.get("name") or ""), str(message.get("url") or "")
        if not name or "/" in name or not url.startswith(("http://", "https://")):
            raise Refused(422, "link", "a greeting has the name and the url of a broker")
        if name == self.me:
            raise Refused(422, "link", f"there are two brokers named {name}", "start one of them with another --name")
        self._linked(name, url)
        return {"name": self.me}

    def _linked(self, name: str, url: str) -> None:
        link = self._links.get(name)
        if link is None:
            log.info("linked with %s at %s", name, url)
            self._links[name] = link = Link(name, url)
            channel = self.channel(OWNER + name)
            if channel is not None and self._broker.leader:
                self._broker.pusher.wake(channel)
        link.url, link.seen = url, time.time()

    # -- telling subscriptions

    async def _sync(self) -> None:
        while True:
            try:
                if self._broker.leader and self._links:
                    await in_thread(self._level)
                    await asyncio.gather(*(self._tell(link) for link in list(self._links.values())))
                self._broker.watch.well("peers")
            except Exception as problem:  # noqa: BLE001 - the neighbours must be told
                self._broker.watch.failed("peers", problem)
            await asyncio.sleep(_LOOK_S)

    def _level(self) -> None:
        for name in list(self._links):
            self._routes.connect(name)
        self._routes.follow(self._store)

    async def _tell(self, link: Link) -> None:
        wanted = self._routes.told(link.name)
        if link.unanswered is None and link.acked == wanted:
            return
        # What may have arrived is sent again as it was: its number stands for its content.
        message, meant = link.unanswered or (self._message(link, wanted), wanted)
        try:
            await self._post(link.url, f"/v1/links/{self.me}/subscriptions", message)
        except Disagreement as problem:
            link.acked, link.unanswered, link.failure = None, None, str(problem)
        except Unreachable as problem:
            link.unanswered, link.failure = None, str(problem)
        except (httpx.HTTPError, ValueError) as problem:
            link.unanswered, link.failure = (message, meant), str(problem) or type(problem).__name__
        else:
            link.number, link.acked, link.unanswered = link.number + 1, meant, None
            link.failure, link.seen = "", time.time()

    def _message(self, link: Link, wanted: dict[str, Told]) -> dict[str, Any]:
        """What brings a neighbour from what it is known to know to what it should."""
        known = link.acked or {}
        fresh = [t for name, t in wanted.items() if known.get(name) != t]
        return {
            "epoch": link.epoch,
            "number": link.number + 1,
            "whole": link.acked is None,
            "set": [{"name": t.name, "stream": t.stream, "text": t.text, "missing": t.missing} for t in fresh],
            "unset": [name for name in known if name not in wanted],
            "streams": {
                s: schemas.pack(found)
                for s in {t.stream for t in fresh}
                if (found := self._routes.schema(s)) is not None
            },
        }

    async def subscriptions(self, peer: str, message: Mapping[str, Any]) -> dict[str, Any]:
        """A neighbour tells what it wants to hear of."""
        epoch, number, whole = str(message["epoch"]), int(message["number"]), bool(message["whole"])
        given = [Told(str(t["name"]), str(t["stream"]), str(t["text"]), str(t["missing"])) for t in message["set"]]
        unset = [str(name) for name in message["unset"]]
        streams = {str(k): dict(v) for k, v in message["streams"].items()}

        def take(_: Any) -> None:
            known = self._broker.shared.link(peer)
            if known is not None and known[0] == epoch and number <= known[1]:
                return  # it arrived before, and the answer was lost; or somebody sends it again
            if not whole and known != (epoch, number - 1):
                raise Refused(409, "link", f"expected a whole, or the number after {known}")
            self._take(peer, given, unset, streams, whole=whole, mark=(epoch, number))

        await self._broker.book(take)
        return {"number": number}

    def _take(
        self,
        peer: str,
        given: Sequence[Told],
        unset: Sequence[str],
        streams: Mapping[str, dict[str, Any]],
        *,
        whole: bool,
        mark: tuple[str, int],
    ) -> None:
        broker, owner = self._broker, OWNER + peer
        store, tickets = broker.store, broker.tickets
        with store.transaction():
            mine = self._heard(owner)
            wanted = {t.name: t for t in given}
            for name in wanted:
                known = tickets.find(name)
                others = known is not None and known.ended is None and known.owner != owner
                if others or name.startswith(f"{self.me}/"):
                    raise Refused(409, "circle", f"{name} is known by another way: the links must form a tree")
            gone = [name for name in mine if (whole and name not in wanted) or name in unset]
            again = [name for name in wanted if name in mine and name not in gone]
            declared = set(store.streams())
            for stream, packed in streams.items():
                if stream not in declared:
                    store.stream(stream, schemas.unpack(stream, packed))
            now = time.time()
            # One that ended may come back; its row is made anew.
            store.remove_all([*gone, *again])
            tickets.delete([*gone, *wanted])
            hashed = tickets.hash(owner, secrets.token_hex(16))
            tickets.put(Ticket(name, hashed, owner, None, {"kind": PEER}, ACTIVE, now, _FOREVER) for name in wanted)
            tickets.put(Ticket(name, hashed, owner, None, {"kind": PEER}, ENDED, now, _FOREVER, now) for name in gone)
            store.add_all({t.name: {"text": t.text, "on": t.stream, "missing": t.missing} for t in wanted.values()})
            broker.outbox.begin([owner], store.logs.last_notification())
            broker.shared.linked(peer, *mark)
        for name in [*gone, *wanted]:
            broker.forget(name)

    def _heard(self, owner: str) -> set[str]:
        names = [""]
        while page := self._broker.tickets.of_owner(owner, names[-1], 1000):
            names += [row.subscription for row in page]
        return set(names[1:])

    def waiting(self) -> list[Notice]:
        """For each neighbour, linked now or not, the first notification that it has not taken yet."""
        logs, cursors = self._broker.store.logs, self._broker.outbox.cursors()
        behind = [cursor for name, cursor in cursors.items() if name.startswith(OWNER)]
        return [notice for cursor in behind for notice in logs.notices_for(cursor.subscription, cursor.seq, 1)]

    # -- forwarding events

    def channels(self) -> list[Channel]:
        return [c for name in self._links if (c := self.channel(OWNER + name)) is not None]

    def channel(self, owner: str) -> Channel | None:
        """The way of notifications that are for a neighbour; None while it is not linked."""
        peer = owner.removeprefix(OWNER)
        if peer not in self._links:
            return None
        logs = self._broker.store.logs
        return Channel(
            owner,
            PEER,
            lambda since, most: logs.notices_for(owner, since, most),
            lambda page: self._forward(peer, page),
            page=_PAGE,
            patient=True,
        )

    async def _forward(self, peer: str, page: Sequence[Notice]) -> Outcome:
        events: dict[str, dict[str, Any]] = {}
        for notice in page:
            if notice.body is None or notice.via == peer:
                continue
            origin = notice.origin or f"{self.me}/{notice.event}"
            if not origin.startswith(f"{peer}/"):
                events[origin] = {"origin": origin, "stream": notice.stream, "body": notice.body}
        if events:
            try:
                message = {"events": list(events.values())}
                await self._post(self._links[peer].url, f"/v1/links/{self.me}/events", message)
            except (httpx.HTTPError, Unreachable, Disagreement, ValueError) as problem:
                return Outcome(0, str(problem) or type(problem).__name__)
            self._broker.numbers.count("forwarded_total", len(events))
        return Outcome(len(page))

    async def events(self, peer: str, message: Mapping[str, Any]) -> dict[str, Any]:
        """Events from a neighbour go into our log, each once."""
        now = time.time()
        taken = []
        for event in message["events"]:
            origin, stream, body = str(event["origin"]), str(event["stream"]), str(event["body"])
            if origin.startswith(f"{self.me}/") or await self._broker.stream(stream) is None:
                continue
            digest = hashlib.sha256(body.encode()).hexdigest()
            one = Publication(stream, [body], now, f"origin {origin}", digest, via=peer, origins=[origin])
            taken.append(self._broker.publisher.publish(one))
        done = await asyncio.gather(*taken)
        fresh = sum(not d.repeated and not d.conflict for d in done)
        self._broker.numbers.count("published_events_total", fresh)
        return {"taken": fresh}


class Unreachable(Exception):
    """A neighbour that does not take a message now."""


class Disagreement(Exception):
    """A neighbour that has lost count, or sees a circle."""

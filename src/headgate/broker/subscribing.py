"""The life of a subscription: subscribe, renew, cancel, expire (the operators paper, section 5.1).

A subscription and its ticket are written together. Its text is checked as a book checks it, against the newest book, so
that a bad one is refused with its caret. All changes of the book in this process go through one thread.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headgate.broker.dry_run import excerpt
from headgate.broker.problems import Refused, forbidden
from headgate.broker.settings import Settings
from headgate.errors import LanguageError, LanguageErrors, UsageError
from headgate.language.ast import Stream, walk
from headgate.language.parser import parse_body
from headgate.plan import Entry
from headgate.plan.segment import Family
from headgate.schema import Kind, Schema
from headgate.store import Quarantined, Store
from headgate.store.outbox import Outbox
from headgate.store.records import Change
from headgate.store.shared import Shared
from headgate.store.tickets import ACTIVE, CAPPED, ENDED, EXPIRED, Ticket, Tickets

STREAM, PULL, WEBHOOK, KAFKA, PEER = "stream", "pull", "webhook", "kafka", "peer"
KINDS = (STREAM, PULL, WEBHOOK, KAFKA)
PUSHED = (WEBHOOK, KAFKA, PEER)
"""Deliveries that the broker makes of itself; who wants the others comes for them."""
_STREAM = re.compile(r"[A-Za-z_][\w.]{0,199}")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,200}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a subscriber asks for."""

    text: str
    stream: str | None = None
    missing: str = "null"
    validity: float | None = None
    name: str | None = None
    delivery: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Given:
    """A subscription that was made, with its ticket: told once."""

    ticket: str
    row: Ticket


class Subscribing:
    """For one thread."""

    def __init__(self, store: Store, tickets: Tickets, settings: Settings) -> None:
        self._store = store
        self._tickets = tickets
        self._settings = settings
        self._outbox = Outbox(store.database)

    def subscribe(self, wanted: Sequence[Wanted], owner: str | None) -> list[Given]:
        """All or none of them."""
        now = time.time()
        made: list[Given] = []
        book: dict[str, dict[str, Any]] = {}
        book_now = self._store.look()
        if len(book_now) + len(wanted) > self._settings.most_subscriptions:
            raise Refused(
                429, "full", f"there are {len(book_now):,} subscriptions", "come back when some are gone", 60.0
            )
        known = set(book_now.streams)
        for one in wanted:
            if one.stream is not None and one.stream not in known:
                # Refused by the book as well, but only where some stream is declared.
                self._must_fit(one.stream, len(known))
                known.add(one.stream)
            id = f"s{uuid.uuid4().hex}"
            ticket = self._tickets.fresh()
            delivery = dict(one.delivery) or {"kind": STREAM}
            until = now + (self._settings.validity if one.validity is None else one.validity)
            row = Ticket(id, self._tickets.hash(id, ticket), owner, one.name, delivery, ACTIVE, now, until)
            made.append(Given(ticket, row))
            book[id] = {"text": one.text, "on": one.stream, "missing": one.missing}
        with self._store.transaction():
            self._store.add_all(book)
            sequences = self._sequences(book)
            made = [_with_state(g) if g.row.subscription in sequences else g for g in made]
            self._tickets.put(given.row for given in made)
            pushed = [g.row.subscription for g in made if g.row.delivery["kind"] in PUSHED]
            if pushed:
                self._outbox.begin(pushed, self._store.logs.last_notification())
            if sequences:
                Shared(self._store.database).begin_sequences(self._store.logs.last())
        return made

    def check(self, text: str, stream: str | None, missing: str) -> LanguageError | LanguageErrors | None:
        """What is wrong with a text, if anything is: what `subscribe` would say."""
        try:
            self._store.look().check(text, on=stream, missing=missing)
        except (LanguageError, LanguageErrors) as problem:
            return problem
        return None

    def _sequences(self, names: Iterable[str]) -> frozenset[str]:
        """Those of some new subscriptions that are sequences; refused if they cannot be kept here."""
        book = self._store.look()
        found = frozenset(name for name in names if book[name].family is Family.SEQUENCE)
        if found:
            self._must_keep_state()
        for name in found:
            self._must_have_clocks(book[name].text)
        return found

    def _must_keep_state(self) -> None:
        if (self._settings.master or "").startswith("sc://"):
            hint = "start the broker without --connect"
            raise UsageError("this broker's matching keeps no state, and this is a sequence", hint)

    def _must_have_clocks(self, text: str) -> None:
        """The sequences of all owners share one time, so it has to be that of clocks."""
        known = self._store.look()
        for name in dict.fromkeys(n.name for n in walk(parse_body(text)) if isinstance(n, Stream)):
            if name not in known.published and known.streams[name].time_kind is not Kind.TIMESTAMP:
                hint = "declare the stream with a TIMESTAMP as its TIME"
                raise UsageError(f"a sequence reads {name}, whose events do not say when they happened", hint)

    def excerpt(self, names: Iterable[str] = (), stream: str | None = None) -> list[Change]:
        """The definitions of the book, and some subscriptions of it, on one stream or on all."""
        book = self._store.look()
        return excerpt(book, [n for n in names if n in book and stream in (None, book[n].stream)])

    def schemas(self) -> dict[str, Schema]:
        return dict(self._store.look().streams)

    def entries(self, names: Sequence[str]) -> dict[str, Entry]:
        """What the book says of subscriptions that live."""
        book = self._store.look()
        return {name: book[name] for name in names if name in book}

    def quarantined(self) -> list[Quarantined]:
        """What of the store is not in the book, and why."""
        return self._store.quarantined()

    def _must_fit(self, stream: str, known: int) -> None:
        if not _STREAM.fullmatch(stream):
            raise Refused(422, "stream", "a stream's name is letters, digits, dots and underscores")
        if known >= self._settings.most_streams:
            raise Refused(422, "stream", f"there are {self._settings.most_streams} streams already")

    def renew(self, row: Ticket, validity: float | None) -> float:
        """The new end; one that was capped matches again."""
        until = time.time() + (self._settings.validity if validity is None else validity)
        with self._store.transaction():
            self._tickets.renew(row.subscription, until)
            if row.state == CAPPED:
                self._tickets.state(row.subscription, ACTIVE)
                self._store.resume(row.subscription)
        return until

    def cancel(self, subscription: str) -> None:
        with self._store.transaction():
            found = self._tickets.find(subscription)
            if found is None or found.ended is not None:
                raise forbidden()
            self._tickets.end([subscription], ENDED, time.time())
            if found.delivery["kind"] in PUSHED:
                self._outbox.drop([subscription])
            self._store.remove_all([subscription])

    def expire(self, now: float) -> list[str]:
        """Take out what is past its validity."""
        names = self._tickets.expired(now)
        if names:
            with self._store.transaction():
                self._tickets.end(names, EXPIRED, now)
                self._outbox.drop(names)
                self._store.remove_all(names)
        return names

    def cap(self, subscription: str, reason: str) -> bool:
        """Pause what matches too much, with an alarm; whether it was not paused already."""
        with self._store.transaction():
            found = self._tickets.find(subscription)
            if found is None or found.ended is not None or found.state == CAPPED:
                return False
            self._tickets.state(subscription, CAPPED)
            self._outbox.alarm(subscription, "cap", reason)
            self._store.pause(subscription)
        return True

    def declare(self, name: str, attributes: Mapping[str, str], at: str | tuple[str, str] | None) -> int:
        self._must_fit(name, len(self._store.streams()))
        return self._store.stream(name, attributes, at)


def _with_state(given: Given) -> Given:
    """A subscription that is a sequence: its delivery says so."""
    return replace(given, row=replace(given.row, delivery={**given.row.delivery, "sequence": True}))


def checked_delivery(given: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """A delivery as it is kept; Refused where it cannot be."""
    kind = given.get("kind", STREAM)
    if kind not in KINDS:
        raise Refused(422, "delivery", f"there is no delivery {kind}", f"choose one of {', '.join(KINDS)}")
    made: dict[str, Any] = {"kind": kind}
    if kind == WEBHOOK:
        if not given.get("url"):
            raise Refused(422, "delivery", "a webhook needs a url")
        made["url"] = given["url"]
    if kind == KAFKA:
        topic = str(given.get("topic") or "")
        if settings.kafka is None:
            raise Refused(422, "delivery", "this broker has no Kafka cluster", "start it with --kafka SERVERS")
        if not _TOPIC.fullmatch(topic) or not topic.startswith(settings.kafka_prefix):
            said = f"a topic's name begins with {settings.kafka_prefix} and has letters, digits, '.', '_' and '-'"
            raise Refused(422, "delivery", said)
        made["topic"] = topic
    if given.get("cap") is not None:
        made["cap"] = min(int(given["cap"]), settings.cap)
    if given.get("interval") is not None:
        made["interval"] = float(given["interval"])
        made["key"] = str(given.get("key") or "")
    return made

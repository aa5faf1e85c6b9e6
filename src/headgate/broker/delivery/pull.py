"""Pull: a subscriber comes for what it has not acknowledged.

Where it asked for at most one notification for a key and an interval, what passes is found from the last acknowledged
notification on, and so does not depend on how it is cut into pages; what was said up to there is in the store.
"""

from __future__ import annotations

from collections.abc import Iterator

from headgate.broker.throttle import Interval, Throttle
from headgate.store import Store
from headgate.store.logs import PAGE_SIZE, Notice
from headgate.store.outbox import Outbox
from headgate.store.tickets import Ticket, Tickets

_PAGE = 1000
_MOST = 20_000
"""Notifications that are looked at for one request."""


def pulled(store: Store, outbox: Outbox, row: Ticket, since: int, most: int) -> tuple[list[Notice], int]:
    """Up to `most` notifications after `since`, and the number after which to ask for more."""
    rule = Interval.of(row.delivery)
    if rule is None:
        page = store.logs.notices_of([row.subscription], since, most)
        return page, page[-1].seq if page else since
    throttle = _throttle(rule, outbox, row)
    kept: list[Notice] = []
    size, last = 0, since
    for looked_at, notice in enumerate(_after(store, row.subscription, min(row.acked, since))):
        passes = throttle.passes(notice)
        if notice.seq <= since:
            continue
        if len(kept) == most or looked_at >= _MOST or (kept and size + notice.size > PAGE_SIZE):
            break
        last = notice.seq
        if passes:
            kept.append(notice)
            size += notice.size
    return kept, last


def acknowledge(store: Store, outbox: Outbox, tickets: Tickets, row: Ticket, until: int) -> None:
    """All notifications up to a number are done with."""
    rule = Interval.of(row.delivery)
    with store.database.writing():
        tickets.acknowledge(row.subscription, until)
        if rule is None:
            return
        throttle = _throttle(rule, outbox, row)
        for notice in _after(store, row.subscription, row.acked):
            if notice.seq > until:
                break
            throttle.passes(notice)
        for key, at in throttle.times.items():
            outbox.say(row.subscription, key, at)


def _throttle(rule: Interval, outbox: Outbox, row: Ticket) -> Throttle:
    return Throttle(rule, lambda key: outbox.said(row.subscription, key))


def _after(store: Store, subscription: str, seq: int) -> Iterator[Notice]:
    while page := store.logs.notices_of([subscription], seq, _PAGE):
        yield from page
        seq = page[-1].seq

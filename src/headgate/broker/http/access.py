"""Who is asking: tickets and API keys."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from headgate.broker.problems import Refused, forbidden
from headgate.broker.service import Broker
from headgate.store.keys import Key
from headgate.store.tickets import Ticket

MOST_TICKETS = 200


def broker_of(connection: HTTPConnection) -> Broker:
    found: Broker = connection.app.state.broker
    return found


async def _here(connection: HTTPConnection) -> Broker:
    # Not `broker_of` itself: what is not async would go through a thread for every request.
    return broker_of(connection)


Here = Annotated[Broker, Depends(_here)]
"""The broker, as an argument of whoever answers a request."""


def bearer(connection: HTTPConnection) -> str:
    scheme, _, value = connection.headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else ""


async def ticket(connection: HTTPConnection, subscription: str, given: str | None = None) -> Ticket:
    """The subscription that the ticket of a request opens; 403 whatever is wrong with it."""
    broker = broker_of(connection)
    said = bearer(connection) if given is None else given
    if len(subscription) > 200 or len(said) > 200 or "\0" in subscription:
        raise forbidden()
    found = await broker.reading(lambda: broker.tickets.proven(subscription, said, time.time()))
    if found is None:
        raise forbidden()
    return found


async def key(connection: HTTPConnection, scope: str | None, *, needed: bool = False) -> Key | None:
    """The API key of a request. None where it has none and needs none; 401 or 403 where it does not serve."""
    broker = broker_of(connection)
    said = connection.headers.get("headgate-key", "")
    if not said:
        if needed or broker.settings.require_keys:
            raise Refused(401, "key", "an API key is needed", "send it as Headgate-Key: ...")
        return None
    found = await broker.reading(lambda: broker.keys.proven(said)) if len(said) < 200 and "\0" not in said else None
    if found is None:
        raise Refused(401, "key", "this API key is not valid", "`headgate key add` makes one")
    if scope is not None and scope not in found.scopes and "admin" not in found.scopes:
        raise Refused(403, "scope", f"this API key may not {scope}")
    return found


async def tickets(connection: HTTPConnection) -> list[Ticket]:
    """The subscriptions opened by a list of tickets, `Headgate-Tickets: id:ticket, id:ticket`.

    Those that open none are left out.
    """
    said = [part.strip() for part in connection.headers.get("headgate-tickets", "").split(",") if part.strip()]
    found = []
    for part in said[:MOST_TICKETS]:
        id, _, value = part.partition(":")
        try:
            found.append(await ticket(connection, id, value))
        except Refused:
            continue
    return found


async def own(connection: HTTPConnection, most: int) -> list[Ticket]:
    """One's own subscriptions: those whose tickets the request brings, and those of its API key."""
    account = await key(connection, "subscribe")
    rows = await tickets(connection)
    if account is not None:
        broker, owner = broker_of(connection), account.id
        rows += await broker.reading(lambda: broker.tickets.of_owner(owner, "", most))
    return rows


def address_of(connection: HTTPConnection) -> str:
    """Who asks without a key."""
    return f"from {connection.client.host if connection.client else ''}"


def charge(connection: HTTPConnection, account: Key | None, events: int) -> None:
    """Hold a publisher to its rate."""
    broker = broker_of(connection)
    rate = account.rate if account is not None else broker.settings.anonymous_rate
    if rate is None:
        return
    wait = broker.buckets.wait(f"key {account.id}" if account else address_of(connection), rate, events)
    if wait > 0:
        raise Refused(429, "rate", f"at most {rate:g} events a second", "publish more slowly", wait=wait)

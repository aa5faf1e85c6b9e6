"""Health, numbers, alarms, and the links between brokers."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path, Request, Response

from headgate.broker.http import access
from headgate.broker.problems import Refused
from headgate.errors import HeadgateError
from headgate.store.database import StoreUnavailable
from headgate.store.records import SUBSCRIPTION

router = APIRouter(tags=["system"])
_MOST_ALARMS = 1000


@router.get("/healthz")
async def health() -> dict[str, str]:
    """This process answers."""
    return {"status": "alive"}


@router.get("/readyz")
async def ready(broker: access.Here) -> Any:
    """The store answers, matching runs and moves, and every loop of the broker goes on."""
    try:
        version = await broker.reading(lambda: broker.store.version)
    except StoreUnavailable as problem:
        raise Refused(503, "unavailable", problem.message, wait=1.0) from None
    if trouble := broker.trouble:
        said = "; ".join(f"{name}: {reason}" for name, reason in trouble.items())
        raise Refused(503, "matching" if "matching" in trouble else "loops", said, wait=1.0, loops=trouble)
    answer = {"status": "ready", "version": version, "engine": broker.settings.engine}
    if aside := broker.quarantined:
        answer["quarantined"] = f"{len(aside)} definitions of the store are set aside, see /v1/quarantine"
    return answer


@router.get("/metrics", response_class=Response)
async def metrics(broker: access.Here) -> Response:
    """The text format of Prometheus."""
    gauges = {
        "pending_events": float(broker.publisher.pending),
        "connections": float(len(broker.hub)),
        "ready": float(broker.ready),
        "leader": float(broker.leader),
        "quarantined_definitions": float(len(broker.quarantined)),
    }
    if broker.watermark is not None:
        # As of now: if time stands still, this must grow.
        gauges["sequences_watermark_delay_seconds"] = time.time() - broker.watermark
    try:
        gauges["subscriptions"] = float(await broker.reading(broker.tickets.count))
        gauges["dead_letters"] = float(await broker.reading(broker.outbox.letter_count))
    except HeadgateError:
        gauges["ready"] = 0.0
    return Response(broker.numbers.text(gauges), media_type="text/plain; version=0.0.4")


@router.get("/v1/stats")
async def stats(request: Request, broker: access.Here) -> dict[str, Any]:
    """The last ten minutes, for plots."""
    await access.key(request, None)
    return {
        "now": time.time(),
        "engine": broker.settings.engine,
        "ready": broker.ready,
        "pending": broker.publisher.pending,
        "connections": len(broker.hub),
        "delays": broker.numbers.summary(),
        "seconds": broker.numbers.history(),
        "peers": broker.peers.state(),
    }


@router.get("/v1/alarms")
async def alarms(request: Request, broker: access.Here) -> dict[str, Any]:
    """What the broker had to tell of one's own subscriptions, the newest of it; an admin's key sees all."""
    account = await access.key(request, "subscribe")
    admin = account is not None and "admin" in account.scopes
    mine = None if admin else [row.subscription for row in await access.tickets(request)]
    owner = account.id if account is not None else None
    shown = await broker.reading(lambda: broker.outbox.alarms(_MOST_ALARMS, mine, owner))
    return {"alarms": [{"subscription": a.subscription, "code": a.code, "reason": a.reason, "at": a.at} for a in shown]}


@router.get("/v1/quarantine")
async def quarantine(request: Request, broker: access.Here) -> dict[str, Any]:
    """The definitions of the store that are set aside, and why: one's own subscriptions; an admin's key sees all."""
    account = await access.key(request, "subscribe")
    mine = {row.subscription for row in await access.tickets(request)}
    found = broker.quarantined
    admin = account is not None and "admin" in account.scopes

    def owned(name: str) -> bool:
        row = broker.tickets.find(name)
        return row is not None and account is not None and row.owner == account.id

    def shown() -> list[dict[str, Any]]:
        return [
            {"kind": q.kind, "name": q.name, "version": q.version, "reason": q.reason}
            for q in found
            if admin or (q.kind == SUBSCRIPTION and (q.name in mine or owned(q.name)))
        ]

    return {"quarantined": await broker.reading(shown)}


async def _signed(request: Request) -> dict[str, Any]:
    """The message of a neighbour, if it is one."""
    broker = access.broker_of(request)
    body = await request.body()
    broker.peers.verify(request.url.path, body, request.headers.get("headgate-link", ""))
    try:
        found = orjson.loads(body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Refused(400, "json", "a message is a JSON object")
    return found


async def _told(request: Request, take: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    message = await _signed(request)
    try:
        return await take(message)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Refused(422, "link", "this is no message of a broker") from None


Peer = Annotated[str, Path(min_length=1, max_length=200)]


@router.post("/v1/links/hello", include_in_schema=False)
async def hello(request: Request) -> dict[str, Any]:
    return await access.broker_of(request).peers.hello(await _signed(request))


@router.post("/v1/links/{peer}/subscriptions", include_in_schema=False)
async def subscriptions(request: Request, peer: Peer) -> dict[str, Any]:
    return await _told(request, partial(access.broker_of(request).peers.subscriptions, peer))


@router.post("/v1/links/{peer}/events", include_in_schema=False)
async def events(request: Request, peer: Peer) -> dict[str, Any]:
    return await _told(request, partial(access.broker_of(request).peers.events, peer))

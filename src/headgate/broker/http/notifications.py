"""Notifications: server-sent events, WebSocket, pull with acknowledgement, and dead letters."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Header, Query, Request, Response, WebSocket
from starlette.responses import StreamingResponse
from starlette.websockets import WebSocketDisconnect

from headgate.broker.delivery import sse, websocket
from headgate.broker.delivery.form import to_json
from headgate.broker.delivery.pull import acknowledge as done_with
from headgate.broker.delivery.pull import pulled
from headgate.broker.http import access
from headgate.broker.http.models import Acknowledgement, LetterOut, Letters, Notifications, Number, Redelivered
from headgate.broker.http.subscriptions import Id
from headgate.broker.hub import OWNER, SUBSCRIPTION, Connection
from headgate.broker.problems import Refused
from headgate.broker.service import Broker
from headgate.broker.subscribing import PUSHED
from headgate.broker.throttle import Throttle
from headgate.store.tickets import Ticket

router = APIRouter(prefix="/v1", tags=["notifications"])
Since = Annotated[int | None, Query(ge=0, lt=1 << 62, description="The number after which to begin; now if left out")]
LastId = Annotated[str | None, Header(max_length=30)]
_SSE: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}
_POLL_S = 0.05


def _start(broker: Broker, since: int | None, last_id: str | None) -> int:
    if last_id is not None and last_id.isdecimal() and int(last_id) < 1 << 62:
        return int(last_id)
    return broker.tail.seq if since is None else since


def _of(broker: Broker, rows: Sequence[Ticket], since: int, throttle: Throttle | None = None) -> Connection:
    """A listener to some subscriptions."""
    logs, names = broker.store.logs, [row.subscription for row in rows]
    topics = [(SUBSCRIPTION, name) for name in names]
    return Connection(since, topics, lambda seq, most: logs.notices_of(names, seq, most), throttle)


async def _streamed(broker: Broker, connection: Connection) -> AsyncIterator[bytes]:
    # Not before: a client that is gone already never gets here, and nobody would take its connection out again.
    broker.hub.join(connection)
    try:
        async for part in sse.lines(connection, broker.numbers, broker.family):
            yield part
    finally:
        broker.hub.leave(connection)


def _response(broker: Broker, connection: Connection) -> Response:
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_streamed(broker, connection), headers=headers, media_type="text/event-stream")


@router.get("/subscriptions/{id}/events", response_class=Response, responses=_SSE)
async def events(
    request: Request, broker: access.Here, id: Id, since: Since = None, last_event_id: LastId = None
) -> Response:
    """Server-sent events: every notification after `since`, or after the `Last-Event-ID` of a connection that broke."""
    row = await access.ticket(request, id)
    begin = _start(broker, since, last_event_id)
    return _response(broker, _of(broker, [row], begin, Throttle.of(row.delivery)))


@router.get("/feed", response_class=Response, responses=_SSE)
async def feed(request: Request, broker: access.Here, since: Since = None, last_event_id: LastId = None) -> Response:
    """Server-sent events of several subscriptions: all those made with the API key, or those of `Headgate-Tickets`."""
    logs, begin = broker.store.logs, _start(broker, since, last_event_id)
    rows = await access.tickets(request)
    if rows:
        return _response(broker, _of(broker, rows, begin))
    account = await access.key(request, "subscribe", needed=True)
    assert account is not None
    owner = account.id
    read = lambda seq, most: logs.notices_for(owner, seq, most)  # noqa: E731 - it reads better here
    return _response(broker, Connection(begin, [(OWNER, owner)], read))


@router.websocket("/subscriptions/{id}/socket")
async def socket(socket: WebSocket, id: str) -> None:
    """One message a notification, after a first message of the client: {"ticket": ..., "since": ...}."""
    broker = access.broker_of(socket)
    await socket.accept()
    try:
        first = orjson.loads(await asyncio.wait_for(socket.receive_text(), broker.settings.idle_seconds))
        given, since = str(first["ticket"]), first.get("since")
        row = await access.ticket(socket, id, given)
        begin = _start(broker, since if isinstance(since, int) and 0 <= since < 1 << 62 else None, None)
    except (TimeoutError, ValueError, KeyError, TypeError, AttributeError, Refused):
        await socket.close(4403, "this ticket does not open this subscription")
        return
    except WebSocketDisconnect:
        return
    connection = _of(broker, [row], begin, Throttle.of(row.delivery))
    broker.hub.join(connection)
    try:
        await websocket.send(socket, connection, broker.numbers, broker.family)
    finally:
        broker.hub.leave(connection)


@router.get("/subscriptions/{id}/notifications", response_model=Notifications)
async def pull(
    request: Request,
    broker: access.Here,
    id: Id,
    since: Since = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    wait: Annotated[float, Query(ge=0, le=30, allow_inf_nan=False, description="Seconds to wait for the first")] = 0.0,
) -> Response:
    """Pull what is not acknowledged; what was pulled and not acknowledged comes again."""
    row = await access.ticket(request, id)
    begin = row.acked if since is None else since
    deadline = time.monotonic() + wait
    while True:
        page, following = await broker.reading(lambda: pulled(broker.store, broker.outbox, row, begin, limit))
        if page or time.monotonic() >= deadline:
            break
        await asyncio.sleep(_POLL_S)
    broker.numbers.count("delivered_total", len(page), "pull")
    # Written as they are: whoever parses them first would round integers beyond 64 bits.
    listed = b",".join(map(to_json, page))
    return Response(b'{"notifications":[%s],"next":%d}' % (listed, following), media_type="application/json")


@router.post("/subscriptions/{id}/acknowledgements", status_code=204, response_class=Response)
async def acknowledge(request: Request, broker: access.Here, id: Id, body: Acknowledgement) -> Response:
    """All notifications up to a number are done with."""
    row = await access.ticket(request, id)
    until = min(body.until, broker.tail.seq)
    await broker.reading(lambda: done_with(broker.store, broker.outbox, broker.tickets, row, until))
    return Response(status_code=204)


@router.get("/subscriptions/{id}/letters")
async def letters(request: Request, broker: access.Here, id: Id, since: Number = 0) -> Letters:
    """Notifications that could not be delivered."""
    await access.ticket(request, id)
    found = await broker.reading(lambda: broker.outbox.letters(id, since))
    return Letters(letters=[LetterOut.model_validate(letter, from_attributes=True) for letter in found])


@router.post("/subscriptions/{id}/redelivery")
async def redeliver(request: Request, broker: access.Here, id: Id) -> Redelivered:
    """Try the dead letters again, now, up to a hundred; those that are taken are dead letters no more."""
    row = await access.ticket(request, id)
    channel = broker.channel(row) if row.delivery.get("kind") in PUSHED else None
    if channel is None:
        raise Refused(409, "delivery", "this subscription is not pushed anywhere", "read its notifications")
    done, failures = 0, []
    for letter in await broker.reading(lambda: broker.outbox.letters(id)):
        notices = await broker.reading(partial(broker.store.logs.notices_of, [id], letter.notification - 1, 1))
        if not notices or notices[0].seq != letter.notification:
            failures.append(f"notification {letter.notification} is no longer kept")
            await broker.reading(partial(broker.outbox.forget, letter.seq))
            continue
        outcome = await channel.send(notices)
        if outcome.failure is not None:
            failures.append(outcome.failure)
            break
        await broker.reading(partial(broker.outbox.forget, letter.seq))
        done += 1
    return Redelivered(delivered=done, failures=failures)

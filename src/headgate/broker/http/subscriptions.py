"""Subscribe, renew, unsubscribe, list; and the streams that there are."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from headgate.broker.http import access
from headgate.broker.http.models import (
    Created,
    CreatedAll,
    NewStream,
    NewSubscription,
    NewSubscriptions,
    Page,
    Renewal,
    Renewed,
    StreamOut,
    Streams,
    Subscription,
)
from headgate.broker.service import Broker
from headgate.broker.subscribing import WEBHOOK, Given, Wanted, checked_delivery
from headgate.plan import Entry
from headgate.schema import Schema
from headgate.store.tickets import Ticket

router = APIRouter(prefix="/v1", tags=["subscriptions"])
Id = Annotated[str, Path(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9_./-]+$")]


async def _wanted(given: NewSubscription, broker: Broker, asking: str) -> Wanted:
    delivery = checked_delivery(given.delivery.model_dump(), broker.settings)
    if delivery["kind"] == WEBHOOK:
        await broker.webhooks.resolver.checked(asking, delivery["url"])
    validity = min(given.validity, broker.settings.longest_validity) if given.validity is not None else None
    return Wanted(given.text, given.stream, given.missing, validity, given.name, delivery)


async def _subscribe(request: Request, given: list[NewSubscription]) -> list[Created]:
    broker = access.broker_of(request)
    account = await access.key(request, "subscribe")
    owner = account.id if account is not None else None
    wanted = [await _wanted(one, broker, owner or access.address_of(request)) for one in given]
    made = await broker.book(lambda s: s.subscribe(wanted, owner))
    entries = await broker.book(lambda s: s.entries([g.row.subscription for g in made]))
    return [_created(broker, g, entries.get(g.row.subscription)) for g in made]


def _created(broker: Broker, given: Given, entry: Entry | None) -> Created:
    hook = given.row.delivery["kind"] == WEBHOOK
    key = broker.tickets.signing_key(given.row.subscription) if hook else None
    return Created(**_shown(given.row, entry), ticket=given.ticket, signing_key=key)


def _shown(row: Ticket, entry: Entry | None, waiting: str | None = None) -> dict[str, Any]:
    return {
        "id": row.subscription,
        "name": row.name,
        "text": entry.text if entry else None,
        "stream": entry.stream if entry else None,
        "missing": entry.missing if entry else None,
        "state": row.state,
        "created": row.created,
        "expires": row.expires,
        "delivery": row.delivery,
        "acknowledged": row.acked,
        "waiting": waiting,
    }


async def _subscriptions(broker: Broker, rows: list[Ticket]) -> list[Subscription]:
    names = [row.subscription for row in rows]
    entries = await broker.book(lambda s: s.entries(names))
    cursors = await broker.reading(lambda: [broker.outbox.cursor(name) for name in names])
    notes = {cursor.subscription: cursor.note for cursor in cursors if cursor is not None}
    for aside in broker.quarantined:
        notes[aside.name] = f"it is set aside: {aside.reason}"
    return [
        Subscription.model_validate(_shown(row, entries.get(row.subscription), notes.get(row.subscription)))
        for row in rows
    ]


@router.post("/subscriptions", status_code=201)
async def subscribe(request: Request, body: NewSubscription) -> Created:
    """Subscribe. The answer has the ticket, which is told only here."""
    (made,) = await _subscribe(request, [body])
    return made


@router.post("/subscriptions/batch", status_code=201)
async def subscribe_all(request: Request, body: NewSubscriptions) -> CreatedAll:
    """Subscribe to up to 1,000 at once; all of them, or none."""
    return CreatedAll(subscriptions=await _subscribe(request, body.subscriptions))


@router.get("/subscriptions")
async def own(
    request: Request,
    broker: access.Here,
    after: Annotated[str, Query(max_length=200)] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Page:
    """One's own: those made with the API key of the request, and those whose tickets it brings (`Headgate-Tickets`)."""
    account = await access.key(request, "subscribe")
    rows = [] if after else await access.tickets(request)
    following = None
    if account is not None and "\0" not in after:
        owner = account.id
        page = await broker.reading(lambda: broker.tickets.of_owner(owner, after, limit))
        rows += [row for row in page if row.subscription not in {r.subscription for r in rows}]
        following = page[-1].subscription if len(page) == limit else None
    return Page(subscriptions=await _subscriptions(broker, rows), next=following)


@router.get("/subscriptions/{id}")
async def one(request: Request, broker: access.Here, id: Id) -> Subscription:
    """One subscription, with its ticket."""
    row = await access.ticket(request, id)
    return (await _subscriptions(broker, [row]))[0]


@router.put("/subscriptions/{id}/validity")
async def renew(request: Request, broker: access.Here, id: Id, body: Renewal) -> Renewed:
    """Valid for so long from now. A subscription that was paused by its cap goes on."""
    row = await access.ticket(request, id)
    validity = min(body.validity, broker.settings.longest_validity) if body.validity is not None else None
    until = await broker.book(lambda s: s.renew(row, validity))
    broker.forget(id)
    return Renewed(expires=until)


@router.delete("/subscriptions/{id}", status_code=204, response_class=Response)
async def unsubscribe(request: Request, broker: access.Here, id: Id) -> Response:
    await access.ticket(request, id)
    await broker.book(lambda s: s.cancel(id))
    broker.ended(id)
    return Response(status_code=204)


@router.get("/streams")
async def streams(request: Request, broker: access.Here) -> Streams:
    """The streams that can be subscribed to and published on."""
    await access.key(request, None)
    return Streams(streams=[_stream(s) for s in (await broker.book(lambda s: s.schemas())).values()])


def _stream(schema: Schema) -> StreamOut:
    return StreamOut(
        name=schema.stream,
        attributes={a.name: str(a.type) if a.type else None for a in schema},
        declared=schema.declared,
        time=[".".join(path) for path in schema.time],
    )


@router.post("/streams", status_code=201)
async def declare(request: Request, broker: access.Here, body: NewStream) -> StreamOut:
    """Declare a stream: mistakes in subscriptions on it are found when they are made."""
    await access.key(request, "publish")
    await broker.declare(body.name, body.attributes, body.time)
    return StreamOut(
        name=body.name, attributes=dict(body.attributes), declared=True, time=[body.time] if body.time else []
    )

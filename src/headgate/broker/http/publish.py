"""Publish: one event, a batch, or a stream of lines."""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Header, Path, Request

from headgate.broker import bodies
from headgate.broker.http import access
from headgate.broker.http.models import PublishedOut
from headgate.broker.problems import Refused
from headgate.broker.service import Broker
from headgate.store.keys import Key
from headgate.store.publications import Publication, Published

router = APIRouter(prefix="/v1", tags=["publish"])
_LINES = 2000
_FLUSH_S = 0.2

_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            bodies.JSON: {"schema": {"oneOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}]}},
            bodies.LINES: {"schema": {"type": "string"}},
            bodies.CLOUD: {"schema": {"type": "object"}},
            bodies.CLOUD_BATCH: {"schema": {"type": "array", "items": {"type": "object"}}},
        },
    }
}


@router.post("/streams/{stream}/events", status_code=202, openapi_extra=_BODY)
async def publish(
    request: Request,
    broker: access.Here,
    stream: Annotated[str, Path(min_length=1, max_length=200)],
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> PublishedOut:
    """Publish events. The answer comes when they are safe in the log; they are matched after that.

    With an `Idempotency-Key` a request may be repeated: the events are published once.
    """
    account = await access.key(request, "publish")
    if not await broker.has_stream(stream):
        raise Refused(404, "stream", f"there is no stream {stream}", "declare it, or subscribe to it first")
    if idempotency_key is not None and "\0" in idempotency_key:
        raise Refused(422, "shape", "an idempotency key is text")
    kind = bodies.media(request.headers.get("content-type"))
    if kind == bodies.LINES:
        return await _lines(request, broker, stream, account, idempotency_key)
    now = time.time()
    raw = await request.body()
    given = bodies.events(raw, kind, request.headers, broker.settings)
    done = await _put(request, account, stream, given, now, idempotency_key, raw)
    return PublishedOut(accepted=done.last - done.first + 1, first=done.first, last=done.last, repeated=done.repeated)


async def _put(
    request: Request, account: Key | None, stream: str, given: list[str], at: float, key: str | None, raw: bytes
) -> Published:
    broker = access.broker_of(request)
    access.charge(request, account, len(given))
    day = datetime.now(UTC).date().isoformat()
    if account is not None and account.quota is not None:
        used = await broker.reading(lambda: broker.keys.used(account.id, day))
        if used + len(given) > account.quota:
            left = 86_400 - time.time() % 86_400
            raise Refused(429, "quota", f"at most {account.quota:,} events a day", f"{used:,} are used", wait=left)
    scoped = None if key is None else f"{account.id if account else ''}/{stream}/{key}"
    digest = hashlib.sha256(raw).hexdigest() if key is not None else ""
    charged = account.id if account is not None and account.quota is not None else None
    done = await broker.publisher.publish(Publication(stream, given, at, scoped, digest, charged, day))
    if done.conflict:
        raise Refused(409, "idempotency", "this idempotency key was used for other events", "use a fresh one")
    if not done.repeated:
        broker.numbers.count("published_events_total", len(given))
    return done


async def _lines(request: Request, broker: Broker, stream: str, account: Key | None, key: str | None) -> PublishedOut:
    """Lines are published as they come. On a bad one the stream ends; what stands before it is published, and told."""
    first, last, accepted, number, repeated = 0, -1, 0, 0, False
    waiting: list[str] = []
    began = time.monotonic()

    async def flush() -> None:
        nonlocal first, last, accepted, repeated, began
        if waiting:
            part = list(waiting)
            raw = "\n".join(part).encode()
            at = time.time()
            # Each part of the stream has a key of its own: cut elsewhere, a repetition would not be one.
            done = await _put(request, account, stream, part, at, f"{key} {number}" if key else None, raw)
            first, last = first or done.first, done.last
            accepted += len(part)
            repeated = repeated or done.repeated
            waiting.clear()
        began = time.monotonic()

    try:
        async for raw in _split(request, broker.settings.event_bytes):
            number += 1
            if raw.strip():
                waiting.append(bodies.line(raw, number, broker.settings))
            if len(waiting) >= _LINES or (key is None and time.monotonic() - began > _FLUSH_S):
                await flush()
        await flush()
    except Refused as problem:
        if problem.status_code in (400, 413):
            await flush()
        problem.more = {**problem.more, "accepted": accepted, "last": last}
        raise
    return PublishedOut(accepted=accepted, first=first, last=last, repeated=repeated)


async def _split(request: Request, longest: int) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in request.stream():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
        if len(rest) > longest:
            yield rest
            return
    if rest:
        yield rest

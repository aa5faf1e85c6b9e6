"""Publish: one event, a batch, or a stream of lines."""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Header, Path, Request

from headgate.broker import bodies
from headgate.broker.http import access
from headgate.broker.http.gate import body_of
from headgate.broker.http.models import PublishedOut, Unfit
from headgate.broker.problems import Refused
from headgate.broker.service import Broker
from headgate.events import decode
from headgate.schema import Schema
from headgate.store.keys import Key
from headgate.store.publications import Publication

router = APIRouter(prefix="/v1", tags=["publish"])
_LINES, _LINES_SIZE = 2000, 4 << 20
"""Lines, and bytes, that are published together."""
_FLUSH_S = 0.2
_MOST_TOLD = 100
"""Problems in an answer."""

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
    schema = await broker.stream(stream)
    if schema is None:
        raise Refused(404, "stream", f"there is no stream {stream}", "declare it, or subscribe to it first")
    if idempotency_key is not None and "\0" in idempotency_key:
        raise Refused(422, "shape", "an idempotency key is text")
    kind = bodies.media(request.headers.get("content-type"))
    publishing = _Publishing(request, broker, schema, account, idempotency_key)
    if kind == bodies.LINES:
        body_of(request).stream()
        return await publishing.lines()
    raw = await request.body()
    await publishing.put(bodies.events(raw, kind, request.headers, broker.settings), raw, idempotency_key)
    return publishing.done


class _Publishing:
    """One request: what has been published so far is in `done`."""

    def __init__(
        self, request: Request, broker: Broker, schema: Schema, account: Key | None, idempotency_key: str | None
    ) -> None:
        self._request = request
        self._broker = broker
        self._schema = schema
        self._account = account
        self._key = idempotency_key
        self._at = time.time()
        self.done = PublishedOut(accepted=0, first=0, last=-1)

    async def put(self, events: Sequence[bodies.Event], raw: bytes, key: str | None) -> None:
        broker, account, stream = self._broker, self._account, self._schema.stream
        access.charge(self._request, account, len(events))
        day = datetime.now(UTC).date().isoformat()
        scoped = None if key is None else f"{account.id if account else ''}/{stream}/{key}"
        digest = hashlib.sha256(raw).hexdigest() if key is not None else ""
        quota = account.quota if account is not None else None
        charged = account.id if account is not None and quota is not None else None
        texts = [event.text for event in events]
        told = await broker.publisher.publish(Publication(stream, texts, self._at, scoped, digest, charged, quota, day))
        if told.over_quota is not None:
            left = 86_400 - time.time() % 86_400
            hint = f"{told.over_quota:,} are used"
            raise Refused(429, "quota", f"at most {quota:,} events a day", hint, wait=left)
        if told.conflict:
            raise Refused(409, "idempotency", "this idempotency key was used for other events", "use a fresh one")
        if not told.repeated:
            broker.numbers.count("published_events_total", len(events))
        done = self.done
        done.first, done.last = done.first or told.first, told.last
        done.accepted += told.last - told.first + 1
        done.repeated = done.repeated or told.repeated
        self._note_unfit(events, told.first)

    def _note_unfit(self, events: Sequence[bodies.Event], first: int) -> None:
        """Tell the publisher of what matching will set aside. They are published all the same, as the language wants it."""
        if not self._schema.declared or not events:
            return
        unfit = decode([event.values for event in events], self._schema, first=first).rejected
        self.done.unfit += len(unfit)
        room = _MOST_TOLD - len(self.done.problems)
        self.done.problems += [Unfit(event=p.event, code=p.code, reason=p.reason) for p in unfit[:room]]

    async def lines(self) -> PublishedOut:
        """Lines are published as they come. On a bad one the stream ends; what stands before it is published, and told."""
        number, size, limits = 0, 0, self._broker.settings
        waiting: list[bodies.Event] = []
        began = time.monotonic()

        async def flush() -> None:
            nonlocal began, size
            if waiting:
                # Each part of the stream has a key of its own: cut elsewhere, a repetition would not be one.
                key = f"{self._key} {number}" if self._key else None
                self._at = time.time()
                await self.put(waiting, "\n".join(event.text for event in waiting).encode(), key)
                waiting.clear()
            began, size = time.monotonic(), 0

        try:
            async for raw in _split(self._request, limits.event_bytes):
                number += 1
                if raw.strip():
                    waiting.append(bodies.line(raw, number, limits))
                    size += len(raw)
                if (
                    len(waiting) >= _LINES
                    or size >= _LINES_SIZE
                    or (self._key is None and time.monotonic() - began > _FLUSH_S)
                ):
                    await flush()
            await flush()
        except Refused as problem:
            if problem.status_code in (400, 413):
                await flush()
            problem.more = {**problem.more, "accepted": self.done.accepted, "last": self.done.last}
            raise
        return self.done


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

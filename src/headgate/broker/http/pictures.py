"""Pictures as SVG."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field

from headgate.broker import pictures
from headgate.broker.dry_run import book_of
from headgate.broker.http import access
from headgate.broker.http.models import Mode, Name, Strict, Text
from headgate.pictures import Picture

router = APIRouter(prefix="/v1", tags=["look"])
_MOST = 200
_SVG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/svg+xml": {"schema": {"type": "string"}}}}}
_POLICY = {"Content-Security-Policy": "default-src 'none'; sandbox"}


class Wish(Strict):
    """A text to draw; for a matching tree with an event; for a cover nothing: it is of one's own subscriptions."""

    kind: Literal["automaton", "diagram", "tree", "cover"]
    text: Text | None = None
    stream: Name | None = None
    missing: Mode = "null"
    event: dict[str, Any] = Field(default_factory=dict)


@router.post("/picture", response_class=Response, responses=_SVG)
async def picture(request: Request, broker: access.Here, body: Wish) -> Response:
    """An automaton, a decision diagram, a matching tree or a cover."""
    await access.key(request, "subscribe")
    schemas = await broker.book(lambda s: s.schemas())
    if body.kind == "cover":
        rows = await access.own(request, _MOST)
        entries = await broker.book(lambda s: s.entries([r.subscription for r in rows]))
        names = {r.subscription: r.name for r in rows if r.name}
        made = await broker.reading(lambda: pictures.cover(entries, schemas, names))
    else:
        made = await broker.reading(lambda: _drawn(body, schemas))
    return Response(made.svg(), media_type="image/svg+xml", headers=_POLICY)


def _drawn(body: Wish, schemas: Any) -> Picture:
    book = book_of(schemas, {})
    book.add("draft", body.text or "TRUE", on=body.stream, missing=body.missing)
    return pictures.drawn(body.kind, book, "draft", body.event if body.kind == "tree" else None)

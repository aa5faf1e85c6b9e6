"""Pictures as SVG."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field

from headgate.broker import pictures
from headgate.broker.dry_run import Wanted
from headgate.broker.http import access
from headgate.broker.http.models import Mode, Name, Strict, Text

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
    if body.kind == "cover":
        rows = await access.own(request, _MOST)
        names = {row.subscription: row.name for row in rows}
        changes = await broker.book(lambda s: s.excerpt(names))
        made = await broker.aside(pictures.cover, changes, names)
    else:
        changes = await broker.book(lambda s: s.excerpt())
        draft = Wanted(body.text or "TRUE", body.stream, body.missing)
        made = await broker.aside(pictures.drawn, body.kind, changes, draft, body.event)
    return Response(made, media_type="image/svg+xml", headers=_POLICY)

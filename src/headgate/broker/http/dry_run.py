"""The editor's check, and the try-it box."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Request

from headgate.broker import dry_run, problems
from headgate.broker.http import access
from headgate.broker.http.models import Checked, Draft, Problem, Trial, Verdict, Verdicts

router = APIRouter(prefix="/v1", tags=["look"])
_MOST = 100


@router.post("/check")
async def check(request: Request, broker: access.Here, body: Draft) -> Checked:
    """Whether a text could be subscribed to, with every mistake and its place."""
    await access.key(request, "subscribe")
    found = await broker.book(lambda s: s.check(body.text, body.stream, body.missing))
    said = [] if found is None else [Problem.model_validate(p) for p in problems.shown(found)]
    return Checked(fine=not said, problems=said)


@router.post("/try")
async def trial(request: Request, broker: access.Here, body: Trial) -> Verdicts:
    """Which of one's own subscriptions, and of some drafts, match an event; and why the others do not.

    One's own are those of the API key, and those whose tickets come in `Headgate-Tickets`; what others subscribe to is
    nobody's business.
    """
    rows = await access.own(request, _MOST)
    names = {row.subscription: row.name for row in rows}
    changes = await broker.book(lambda s: s.excerpt(names, body.stream))
    drafts = {
        f"draft {number + 1}": dry_run.Wanted(draft.text, draft.stream or body.stream, draft.missing)
        for number, draft in enumerate(body.drafts)
    }
    seen = await broker.aside(dry_run.tried, changes, drafts, body.event)
    return Verdicts(verdicts=[Verdict(name=names.get(one.id), **asdict(one)) for one in seen])

"""The error channel: events that matching could not use, and what went wrong for single subscriptions."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Request

from headgate.broker.http import access
from headgate.broker.http.models import ErrorOut, Errors
from headgate.store.keys import Key
from headgate.store.logs import LoggedProblem

router = APIRouter(prefix="/v1", tags=["system"])


@router.get("/errors")
async def errors(
    request: Request,
    broker: access.Here,
    stream: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
    since: Annotated[int | None, Query(ge=0, lt=1 << 62, description="The newest if left out")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Errors:
    """Events that could not be used, with the reason; and what went wrong for one's own subscriptions.

    Whoever may subscribe may see an event of a stream, so they may see a bad one too. What went wrong for a subscription
    is its owner's business: it is shown with its ticket, with the API key it was made with, or with an admin's key.
    """
    account = await access.key(request, "subscribe")
    if stream is not None and "\0" in stream:
        return Errors(errors=[], next=since or 0)
    page = await broker.reading(lambda: broker.store.logs.errors(since, limit, stream))
    mine = {row.subscription for row in await access.tickets(request)}

    def owned(name: str, account: Key) -> bool:
        row = broker.known(name)
        return row is not None and row.owner == account.id

    def visible(problem: LoggedProblem) -> LoggedProblem | None:
        if problem.subscriptions is None or (account is not None and "admin" in account.scopes):
            return problem
        names = [n for n in problem.subscriptions if n in mine or (account is not None and owned(n, account))]
        return replace(problem, subscriptions=names) if names else None

    shown = await broker.reading(lambda: [one for problem in page if (one := visible(problem)) is not None])
    made = [ErrorOut.model_validate(one, from_attributes=True) for one in shown]
    return Errors(errors=made, next=page[-1].seq if page else since or 0)

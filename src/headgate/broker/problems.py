"""What is wrong with a request, as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from headgate.errors import HeadgateError, LanguageError, LanguageErrors, UsageError
from headgate.store.database import StoreUnavailable

MEDIA = "application/problem+json"


class Refused(HTTPException):
    """A request that is refused, with a stable code, and for people what is wrong and what to do."""

    def __init__(
        self, status: int, code: str, detail: str, hint: str = "", wait: float | None = None, **more: Any
    ) -> None:
        headers = {} if wait is None else {"Retry-After": str(max(1, round(wait)))}
        super().__init__(status, detail, headers)
        self.code = code
        self.hint = hint
        self.more = more


def forbidden() -> Refused:
    """One answer for every ticket that does not open a subscription: it tells nothing about which of all it was."""
    return Refused(403, "ticket", "this ticket does not open this subscription", "send it as Authorization: Bearer ...")


_TITLES = {
    400: "Bad request", 401: "Not authenticated", 403: "Forbidden", 404: "Not found", 405: "Method not allowed",
    406: "Not acceptable", 408: "Too slow", 409: "Conflict", 413: "Too large", 415: "Unsupported media type",
    421: "Not this host", 422: "Cannot be processed", 429: "Too many requests", 500: "Internal error", 503: "Not available",
}  # fmt: skip


def answer(status: int, code: str, detail: str, headers: Any = None, **more: Any) -> Response:
    body = {"type": f"urn:headgate:{code}", "title": _TITLES.get(status, "Error"), "status": status, "detail": detail}
    body |= {"code": code, **{k: v for k, v in more.items() if v not in (None, "")}}
    made = Response(orjson.dumps(body, default=str), status, headers, MEDIA)
    if status == 408:
        # The rest of the body is not waited for.
        made.headers["Connection"] = "close"
    return made


def of_refusal(_request: Request, problem: Exception) -> Response:
    if isinstance(problem, Refused):
        more = {"hint": problem.hint, **problem.more}
        return answer(problem.status_code, problem.code, problem.detail, problem.headers, **more)
    assert isinstance(problem, HTTPException)
    return answer(problem.status_code, "http", str(problem.detail), problem.headers)


def refusal_of(problem: HeadgateError) -> Refused:
    """An error of the language or the library."""
    if isinstance(problem, StoreUnavailable):
        return Refused(503, problem.code, problem.message, wait=1.0)
    if isinstance(problem, LanguageError | LanguageErrors):
        return Refused(422, problem.code, problem.message, problems=shown(problem))
    return Refused(422 if isinstance(problem, UsageError) else 400, problem.code, problem.message, problem.hint)


def of_headgate(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HeadgateError)
    return of_refusal(request, refusal_of(problem))


def shown(problem: LanguageError | LanguageErrors) -> list[dict[str, Any]]:
    """Language errors with their places, for an editor."""
    found = problem.errors if isinstance(problem, LanguageErrors) else [problem]
    return [
        {
            "code": e.code,
            "message": e.message,
            "hint": e.hint,
            "line": e.place.line if e.place else 1,
            "column": e.place.column if e.place else 1,
            "length": e.place.length if e.place else 1,
            "caret": e.place.caret() if e.place else "",
        }
        for e in found
    ]


def of_validation(_request: Request, problem: Exception) -> Response:
    """A body or parameter of the wrong shape, as pydantic found it."""
    found: Any = problem
    said = [{"at": ".".join(map(str, e["loc"])), "message": e["msg"]} for e in found.errors()]
    first = f"{said[0]['at']}: {said[0]['message']}" if said else "the request has the wrong shape"
    return answer(422, "shape", first, problems=said)

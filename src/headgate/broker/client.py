"""A small client of the broker, for programs and for `headgate sub`.

    broker = Client("http://127.0.0.1:8080")
    mine = broker.subscribe("price < 100", stream="stock")
    broker.publish("stock", [{"name": "IBM", "price": 98.2}])
    for note in broker.listen(mine.id, mine.ticket, since=0):
        print(note["data"])

A publication is repeated when the broker cannot be reached or asks to wait, with a key that keeps it single.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx
import orjson

from headgate.errors import EnvironmentProblem, HeadgateError, UsageError

_TRIES = 8
_LONGEST_WAIT_S = 5.0


class BrokerError(HeadgateError):
    """What the broker refused, in its words; `status` is that of HTTP."""

    code = "broker"

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem.get("detail") or f"the broker answered {status}"), str(problem.get("hint") or ""))
        self.status = status
        self.problem = dict(problem)


@dataclass(frozen=True, slots=True)
class Subscribed:
    id: str
    ticket: str
    expires: float
    signing_key: str | None = None


class Client:
    """For one thread."""

    def __init__(self, url: str, key: str | None = None, timeout: float = 30.0) -> None:
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"{url} is no address of a broker", "it begins with http:// or https://")
        headers = {"Headgate-Key": key} if key else {}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # -- subscriptions

    def subscribe(self, text: str, stream: str | None = None, **more: Any) -> Subscribed:
        """More: missing, validity (seconds), name, delivery (see the OpenAPI document)."""
        return _subscribed(self._call("POST", "/v1/subscriptions", {"text": text, "stream": stream, **more}))

    def subscribe_all(self, wanted: Sequence[Mapping[str, Any]]) -> list[Subscribed]:
        """Up to 1,000 at once; all or none."""
        body = {"subscriptions": [dict(one) for one in wanted]}
        return [_subscribed(one) for one in self._call("POST", "/v1/subscriptions/batch", body)["subscriptions"]]

    def renew(self, id: str, ticket: str, validity: float | None = None) -> float:
        """The new end."""
        return float(self._call("PUT", f"/v1/subscriptions/{id}/validity", {"validity": validity}, ticket)["expires"])

    def unsubscribe(self, id: str, ticket: str) -> None:
        self._call("DELETE", f"/v1/subscriptions/{id}", None, ticket)

    def subscription(self, id: str, ticket: str) -> dict[str, Any]:
        found: dict[str, Any] = self._call("GET", f"/v1/subscriptions/{id}", None, ticket)
        return found

    def subscriptions(self, tickets: Mapping[str, str] | None = None) -> Iterator[dict[str, Any]]:
        """One's own: of the API key, and by tickets."""
        said = ", ".join(f"{id}:{ticket}" for id, ticket in (tickets or {}).items())
        after = ""
        while True:
            headers = {"Headgate-Tickets": said} if said and not after else {}
            page = self._call("GET", f"/v1/subscriptions?limit=1000&after={after}", None, None, headers)
            yield from page["subscriptions"]
            after = page.get("next")
            if not after:
                return

    # -- streams and events

    def declare(self, name: str, attributes: Mapping[str, str], time: str | None = None) -> None:
        self._call("POST", "/v1/streams", {"name": name, "attributes": dict(attributes), "time": time})

    def publish(self, stream: str, events: Sequence[Mapping[str, Any]], key: str | None = None) -> tuple[int, int]:
        """Publish events, each once however often this must be tried; their first and last id in the log."""
        try:
            body = orjson.dumps(list(events))
        except TypeError:
            body = json.dumps(list(events)).encode()  # it writes integers beyond 64 bits
        headers = {"Idempotency-Key": key or uuid.uuid4().hex, "Content-Type": "application/json"}
        for attempt in range(_TRIES):
            wait = min(_LONGEST_WAIT_S, 0.1 * 2**attempt)
            try:
                answer = self._http.post(f"/v1/streams/{stream}/events", content=body, headers=headers)
            except httpx.HTTPError as problem:
                if attempt == _TRIES - 1:
                    raise EnvironmentProblem(f"the broker does not answer: {problem}") from None
                time.sleep(wait)
                continue
            if answer.status_code in (429, 503) and attempt < _TRIES - 1:
                said = answer.headers.get("retry-after", "")
                time.sleep(min(float(said), _LONGEST_WAIT_S) if said.isdecimal() else wait)
                continue
            done = _checked(answer)
            return int(done["first"]), int(done["last"])
        raise AssertionError("unreachable")

    # -- notifications

    def pull(
        self, id: str, ticket: str, since: int | None = None, limit: int = 100, wait: float = 0.0
    ) -> list[dict[str, Any]]:
        """What is not acknowledged, or what comes after a number."""
        asked = f"limit={limit}&wait={wait}" + ("" if since is None else f"&since={since}")
        found: list[dict[str, Any]] = self._call("GET", f"/v1/subscriptions/{id}/notifications?{asked}", None, ticket)[
            "notifications"
        ]
        return found

    def acknowledge(self, id: str, ticket: str, until: int) -> None:
        self._call("POST", f"/v1/subscriptions/{id}/acknowledgements", {"until": until}, ticket)

    def listen(self, id: str, ticket: str, since: int | None = None) -> Iterator[dict[str, Any]]:
        """Notifications as they come, until the subscription ends; a connection that breaks is made anew where it was."""
        yield from self._stream(f"/v1/subscriptions/{id}/events", {"Authorization": f"Bearer {ticket}"}, since)

    def feed(self, since: int | None = None) -> Iterator[dict[str, Any]]:
        """As `listen`, for all subscriptions made with the API key."""
        yield from self._stream("/v1/feed", {}, since)

    def _stream(self, path: str, headers: Mapping[str, str], since: int | None) -> Iterator[dict[str, Any]]:
        seq, failures = since, 0
        while True:
            more = {} if seq is None else {"Last-Event-ID": str(seq)}
            try:
                quiet = httpx.Timeout(30.0, read=60.0)
                with self._http.stream("GET", path, headers={**headers, **more}, timeout=quiet) as answer:
                    if not answer.is_success:
                        answer.read()
                        _checked(answer)
                    failures, begin = 0, None
                    for line in _lines(answer):
                        if line.startswith(b"event: end"):
                            return
                        if line.startswith(b"id: "):
                            begin = int(line[4:])
                        elif line.startswith(b"data: "):
                            note = json.loads(line[6:])
                            seq, begin = int(note["seq"]), None
                            yield note
                        elif not line and begin is not None:
                            seq = begin
            except httpx.HTTPError as problem:
                failures += 1
                if failures >= _TRIES:
                    raise EnvironmentProblem(f"the broker does not answer: {problem}") from None
                time.sleep(min(_LONGEST_WAIT_S, 0.1 * 2**failures))

    def _call(
        self, method: str, path: str, body: Any, ticket: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        sent = {**(headers or {}), **({"Authorization": f"Bearer {ticket}"} if ticket else {})}
        content = None
        if body is not None:
            content = orjson.dumps({k: v for k, v in body.items() if v is not None})
            sent["Content-Type"] = "application/json"
        try:
            answer = self._http.request(method, path, content=content, headers=sent)
        except httpx.HTTPError as problem:
            raise EnvironmentProblem(f"the broker does not answer: {problem}", "is `headgate serve` running?") from None
        return _checked(answer)


def _lines(answer: httpx.Response) -> Iterator[bytes]:
    """Lines end at a line feed alone: texts in JSON may hold what Python takes for the end of a line, U+2028 for one."""
    rest = b""
    for part in answer.iter_bytes():
        *whole, rest = (rest + part).split(b"\n")
        yield from whole


def _subscribed(made: Mapping[str, Any]) -> Subscribed:
    return Subscribed(str(made["id"]), str(made["ticket"]), float(made["expires"]), made.get("signing_key"))


def _checked(answer: httpx.Response) -> Any:
    try:
        said = answer.json() if answer.content else None
    except ValueError:
        said = None
    if not answer.is_success:
        raise BrokerError(answer.status_code, said if isinstance(said, dict) else {})
    return said

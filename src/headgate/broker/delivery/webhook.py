"""Webhooks: one signed POST a notification, never to where a subscriber must not reach.

A body is signed with HMAC-SHA256 over the time and the body: `Headgate-Signature: t=<seconds>,v1=<hex>`; the key was told
with the ticket. An address is looked up once, checked, and the connection made to that very address, so that a name
cannot point elsewhere between the check and the call. Redirects are checked in the same way. Only addresses of the
public internet are called, unless the broker's owner allows others.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
from starlette.concurrency import run_in_threadpool

from headgate.broker.delivery.form import to_json
from headgate.broker.delivery.push import Outcome
from headgate.broker.problems import Refused
from headgate.broker.settings import Settings
from headgate.broker.throttle import value_of
from headgate.store.logs import Notice
from headgate.store.outbox import Outbox

_REDIRECTS = 3
_PORTS = {"http": 80, "https": 443}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Blocked(Exception):
    """An address that must not be called."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a call goes: the address that was checked, and the name it was found by."""

    url: str
    host: str
    """As the Host header has it."""
    name: str


def signature(key: str | bytes, body: bytes, at: int) -> str:
    raw = key.encode() if isinstance(key, str) else key
    return f"t={at},v1={hmac.new(raw, b'%d.%s' % (at, body), hashlib.sha256).hexdigest()}"


def verify(key: str | bytes, body: bytes, header: str, now: float, tolerance: float = 300.0) -> bool:
    """For receivers: whether a body is from the broker, and fresh."""
    parts = dict(part.partition("=")[::2] for part in header.split(","))
    at = int(parts["t"]) if parts.get("t", "").isdecimal() and len(parts["t"]) < 16 else 0
    fresh = abs(now - at) <= tolerance
    return hmac.compare_digest(signature(key, body, at), f"t={at},v1={parts.get('v1', '')}") and fresh


def allowed(address: str) -> bool:
    """Whether an address is one of the public internet, also if it is wrapped in one of the newer protocol."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return allowed(str(inner))
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified or ip.is_loopback)


def resolve(url: str, *, private: bool) -> Target:
    """Look a URL's name up and check what it means. In a thread: to look up may take long."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        raise Blocked("the url is not valid") from None
    if parts.scheme not in _PORTS:
        raise Blocked("the url must begin with http:// or https://")
    if not parts.hostname or parts.username or parts.password:
        raise Blocked("the url needs a host, and may not hold a user or a password")
    if any(c in url for c in "\r\n\t ") or len(url) > 2000:
        raise Blocked("the url has blanks in it, or is too long")
    try:
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as problem:
        raise Blocked(f"{parts.hostname} has no address: {problem}") from None
    addresses = [str(entry[4][0]) for entry in found]
    # All of them: the one that is called is not for the subscriber to choose.
    for address in addresses:
        if not private and not allowed(address):
            raise Blocked(f"{parts.hostname} is at {address}, which is not an address of the public internet")
    address = addresses[0]
    where = f"[{address}]" if ":" in address else address
    plain = parts.hostname if ":" not in parts.hostname else f"[{parts.hostname}]"
    host = plain if port == _PORTS[parts.scheme] else f"{plain}:{port}"
    pinned = parts._replace(netloc=f"{where}:{port}", fragment="").geturl()
    return Target(pinned, host, parts.hostname)


async def checked(url: str, settings: Settings) -> None:
    """Refuse a webhook that could not be called now."""
    try:
        await run_in_threadpool(resolve, url, private=settings.allow_private)
    except Blocked as problem:
        raise Refused(422, "webhook", f"this webhook is refused: {problem}") from None


class Webhooks:
    """Calls webhooks. One client for all: connections are kept for the next call."""

    def __init__(self, settings: Settings, outbox: Outbox) -> None:
        self._settings = settings
        self._outbox = outbox
        # The environment's proxies are not asked: through one, the address that is called would not be the checked one.
        self._client = httpx.AsyncClient(timeout=settings.hook_seconds, follow_redirects=False, trust_env=False)

    async def close(self) -> None:
        await self._client.aclose()

    async def send(self, subscription: str, delivery: dict[str, Any], key: str, page: Sequence[Notice]) -> Outcome:
        """One call after the other, until one fails."""
        for done, notice in enumerate(page):
            interval = delivery.get("interval")
            said = value_of(notice, str(delivery.get("key") or "")) if interval is not None else ""
            if interval is not None:
                last = await run_in_threadpool(self._outbox.said, subscription, said)
                if last is not None and notice.at < last + float(interval):
                    continue
            failure, wait, final = await self.call(str(delivery["url"]), key, notice)
            if failure is not None:
                return Outcome(done, failure, final, wait)
            if interval is not None:
                await run_in_threadpool(self._outbox.say, subscription, said, notice.at)
        return Outcome(len(page))

    async def call(self, url: str, key: str, notice: Notice) -> tuple[str | None, float, bool]:
        """Why it failed, if it did; how long the other side asks to wait; and whether to give up."""
        body = to_json(notice)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "headgate",
            "Headgate-Notification": notice.id,
            "Headgate-Subscription": notice.subscription,
            "Headgate-Signature": signature(key, body, int(time.time())),
        }
        for _ in range(_REDIRECTS + 1):
            try:
                target = await run_in_threadpool(resolve, url, private=self._settings.allow_private)
                answer = await self._post(target, body, headers)
            except Blocked as problem:
                return str(problem), 0.0, True
            except httpx.InvalidURL as problem:
                return f"the url is not valid: {problem}", 0.0, True
            except (httpx.HTTPError, OSError, TimeoutError) as problem:
                return f"{type(problem).__name__}: {problem}", 0.0, False
            if answer.status_code in (307, 308) and answer.headers.get("location"):
                url = urljoin(url, answer.headers["location"])
                continue
            if answer.is_success:
                return None, 0.0, False
            said = answer.headers.get("retry-after", "")
            wait = min(float(said), self._settings.longest_wait) if said.isdecimal() else 0.0
            return f"it answered {answer.status_code}", wait, answer.status_code == 410
        return f"more than {_REDIRECTS} redirects", 0.0, False

    async def _post(self, target: Target, body: bytes, headers: dict[str, str]) -> httpx.Response:
        """The answer's head; its body is nobody's business, and might have no end."""
        sent = {**headers, "Host": target.host}
        request = self._client.build_request(
            "POST", target.url, content=body, headers=sent, extensions={"sni_hostname": target.name}
        )
        async with asyncio.timeout(self._settings.hook_seconds):
            answer = await self._client.send(request, stream=True)
            await answer.aclose()
        return answer

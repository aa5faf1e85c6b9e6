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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from urllib.parse import urljoin, urlsplit

import httpx

from headgate.broker.delivery.form import to_json
from headgate.broker.delivery.push import Outcome
from headgate.broker.delivery.slots import FairSlots
from headgate.broker.problems import Refused
from headgate.broker.settings import Settings
from headgate.broker.threads import in_thread
from headgate.broker.throttle import Interval
from headgate.store.logs import Notice
from headgate.store.outbox import Outbox
from headgate.store.tickets import Ticket

_AT_ONCE = 256
"""Calls under way."""
_LOOK_UPS = 64
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
    # As bytes: texts beyond ASCII cannot be compared in constant time.
    said = f"t={at},v1={parts.get('v1', '')}".encode("utf-8", "surrogateescape")
    return hmac.compare_digest(signature(key, body, at).encode(), said) and fresh


def allowed(address: str) -> bool:
    """Whether an address is one of the public internet, also if it is wrapped in one of the newer protocol."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return allowed(str(inner))
        if ip.is_site_local:
            return False
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
    except (OSError, UnicodeError):
        found = []
    addresses = [str(entry[4][0]) for entry in found]
    # All of them: the one that is called is not for the subscriber to choose. One answer for a name that has no address
    # and for one that has a private address: a subscriber could learn the names and addresses of our network otherwise.
    if not addresses or not (private or all(map(allowed, addresses))):
        raise Blocked(f"{parts.hostname} has no address of the public internet")
    address = addresses[0]
    where = f"[{address}]" if ":" in address else address
    plain = parts.hostname if ":" not in parts.hostname else f"[{parts.hostname}]"
    host = plain if port == _PORTS[parts.scheme] else f"{plain}:{port}"
    pinned = parts._replace(netloc=f"{where}:{port}", fragment="").geturl()
    return Target(pinned, host, parts.hostname)


class Resolver:
    """Looks names up in threads of its own. A slow one is given up in time, and takes one of its owner's few threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._slots = FairSlots(_LOOK_UPS, _LOOK_UPS // 8)
        self._threads = ThreadPoolExecutor(_LOOK_UPS, "headgate-names")
        self._running: set[asyncio.Future[Target]] = set()

    async def target(self, owner: str, url: str) -> Target:
        """Blocked if the url must not be called, or its name cannot be looked up in time."""

        async def look_up() -> Target:
            async with self._slots.held(owner):
                call = partial(resolve, url, private=self._settings.allow_private)
                return await asyncio.get_running_loop().run_in_executor(self._threads, call)

        # The thread goes on after the time is over, and so does its slot.
        running = asyncio.ensure_future(look_up())
        self._running.add(running)
        running.add_done_callback(self._ended)
        try:
            return await asyncio.wait_for(asyncio.shield(running), self._settings.look_up_seconds)
        except TimeoutError:
            raise TimeoutError("its name could not be looked up in time") from None

    def _ended(self, running: asyncio.Future[Target]) -> None:
        self._running.discard(running)
        if not running.cancelled():
            running.exception()  # nobody may have waited for it

    async def checked(self, owner: str, url: str) -> None:
        """Refuse a webhook that could not be called now."""
        try:
            await self.target(owner, url)
        except (Blocked, TimeoutError) as problem:
            raise Refused(422, "webhook", f"this webhook is refused: {problem}") from None

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class Hook:
    """The webhook of a subscription."""

    subscription: str
    url: str
    key: str
    owner: str
    """Whose share of the calls it takes: an API key's or, without one, that of the host which is called."""
    rule: Interval | None


def hook_of(row: Ticket, key: str) -> Hook:
    url = str(row.delivery["url"])
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        host = ""
    return Hook(row.subscription, url, key, row.owner or f"host {host}", Interval.of(row.delivery))


class Webhooks:
    """Calls webhooks. One client for all: connections are kept for the next call."""

    def __init__(self, settings: Settings, outbox: Outbox) -> None:
        self._settings = settings
        self._outbox = outbox
        self._slots = FairSlots(_AT_ONCE, _AT_ONCE // 16)
        self.resolver = Resolver(settings)
        # The environment's proxies are not asked: through one, the address that is called would not be the checked one.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=_AT_ONCE)
        self._client = httpx.AsyncClient(
            timeout=settings.hook_seconds, limits=limits, follow_redirects=False, trust_env=False
        )

    async def close(self) -> None:
        self.resolver.close()
        await self._client.aclose()

    async def send(self, hook: Hook, page: Sequence[Notice]) -> Outcome:
        """One call after the other, until one fails."""
        for done, notice in enumerate(page):
            key = ""
            if hook.rule is not None:
                key = hook.rule.key_of(notice)
                last = await in_thread(self._outbox.said, hook.subscription, key)
                if not hook.rule.passes(notice, last):
                    continue
            async with self._slots.held(hook.owner):
                failure, wait, final = await self.call(hook, notice)
            if failure is not None:
                return Outcome(done, failure, final, wait)
            if hook.rule is not None:
                await in_thread(self._outbox.say, hook.subscription, key, notice.at)
        return Outcome(len(page))

    async def call(self, hook: Hook, notice: Notice) -> tuple[str | None, float, bool]:
        """Why it failed, if it did; how long the other side asks to wait; and whether to give up."""
        url, body = hook.url, to_json(notice)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "headgate",
            "Headgate-Notification": notice.id,
            "Headgate-Subscription": notice.subscription,
            "Headgate-Signature": signature(hook.key, body, int(time.time())),
        }
        for _ in range(_REDIRECTS + 1):
            try:
                target = await self.resolver.target(hook.owner, url)
                answer = await self._post(target, body, headers)
            except Blocked as problem:
                return str(problem), 0.0, True
            except httpx.InvalidURL as problem:
                return f"the url is not valid: {problem}", 0.0, True
            except (httpx.HTTPError, OSError, TimeoutError) as problem:
                return f"{type(problem).__name__}: {problem}", 0.0, False
            if answer.status_code in (307, 308) and answer.headers.get("location"):
                try:
                    url = urljoin(url, answer.headers["location"])
                except ValueError:
                    return "it redirects to what is no url", 0.0, False
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

"""What a broker can be told; every limit has a default here, and an option of `headgate serve` where a user may want it."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from headgate.errors import EnvironmentProblem

DAY = 86_400.0
STORE = "HEADGATE_STORE"
"""The variable of the environment that names the store where no argument does."""
WATERMARK, IDLE, AHEAD = "1 second", "2 seconds", "1 minute"
"""The time of all sequences: how late an event may come, how long a stream may be silent before the clock speaks for it,
how far a clock may be ahead."""


@dataclass(frozen=True)
class Settings:
    store: str
    """The path of a SQLite file, or postgresql://..."""
    data: Path
    """A folder of this broker: Spark's checkpoint, and the secret unless one is given."""
    secret: bytes
    """What tickets, keys and webhook signatures are made with; brokers on one store need the same."""
    host: str = "127.0.0.1"
    port: int = 8080
    engine: str = "spark"
    master: str | None = None
    """Of Spark: local[n], spark://..., or sc://... for Spark Connect."""
    plans: str | None = None
    require_keys: bool = False
    allow_hosts: tuple[str, ...] = ()
    """Names, besides localhost and any address, under which this broker is reached; * for all."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses of proxies that say for whom they ask, in X-Forwarded-For."""
    allow_private: bool = False
    """Whether webhooks may call loopback, private and link-local addresses."""

    # -- limits
    body_bytes: int = 16 << 20
    bodies_bytes: int = 512 << 20
    """Of all requests together, while they are read."""
    event_bytes: int = 1 << 20
    depth: int = 64
    batch_events: int = 50_000
    idle_seconds: float = 10.0
    """The longest silence within a request."""
    body_seconds: float = 60.0
    """The longest a body may take that is not a stream."""
    stall_seconds: float = 60.0
    """How long a client may take nothing of what is sent to it."""
    least_rate: float = 100.0
    """Bytes a second that a body must reach once `idle_seconds` are over."""
    aside_seconds: float = 10.0
    """The longest that trying an event, explaining or drawing may take."""
    backlog: int = 1_000_000
    """Events that may wait for matching before publishers are told to wait."""
    validity: float = DAY
    longest_validity: float = 366 * DAY
    most_streams: int = 1000
    most_subscriptions: int = 2_000_000
    cap: int = 60_000
    """Notifications of one subscription in a minute; one that has more is paused, with an alarm."""
    anonymous_rate: float | None = None
    """Events a second from one address without a key."""
    events_kept: float = DAY
    notifications_kept: float = 7 * DAY

    # -- delivery
    attempts: int = 8
    first_wait: float = 0.5
    longest_wait: float = 300.0
    hook_seconds: float = 10.0
    look_up_seconds: float = 5.0
    """For the name of a webhook's host."""
    kafka: str | None = None
    """The servers of the Kafka cluster that subscribers may have their notifications in."""
    kafka_prefix: str = "headgate."
    """Topics of subscribers begin with this, so that nobody writes into a topic of others."""

    # -- peers
    name: str = ""
    peers: tuple[str, ...] = ()
    link_key: bytes = b""
    advertise: str = ""
    """The address under which peers reach this broker."""


def identity_of(data: Path) -> str:
    """Who this broker is, in leases: the same after a restart, so that it need not wait for itself."""
    file = data / "broker-id"
    data.mkdir(parents=True, exist_ok=True)
    try:
        with file.open("x") as f:
            f.write(secrets.token_hex(16))
    except FileExistsError:
        pass
    return file.read_text("ascii")


def secret_of(data: Path, given: str | None = None) -> bytes:
    """The secret of a broker: the environment's, a file's, or one that is made for its folder now."""
    said = os.environ.get("HEADGATE_SECRET")
    if said and given is None:
        return said.encode()
    file = Path(given) if given else data / "secret"
    try:
        if given is None:
            data.mkdir(parents=True, exist_ok=True)
            try:
                # Only its owner may read it, from the first moment on.
                with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as f:
                    f.write(secrets.token_hex(32))
            except FileExistsError:
                pass
        found = file.read_bytes().strip()
    except OSError as problem:
        raise EnvironmentProblem(f"cannot read the secret {file}: {problem.strerror}") from None
    if len(found) < 16:
        raise EnvironmentProblem(f"the secret in {file} is too short", "give at least 16 bytes of randomness")
    return found

"""API keys: who may publish and subscribe where a broker asks for it, how fast and how much.

A key is `hgk_<id>_<secret>`: the id finds its row, the secret is kept as a keyed hash only.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headgate.errors import UnknownName, UsageError
from headgate.store.database import Database

SCOPES = ("publish", "subscribe", "admin")
_COLUMNS = "id, name, hash, scopes, rate, quota, created, revoked"


@dataclass(frozen=True, slots=True)
class Key:
    id: str
    name: str
    hash: str
    scopes: frozenset[str]
    rate: float | None
    """Events a second; None for no limit."""
    quota: int | None
    """Events a day, by the calendar of UTC."""
    created: float
    revoked: float | None = None


class Keys:
    def __init__(self, database: Database, secret: bytes) -> None:
        self._database = database
        self._secret = secret

    def create(
        self,
        name: str,
        scopes: Sequence[str] = ("publish", "subscribe"),
        rate: float | None = None,
        quota: int | None = None,
    ) -> tuple[str, Key]:
        """A new key and its row; the key itself is told here and never again."""
        wrong = [s for s in scopes if s not in SCOPES]
        if wrong or not scopes:
            raise UsageError(f"there is no scope {wrong[0] if wrong else ''}", f"the scopes are {', '.join(SCOPES)}")
        if (rate is not None and rate <= 0) or (quota is not None and quota <= 0):
            raise UsageError("a rate and a quota are numbers above 0", "leave them out for no limit")
        id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        key = Key(id, name, self._hash(id, secret), frozenset(scopes), rate, quota, time.time())
        values = (id, name, key.hash, ",".join(scopes), rate, quota, key.created, None)
        self._database.execute(f"INSERT INTO keys ({_COLUMNS}) VALUES ({', '.join('?' * 8)})", values)  # noqa: S608 - a constant of this module
        return f"hgk_{id}_{secret}", key

    def proven(self, given: str) -> Key | None:
        """The row of a key that is right and not revoked."""
        prefix, _, rest = given.partition("_")
        id, _, secret = rest.partition("_")
        found = self.find(id) if prefix == "hgk" else None
        right = hmac.compare_digest(self._hash(id, secret), found.hash if found else "0" * 64)
        return found if found is not None and right and found.revoked is None else None

    def find(self, id: str) -> Key | None:
        rows = self._database.rows(f"SELECT {_COLUMNS} FROM keys WHERE id = ?", (id,))  # noqa: S608 - a constant of this module
        return _key(rows[0]) if rows else None

    def list(self) -> list[Key]:
        return [_key(r) for r in self._database.rows(f"SELECT {_COLUMNS} FROM keys ORDER BY created, id")]  # noqa: S608 - a constant of this module

    def revoke(self, id: str) -> None:
        done = self._database.execute("UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL", (time.time(), id))
        if not done:
            raise UnknownName(f"there is no key {id}, or it is revoked already", "`headgate key ls` lists them")

    # -- quotas

    def used(self, id: str, day: str) -> int:
        return int(self._database.value("SELECT events FROM quotas WHERE key = ? AND day = ?", (id, day)) or 0)

    def use(self, id: str, day: str, events: int) -> None:
        self._database.execute(
            """INSERT INTO quotas (key, day, events) VALUES (?, ?, ?)
            ON CONFLICT (key, day) DO UPDATE SET events = quotas.events + excluded.events""",
            (id, day, events),
        )

    def _hash(self, id: str, secret: str) -> str:
        return hmac.new(self._secret, f"key\0{id}\0{secret}".encode(), hashlib.sha256).hexdigest()


def _key(row: tuple[Any, ...]) -> Key:
    id, name, hash, scopes, rate, quota, created, revoked = row
    return Key(id, name, hash, frozenset(scopes.split(",")), rate, quota, created, revoked)

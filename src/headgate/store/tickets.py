"""Tickets: the proof that a subscription is one's own (the operators paper, section 5.1).

The paper's ticket is a digest of the subscription and a random number. Here it is random alone, given out once, and
kept as a keyed hash: neither a reader of the database nor one who knows the subscription can make it. A ticket is for
one subscription; to compare one takes the same time whether it is right, wrong, expired, or of a subscription that does
not exist.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from headgate.store.database import Database, Row

ACTIVE, CAPPED, ENDED, EXPIRED = "active", "capped", "ended", "expired"
_COLUMNS = "subscription, hash, owner, name, delivery, state, created, expires, ended, acked"


@dataclass(frozen=True, slots=True)
class Ticket:
    subscription: str
    hash: str
    owner: str | None
    """The API key it was made with."""
    name: str | None
    delivery: dict[str, Any]
    state: str
    created: float
    expires: float
    ended: float | None = None
    acked: int = 0
    """The number of the last notification that was acknowledged by who pulls."""


class Tickets:
    def __init__(self, database: Database, secret: bytes) -> None:
        self._database = database
        self._secret = secret

    # -- secrets

    def hash(self, subscription: str, ticket: str) -> str:
        return hmac.new(self._secret, f"ticket\0{subscription}\0{ticket}".encode(), hashlib.sha256).hexdigest()

    def signing_key(self, subscription: str) -> str:
        """What the webhooks of a subscription are signed with; its owner is told it with the ticket."""
        made = hmac.new(self._secret, f"webhook\0{subscription}".encode(), hashlib.sha256)
        return f"hgw_{made.hexdigest()}"

    @staticmethod
    def fresh() -> str:
        return f"hgt_{secrets.token_urlsafe(32)}"

    def proven(self, subscription: str, given: str | None, now: float) -> Ticket | None:
        """The ticket's row, if the proof is right and the subscription lives."""
        found = self.find(subscription)
        # Always one hash and one comparison, with something of the same length.
        right = hmac.compare_digest(self.hash(subscription, given or ""), found.hash if found else "0" * 64)
        if found is None or not right or found.ended is not None or found.expires <= now:
            return None
        return found

    # -- rows

    def put(self, tickets: Iterable[Ticket]) -> None:
        self._database.many(
            f"INSERT INTO tickets ({_COLUMNS}) VALUES ({', '.join('?' * 10)})",  # noqa: S608 - a constant of this module
            [
                (t.subscription, t.hash, t.owner, t.name, orjson.dumps(t.delivery).decode(), t.state, t.created, t.expires,
                 t.ended, t.acked)
                for t in tickets
            ],
        )  # fmt: skip

    def find(self, subscription: str) -> Ticket | None:
        found = self._select("WHERE subscription = ?", (subscription,))
        return found[0] if found else None

    def of_owner(self, owner: str, after: str = "", most: int = 100) -> list[Ticket]:
        """Those that live, in the order of their ids, page by page."""
        return self._select(
            "WHERE owner = ? AND subscription > ? AND ended IS NULL ORDER BY subscription LIMIT ?", (owner, after, most)
        )

    def expired(self, now: float, most: int = 1000) -> list[str]:
        sql = "SELECT subscription FROM tickets WHERE expires <= ? AND ended IS NULL ORDER BY expires LIMIT ?"
        return [name for (name,) in self._database.rows(sql, (now, most))]

    def renew(self, subscription: str, expires: float) -> None:
        self._database.execute("UPDATE tickets SET expires = ? WHERE subscription = ?", (expires, subscription))

    def state(self, subscription: str, state: str) -> None:
        self._database.execute("UPDATE tickets SET state = ? WHERE subscription = ?", (state, subscription))

    def end(self, subscriptions: Sequence[str], state: str, now: float) -> None:
        self._database.many(
            "UPDATE tickets SET ended = ?, state = ? WHERE subscription = ?", [(now, state, s) for s in subscriptions]
        )

    def delete(self, subscriptions: Sequence[str]) -> None:
        self._database.many("DELETE FROM tickets WHERE subscription = ?", [(s,) for s in subscriptions])

    def acknowledge(self, subscription: str, seq: int) -> None:
        self._database.execute(
            "UPDATE tickets SET acked = ? WHERE subscription = ? AND acked < ?", (seq, subscription, seq)
        )

    def purge(self, before: float) -> int:
        return self._database.execute("DELETE FROM tickets WHERE ended < ?", (before,))

    def count(self) -> int:
        return int(self._database.value("SELECT count(*) FROM tickets WHERE ended IS NULL"))

    def _select(self, rest: str, values: Sequence[Any]) -> list[Ticket]:
        return [_ticket(row) for row in self._database.rows(f"SELECT {_COLUMNS} FROM tickets {rest}", values)]  # noqa: S608 - constants of this class


def _ticket(row: Row) -> Ticket:
    subscription, hash, owner, name, delivery, state, created, expires, ended, acked = row
    return Ticket(subscription, hash, owner, name, orjson.loads(delivery), state, created, expires, ended, acked)

"""Where the bytes of a bucket live: a head, pages of runs, and events that wait."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


class StateStorage(Protocol):
    """Where the bytes of a bucket live."""

    def head(self) -> bytes | None: ...
    def put_head(self, data: bytes) -> None: ...
    def page(self, key: str) -> bytes | None: ...
    def put_page(self, key: str, data: bytes | None) -> None: ...
    def waiting(self, key: str) -> bytes | None: ...
    def put_waiting(self, key: str, data: bytes | None) -> None: ...


@dataclass
class InMemory:
    """For one call: a batch, or a test. None takes a page away."""

    first: bytes | None = None
    pages: dict[str, bytes] = field(default_factory=dict)
    held: dict[str, bytes] = field(default_factory=dict)
    writes: int = 0

    def head(self) -> bytes | None:
        return self.first

    def put_head(self, data: bytes) -> None:
        self.first = data

    def page(self, key: str) -> bytes | None:
        return self.pages.get(key)

    def put_page(self, key: str, data: bytes | None) -> None:
        self.writes += 1
        _put(self.pages, key, data)

    def waiting(self, key: str) -> bytes | None:
        return self.held.get(key)

    def put_waiting(self, key: str, data: bytes | None) -> None:
        self.writes += 1
        _put(self.held, key, data)


def _put(where: dict[str, bytes], key: str, data: bytes | None) -> None:
    if data is None:
        where.pop(key, None)
    else:
        where[key] = data

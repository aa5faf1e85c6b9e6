"""Where the bytes of a bucket live, by name: a head, the book it runs, pages of runs, and events that wait."""

from __future__ import annotations

from typing import Protocol

HEAD, BOOK = "head", "page book"


def page_name(group: str, page: int) -> str:
    return f"page {group}/{page}"


def waiting_name(key: str) -> str:
    return f"waiting {key}"


class StateStorage(Protocol):
    def get(self, name: str, /) -> bytes | None: ...
    def put(self, name: str, data: bytes | None) -> None:
        """None takes it away."""
        ...


class InMemory(dict[str, bytes]):
    """For one call: a batch, or a test."""

    def put(self, name: str, data: bytes | None) -> None:
        if data is None:
            self.pop(name, None)
        else:
            self[name] = data

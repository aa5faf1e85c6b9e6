"""What decoding gives: columns of the events that can be used, and a reason for each of those that cannot."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.columns import Columns
from headgate.results import Problem
from headgate.schema import Path

if TYPE_CHECKING:
    from headgate.columns import Ints

SHOWN = 500
Needs = Iterable[Path] | None
"""The paths that must be decoded; None for all of the schema."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one event, one batch and one undivided document may weigh. An event beyond them is rejected, not cut."""

    field_bytes: int = 16 << 20
    event_bytes: int = 64 << 20
    batch_rows: int = 65_536
    batch_bytes: int = 128 << 20
    document_bytes: int = 512 << 20


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class Decoded:
    """A batch. `rows` has, for each row of `columns`, its number in the input, as `Problem.event` has it."""

    columns: Columns
    rejected: tuple[Problem, ...]
    rows: Ints


class Misfit(Exception):
    """A value, or a whole event, that cannot be used. Never leaves this package: it becomes a `Problem`."""

    def __init__(self, reason: str, code: str = "type") -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.shown: str | None = None
        """The event, where the batch no longer has it."""


def too_large(size: int, limits: Limits) -> Misfit:
    return Misfit(f"an event of {size:,} bytes is above the limit of {limits.event_bytes:,} (event_bytes)", "size")


class _Short(reprlib.Repr):
    """A repr whose cost does not grow with the value, and which never raises."""

    def __init__(self) -> None:
        super().__init__()
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = 20
        self.maxstring = self.maxother = 120
        self.maxlevel = 4

    def repr_int(self, x: int, level: int) -> str:
        # Python refuses to print integers beyond 4300 digits.
        return repr(x) if x.bit_length() < 400 else f"<an integer of {x.bit_length()} bits>"

    def repr_str(self, x: str, level: int) -> str:
        return super().repr_str(x[:200] if len(x) > 200 else x, level)

    def repr_bytes(self, x: bytes, level: int) -> str:
        text = repr(x[:100])
        return text if len(x) <= 100 else f"{text}..."


_short = _Short()


def show(value: object) -> str:
    """A value as it stands in a reason: recognisable, and short."""
    try:
        return _short.repr(value)[:SHOWN]
    except Exception:  # noqa: BLE001 - a user's __repr__ may do anything
        return f"<{type(value).__name__}>"


def shown_text(raw: bytes | str) -> str:
    """The beginning of an event that came as text."""
    text = raw[: 4 * SHOWN].decode("utf-8", "replace") if isinstance(raw, bytes) else raw[:SHOWN]
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= SHOWN and len(raw) <= 4 * SHOWN else text[: SHOWN - 3] + "..."

"""Instants as text: ISO 8601 to microseconds since 1970-01-01 UTC. A text without a zone is in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def instant(text: str) -> int:
    """Microseconds since the epoch; ValueError says what is wrong."""
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND


def instant_text(microseconds: int) -> str:
    """The ISO 8601 text of an instant, in UTC."""
    try:
        moment = _EPOCH + microseconds * _MICROSECOND
    except OverflowError:  # beyond the years that have four digits
        return f"{microseconds} us"
    return moment.isoformat().replace("+00:00", "Z")

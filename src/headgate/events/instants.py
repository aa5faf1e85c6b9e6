"""ISO 8601 text, dates and datetimes to microseconds since 1970 in UTC.

Text without a zone is UTC. Digits beyond the microsecond are cut off, which is the floor, as it is for nanoseconds
from Arrow and pandas. A leap second has no number of its own and is refused. Years are 0001 to 9999.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.events.outcome import Misfit, show

if TYPE_CHECKING:
    from headgate.columns import Array, Ints

_ISO = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[Tt ]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?)?"
    r"(?: ?(?:([Zz])|([+-])([0-9]{2})(?::?([0-9]{2}))?))?)?",
    re.ASCII,
)
_ZONED = r"[Tt ].*([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)$"
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - all arithmetic here is in UTC, without zones
_MICROSECOND = timedelta(microseconds=1)
_YEAR_ONE = -62_135_596_800_000_000
_DAY = 86_400_000_000


def from_iso(text: str) -> int:
    parts = _ISO.fullmatch(text)
    if parts is None:
        raise Misfit(f"{show(text)} is not a TIMESTAMP: write it like 2024-05-17T08:30:00Z")
    year, month, day, hour, minute, second, fraction, _, sign, ahead, ahead_minutes = parts.groups()
    if second == "60":
        raise Misfit(f"{show(text)} is not a TIMESTAMP: leap seconds are not supported")
    try:
        moment = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))  # noqa: DTZ001 - as above
    except ValueError as problem:
        raise Misfit(f"{show(text)} is not a TIMESTAMP: {problem}") from None
    offset = 0
    if sign:
        hours, minutes = int(ahead), int(ahead_minutes or 0)
        if hours > 23 or minutes > 59:
            raise Misfit(f"{show(text)} is not a TIMESTAMP: its zone offset is out of range")
        offset = (hours * 3600 + minutes * 60) * (1_000_000 if sign == "+" else -1_000_000)
    return (moment - _EPOCH) // _MICROSECOND + int((fraction or "")[:6].ljust(6, "0")) - offset


def from_date(value: date) -> int:
    """A date is its midnight; a datetime without a zone is UTC. A pandas Timestamp is a datetime."""
    if not isinstance(value, datetime):
        return (value.toordinal() - _EPOCH.toordinal()) * _DAY
    plain = datetime(value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond, UTC)
    ahead = value.utcoffset() or timedelta(0)
    return (plain - _EPOCH.replace(tzinfo=UTC)) // _MICROSECOND - ahead // _MICROSECOND


def iso_column(text: Array) -> Ints | None:
    """A whole column of text; None if some value needs a closer look. Nulls become 0."""
    zoned: Any = pc.match_substring_regex(text, _ZONED)
    null = pa.scalar(None, text.type)
    try:
        aware = pc.cast(pc.if_else(zoned, text, null), pa.timestamp("us", "UTC"))
        naive = pc.cast(pc.if_else(zoned, null, text), pa.timestamp("us"))
    except pa.ArrowInvalid:
        return None
    merged: Any = pc.coalesce(pc.cast(aware, pa.int64()), pc.cast(naive, pa.int64()))
    values: Ints = merged.fill_null(0).to_numpy(zero_copy_only=False)
    return values if not len(values) or values.min() >= _YEAR_ONE + _DAY else None


def scaled(values: Ints, factor: int) -> tuple[Ints, np.ndarray[Any, np.dtype[np.bool_]]]:
    """`values * factor`, and where that leaves the 64 bits."""
    top = np.iinfo(np.int64).max // factor
    over = (values > top) | (values < -top)
    return np.where(over, 0, values) * factor, over

"""The event as an operator sees it: a read-only mapping from attribute names to Python values.

`event["image"]` is a value, None where it is missing; `event["gps.lat"]` and `event["gps"]["lat"]` are the same. A
value is taken out of its column when it is asked for, so an operator that reads one attribute of forty pays for one.
Instants are aware datetimes here, because that is what foreign code works with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from headgate.schema import Path, format_path, parse_path

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


class Event(Mapping[str, Any]):
    """Reads `values` by path; `paths` are those that the operator may see."""

    __slots__ = ("_paths", "_prefix", "_read")

    def __init__(self, paths: frozenset[Path], read: Callable[[Path], Any], prefix: Path = ()) -> None:
        self._paths = paths
        self._read = read
        self._prefix = prefix

    def __getitem__(self, name: str) -> Any:
        path = (*self._prefix, name)
        if path not in self._paths:
            path = (*self._prefix, *parse_path(name))
        if path in self._paths:
            return self._read(path)
        if any(p[: len(path)] == path for p in self._paths):
            return Event(self._paths, self._read, path)
        shown = ", ".join(self) or "nothing"
        raise KeyError(f"the operator sees no attribute {name}; it sees {shown} (declare it with needs=)")

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        path = (*self._prefix, *parse_path(name))
        return any(p[: len(path)] == path for p in self._paths)

    def __iter__(self) -> Iterator[str]:
        depth = len(self._prefix)
        return iter(sorted(format_path(p[depth:]) for p in self._paths if p[:depth] == self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travels to a worker process as the values themselves."""
        depth = len(self._prefix)
        inside = {p[depth:]: self._read(p) for p in self._paths if p[:depth] == self._prefix}
        return (of_values, (inside,))


def of_values(values: Mapping[Path, Any]) -> Event:
    """An event from values that are at hand."""
    return Event(frozenset(values), values.get)

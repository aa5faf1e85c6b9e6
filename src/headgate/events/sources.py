"""Where bytes come from: a path, `-` for standard input, an open binary file, or an iterable of events."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headgate.errors import UsageError

Bytes = str | os.PathLike[str] | Iterable[bytes] | Any
CHUNK = 1 << 20
PAUSE = 0.05
"""Seconds without a byte after which a pipe is taken to pause."""


@contextmanager
def opened(source: Bytes) -> Iterator[Any]:
    """A binary file. A path that cannot be read is a UsageError that says why."""
    if isinstance(source, str) and source == "-":
        yield sys.stdin.buffer
    elif isinstance(source, str | os.PathLike):
        try:
            file = Path(source).open("rb")  # noqa: SIM115 - closed below; only the opening may fail
        except (OSError, ValueError) as problem:  # a NUL in a path is a ValueError
            why = problem.strerror if isinstance(problem, OSError) else problem
            raise UsageError(f"cannot read {os.fspath(source)}: {why}") from None
        with file:
            yield file
    elif hasattr(source, "read"):
        yield source
    else:
        raise UsageError(f"cannot read events from a {type(source).__name__}", "pass a path, '-' or a binary file")


def chunks(file: Any) -> Iterator[bytes]:
    """What a file holds, as it comes: a pipe is not waited for until a chunk is full.

    When nothing has come from a pipe for a moment, an empty chunk says so: whoever gathers may pass on what there is.
    """
    read = getattr(file, "read1", file.read)
    live = _live(file)
    while chunk := read(CHUNK):
        yield chunk.encode("utf-8", "surrogatepass") if isinstance(chunk, str) else bytes(chunk)
        if live is not None and not select.select([live], [], [], PAUSE)[0]:
            yield b""


def _live(file: Any) -> int | None:
    """The number of a file whose end is not known yet: a pipe, a socket or a terminal."""
    try:
        number = int(file.fileno())
        mode = os.fstat(number).st_mode
    except (AttributeError, OSError, ValueError):
        return None
    return number if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(number) else None


def name_of(source: Any) -> str:
    return os.fspath(source) if isinstance(source, str | os.PathLike) else str(getattr(source, "name", "the input"))

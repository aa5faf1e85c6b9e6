"""A stream of bytes cut into lines, and lines into batches, without ever holding a line beyond the limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from headgate.events.outcome import SHOWN, Limits


@dataclass(slots=True)
class Lines:
    """A batch of lines that are not blank. `at` has their line numbers, from 1; `too_long` the size of those cut off."""

    lines: list[bytes] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    too_long: dict[int, int] = field(default_factory=dict)
    size: int = 0


def batches(chunks: Iterable[bytes], limits: Limits) -> Iterator[Lines]:
    """Batches of at most `batch_rows` lines, and hardly more than `batch_bytes` bytes; what there is, at a pause."""
    batch, number = Lines(), 0
    for cut in _cut(chunks, limits.event_bytes):
        if cut is None:
            if batch.lines:
                yield batch
                batch = Lines()
            continue
        lines, long = cut
        for start in range(0, len(lines), limits.batch_rows):
            part = lines[start : start + limits.batch_rows]
            room = limits.batch_rows - len(batch.lines)
            for piece in (part[:room], part[room:]):
                if not piece:
                    continue
                _add(batch, piece, number)
                number += len(piece)
                if len(batch.lines) >= limits.batch_rows:
                    yield batch
                    batch = Lines()
        if long is not None:
            number += 1
            batch.too_long[len(batch.lines)] = long[1]
            batch.lines.append(long[0])
            batch.at.append(number)
        if batch.size >= limits.batch_bytes or len(batch.lines) >= limits.batch_rows:
            yield batch
            batch = Lines()
    if batch.lines:
        yield batch


def _add(batch: Lines, piece: list[bytes], before: int) -> None:
    full = [line for line in piece if line and not line.isspace()]
    if len(full) == len(piece):
        batch.at.extend(range(before + 1, before + 1 + len(piece)))
    else:
        batch.at.extend(before + 1 + i for i, line in enumerate(piece) if line and not line.isspace())
    batch.lines.extend(full)
    batch.size += sum(map(len, full))


def _cut(chunks: Iterable[bytes], limit: int) -> Iterator[tuple[list[bytes], tuple[bytes, int] | None] | None]:
    """Runs of lines, each run perhaps followed by one line that is too long: its beginning and its size.

    None for a pause, which is an empty chunk."""
    held: list[bytes] = []
    size, discarded = 0, 0
    for chunk in chunks:
        if not chunk:
            yield None
            continue
        end = chunk.rfind(b"\n")
        if discarded:
            stop = chunk.find(b"\n")
            discarded += len(chunk) if stop < 0 else stop
            if stop < 0:
                continue
            yield [], (held[0], discarded)
            held, size, discarded = [], 0, 0
            chunk, end = chunk[stop + 1 :], end - stop - 1
        if end >= 0:
            held.append(chunk[:end])
            yield from _within(b"".join(held).split(b"\n"), limit)
            held, size = [chunk[end + 1 :]], len(chunk) - end - 1
        else:
            held.append(chunk)
            size += len(chunk)
        if size > limit:
            held, discarded = [b"".join(held)[: 4 * SHOWN]], size
    if discarded:
        yield [], (held[0], discarded)
    elif size:
        yield from _within([b"".join(held)], limit)


def _within(lines: list[bytes], limit: int) -> Iterator[tuple[list[bytes], tuple[bytes, int] | None]]:
    if max(map(len, lines)) <= limit:
        yield lines, None
        return
    start = 0
    for i, line in enumerate(lines):
        if len(line) > limit:
            yield lines[start:i], (line[: 4 * SHOWN], len(line))
            start = i + 1
    yield lines[start:], None

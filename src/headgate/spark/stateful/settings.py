"""What the user says of time and buckets, checked against the book."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headgate.errors import UsageError
from headgate.language.catalogue import nearest
from headgate.plan.sequence_book import SequenceBook
from headgate.runtime.stateful.watermark import Timing, milliseconds, ticks
from headgate.schema import Kind
from headgate.spark.frame import EVERY

BUCKETS = 16
"""More buckets spread better over many workers; each costs a little in every batch."""
MOST_BUCKETS = 4096
Delay = str | int | Mapping[str, str | int]


def timing_of(
    book: SequenceBook,
    streams: Iterable[str],
    watermark: Delay,
    idle: str | float | None = None,
    ahead: str | int | None = None,
) -> Timing:
    """The rules of time for a query over these streams."""
    given = tuple(streams)
    every = EVERY in given
    if every:
        # A stream that no sequence reads must not hold time back.
        given = tuple(book.timed)
    if not 1 <= book.buckets <= MOST_BUCKETS:
        raise UsageError(f"buckets = {book.buckets}: choose 1 to {MOST_BUCKETS}")
    if not every:
        # Of a book that others write too, what cannot run on Spark waits, and keeps nobody's sequences from running.
        _check_streams(book, given)
    timed = [s for s in given if s in book.streams and book.streams[s].time]
    counted = frozenset(s for s in timed if book.streams[s].time_kind is Kind.BIGINT)
    clocks = every or len(counted) < len(timed)
    limit = None if ahead is None else ticks(ahead, clocks, "ahead")
    pause = milliseconds(idle, "idle")
    if every:
        if isinstance(watermark, Mapping):
            raise UsageError("a query over every stream has one watermark", "say one delay for all")
        counts = watermark if isinstance(watermark, int) else 0
        return Timing({}, pause, clocks, limit, ticks(watermark, clocks, "watermark"), counts).over(book.timed)
    if isinstance(watermark, Mapping):
        for stream in watermark:
            if stream not in given:
                raise UsageError(f"watermark: there is no stream {stream}", nearest(stream, given, ""))
    delays = {}
    for stream in timed:
        delay = watermark.get(stream, 0) if isinstance(watermark, Mapping) else watermark
        delays[stream] = ticks(delay, stream not in counted, "watermark")
    return Timing(delays, pause, clocks, limit, ticks=counted)


def _check_streams(book: SequenceBook, given: tuple[str, ...]) -> None:
    reads = book.bases
    untimed = sorted(s for s in reads if s not in book.streams or not book.streams[s].time)
    if untimed:
        raise UsageError(
            f"sequences read {', '.join(untimed)}, which has no TIME: on Spark rows have no other order",
            "declare the stream with TIME",
        )
    lacking = sorted(reads - set(given))
    if lacking:
        raise UsageError(
            f"sequences read {', '.join(lacking)}, and there is no frame for it", "pass {stream: frame} for all of them"
        )

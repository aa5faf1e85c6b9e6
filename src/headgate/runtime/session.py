"""A session: batches fed one after the other. Row numbers, and the state of sequences, carry on between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from headgate.errors import EventError, UsageError
from headgate.events import Decoded
from headgate.results import Problem, Problems, problem_table
from headgate.runtime import stateless
from headgate.runtime.book import CompiledBook
from headgate.runtime.decoding import decode_events, incomplete, reads
from headgate.runtime.rows import SegmentMatches, SequenceMatches, bitmaps, counts_table, pairs, table
from headgate.runtime.sequences import Sequences

OUTPUTS = ("matches", "pairs", "counts", "bitmaps")


class Session:
    """Not safe for several threads; a plan may have any number of sessions."""

    def __init__(self, book: CompiledBook) -> None:
        self._book = book
        self._rows: dict[str, int] = {}
        self._earlier: list[Problem] = []
        """The problems of earlier batches."""
        self._problems = Problems()
        self._sequences: Sequences | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def feed(self, events: Any, until: int | None = None) -> pa.Table:
        """The matches of one batch. What could not be decided is in `errors()`.

        Sequences take the epochs before `until`, by default all of the batch; what is later waits for the next call.
        """
        parts = self._decode(events)
        return table(self._find(parts), self._move(parts, until), self._book.labels)

    def stats(self) -> dict[str, Any]:
        """The state of the sequences: the last closed epoch, and the runs that wait, in all and for each subscription."""
        if self._sequences is None:
            return {"closed": None, "levels": [], "runs": {}}
        session = self._sequences.session
        return {**session.stats(), "runs": session.runs()}

    def errors(self) -> pa.Table:
        """Every problem so far: events that could not be used, and subscriptions that could not be decided on one."""
        return problem_table(self.problems())

    def problems(self) -> list[Problem]:
        """As `errors`, each as it is."""
        return [*self._earlier, *self._problems.listed()]

    def whole(self, events: Any, output: str, errors: str) -> Any:
        """All of one input at once: what `Plan.match` does."""
        if output not in OUTPUTS:
            raise UsageError(f"output = {output!r} is unknown", f"choose one of {', '.join(OUTPUTS)}")
        if errors not in ("raise", "collect"):
            raise UsageError(f"errors = {errors!r} is unknown", "choose raise or collect")
        parts = self._decode(events)
        if errors == "raise":
            raise_first(self._problems)
        result: Any
        if output == "counts":
            result = self._counts(parts)
        else:
            found, moved = self._find(parts), self._move(parts, listing=output != "bitmaps")
            if output == "matches":
                result = table(found, moved, self._book.labels)
            else:
                result = pairs(found, moved) if output == "pairs" else bitmaps(found, moved)
        if errors == "collect":
            return result, self.errors()
        raise_first(self._problems)
        return result

    def decode(self, stream: str, events: Any) -> Decoded:
        """Only the attributes that the book reads."""
        if stream not in self._book.schemas:
            known = ", ".join(self._book.schemas) or "none"
            raise UsageError(f"there is no stream {stream}", f"the book has: {known}")
        schema = self._book.schemas[stream]
        part = decode_events(events, schema, reads(self._book, stream), self._rows.get(stream, 0))
        self._rows[stream] = self._rows.get(stream, 0) + len(part.rows) + len(part.rejected)
        self._problems.add(part.rejected)
        if stream in self._book.total_streams:
            self._problems.add(incomplete(part, schema))
        return part

    def _decode(self, events: Any) -> list[Decoded]:
        self._earlier += self._problems.listed()
        self._problems = Problems()
        if isinstance(events, Mapping) and not hasattr(events, "column_names"):
            return [self.decode(stream, rows) for stream, rows in events.items()]
        return [self.decode(only_stream(self._book), events)]

    def _find(self, parts: Sequence[Decoded]) -> list[SegmentMatches]:
        return [f for part in parts for f in stateless.find(self._book, part, self._problems)]

    def _counts(self, parts: Sequence[Decoded]) -> pa.Table:
        counts: Counter[str] = Counter()
        for part in parts:
            counts.update(stateless.count(self._book, part, self._problems))
        moved = self._move(parts, listing=False)
        if moved is not None:
            counts.update(moved.matches.name(i) for i in range(len(moved.matches)))
        return counts_table(counts)

    def _move(
        self, parts: Sequence[Decoded], until: int | None = None, *, listing: bool = True
    ) -> SequenceMatches | None:
        """Sequences: the epochs of all streams together."""
        index = self._book.sequences
        if index is None:
            return None
        if self._sequences is None:
            self._sequences = Sequences(index)
        fed = self._sequences.feed([p.columns for p in parts], until, listing=listing)
        self._problems.add(fed.problems)
        return fed.found


def only_stream(book: CompiledBook) -> str:
    """The stream of events that come without its name."""
    streams = book.streams or tuple(book.schemas)
    if len(streams) > 1:
        raise UsageError("the book has several streams", f"pass {{stream: events}} for {', '.join(streams)}")
    if not streams:
        raise UsageError("the book is empty", "add a subscription first")
    return streams[0]


def raise_first(problems: Problems) -> None:
    """Raises an EventError if there is a problem."""
    listed = problems.listed()
    if listed:
        more = f" (and {len(listed) - 1} more)" if len(listed) > 1 else ""
        raise EventError(
            f"event {listed[0].event} of stream {listed[0].stream}: {listed[0].said}{more}",
            'errors="collect" matches the others',
        )

"""Merging in the background: when deltas and tombstones have grown, the whole book becomes one segment again.

The merge works on a snapshot while the book goes on changing. When it is done, the next `compile` takes the new segment
for all that the snapshot held, and lays over it only what has changed since, so no call ever waits for a merge.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Thread

from headgate.language.catalogue import Catalogue
from headgate.plan.compile_context import CompileContext
from headgate.plan.compiled import Plan
from headgate.plan.segment import Entry, Segment, compile_segment


class Merge:
    """One merge, from its snapshot on. `changed` gathers what the book changes meanwhile."""

    def __init__(self, entries: Mapping[str, Entry], catalogue: Catalogue, *, cover: bool = False) -> None:
        self._cover = cover
        self.changed: dict[str, None] = {}
        self._entries = dict(entries)
        self._catalogue = catalogue.copy()
        self._segment: Segment | None = None
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._run, name="headgate-merge", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._segment = compile_segment(self._entries, self._catalogue.streams, cover=self._cover)
        except BaseException as e:  # noqa: BLE001 - it is raised where the plan is made, not lost in a thread
            self._failure = e

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def wait(self) -> None:
        self._thread.join()

    def plan(
        self, entries: Mapping[str, Entry], catalogue: Catalogue, context: CompileContext, *, sequences: bool
    ) -> Plan:
        """The merged plan with all that has changed since the snapshot."""
        if self._failure is not None:
            raise self._failure
        assert self._segment is not None
        merged = Plan(self._catalogue, (self._segment,), (None,), context)
        return Plan.of(entries, catalogue, context, merged, list(self.changed), cover=self._cover, sequences=sequences)

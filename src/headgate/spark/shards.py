"""A book as several plans: a large one cut into shards, one that changes kept beside what stays, one of the sequences.

Shipping works by whole files, so a change of one subscription must not make a new file of a million. `Shards` keeps the
large plans as they are, compiles what changed since into one small plan, and lists the names that no longer count in
the large ones. When the small part has `grown` to a tenth of the book, it is time to compile everything anew. Sequences
need state, and what others PUBLISH: they are a plan of their own, which the stateful step runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from headgate import Plan, Subscriptions, UsageError
from headgate.plan import Entry
from headgate.plan.segment import Family, compile_segment

SHARD_SIZE = 500_000
LEAST_RECENT = 1000
GROWN = 0.1


def parted(subs: Subscriptions | Plan | Sequence[Plan], size: int = SHARD_SIZE) -> tuple[list[Plan], Plan | None]:
    """The plans of a book without its sequences, each of at most `size` subscriptions; and the plan of its sequences."""
    if isinstance(subs, Subscriptions):
        return _cut(subs, size)
    given = [subs] if isinstance(subs, Plan) else list(subs) if isinstance(subs, list | tuple) else []
    if not given or not all(isinstance(p, Plan) for p in given):
        raise UsageError(f"cannot match with a {type(subs).__name__}", "pass a book of Subscriptions, or a Plan")
    if all(p.sequences is None for p in given):
        return given, None
    entries = {n: found[0].entry(found[1]) for p in given for n in p.names() if (found := p.find(n)) is not None}
    last = given[-1]
    plain, stateful = (
        {n: e for n, e in entries.items() if (e.family is Family.SEQUENCE) == wanted} for wanted in (False, True)
    )
    return [Plan.of(plain, last.catalogue, last.context, None, [])], _uncompiled(stateful, last)


def _uncompiled(entries: Mapping[str, Entry], beside: Plan) -> Plan:
    """A plan of sequences that compiles nothing: the stateful step does that, group by group."""
    return Plan(beside.catalogue, (compile_segment(entries, beside.catalogue.streams),), (None,), beside.context)


def _cut(subs: Subscriptions, size: int) -> tuple[list[Plan], Plan | None]:
    if size < 1:
        raise UsageError(f"a shard of {size} subscriptions makes no sense")
    sequences = [name for name in subs if subs[name].family is Family.SEQUENCE]
    if not sequences and len(subs) <= size:
        return [subs.compile()], None
    apart = set(sequences)
    names = (name for name in subs if name not in apart)
    made = []
    while part := list(islice(names, size)):
        made.append(subs.part(part))
    made = made or [subs.part([])]
    return made, _uncompiled({n: subs[n] for n in sequences}, made[0]) if sequences else None


@dataclass(frozen=True)
class Parts:
    """The plans of a book at one moment. A name in `gone` counts in the last plan alone."""

    plans: tuple[Plan, ...]
    gone: tuple[str, ...]
    sequences: Plan | None = None


class Shards:
    """The plans of a book that changes. The book is the caller's: alter it, say what changed, ask for the parts."""

    def __init__(self, book: Subscriptions, size: int = SHARD_SIZE, *, stateless: bool = True) -> None:
        self._book = book
        self._stateless = stateless
        """Whether there are plans of what needs no state."""
        if stateless:
            self._base, self._sequences = parted(book, size)
        else:
            self._base, self._sequences = [], self._stateful_plan()
        self._base_size = len(book)
        self._changed: dict[str, None] = {}

    def changed(self, names: Iterable[str]) -> None:
        """These were added to the book, removed from it or altered."""
        changed = dict.fromkeys(names)
        if self._stateless:
            self._changed.update(changed)
        had = self._sequences is not None and any(self._sequences.find(n) is not None for n in changed)
        if had or any(self._stateful(n) for n in changed):
            self._sequences = self._stateful_plan()

    def _stateful_plan(self) -> Plan | None:
        stateful = {n: self._book[n] for n in self._book if self._stateful(n)}
        return _uncompiled(stateful, self._book.part([])) if stateful else None

    @property
    def grown(self) -> bool:
        """Whether so much has changed that it is time to start anew."""
        return len(self._changed) > max(LEAST_RECENT, GROWN * self._base_size)

    def parts(self) -> Parts:
        """The plans of the book as it is now."""
        if not self._stateless:
            return Parts((self._book.part([]),), (), self._sequences)
        if not self._changed:
            return Parts(tuple(self._base), (), self._sequences)
        alive = [name for name in self._changed if name in self._book and not self._stateful(name)]
        gone = tuple(n for n in self._changed if any(plan.find(n) is not None for plan in self._base))
        return Parts((*self._base, self._book.part(alive)), gone, self._sequences)

    def _stateful(self, name: str) -> bool:
        return name in self._book and self._book[name].family is Family.SEQUENCE

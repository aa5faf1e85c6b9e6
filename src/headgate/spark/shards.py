"""A book as several plans: a large one cut into shards, and one that changes kept beside what stays.

Shipping works by whole files, so a change of one subscription must not make a new file of a million. `Shards` keeps the
large plans as they are, compiles what changed since into one small plan, and lists the names that no longer count in
the large ones. When the small part has `grown` to a tenth of the book, it is time to compile everything anew.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from headgate import Plan, Subscriptions, UsageError
from headgate.language.tokens import tokenise

log = logging.getLogger("headgate.spark")

SHARD_SIZE = 500_000
LEAST_RECENT = 1000
GROWN = 0.1


def shards(subs: Subscriptions | Plan | Sequence[Plan], size: int = SHARD_SIZE) -> list[Plan]:
    """The plans of a book, each of at most `size` subscriptions; of a plan, itself."""
    made = [subs] if isinstance(subs, Plan) else _cut(subs, size)
    for plan in made:
        if plan.sequences is not None:
            raise UsageError("the book has sequences, which need state", "match the filters, or match in process")
    return made


def _cut(subs: Subscriptions | Sequence[Plan], size: int) -> list[Plan]:
    if not isinstance(subs, Subscriptions):
        given = list(subs) if isinstance(subs, list | tuple) else []
        if not given or not all(isinstance(p, Plan) for p in given):
            raise UsageError(f"cannot match with a {type(subs).__name__}", "pass a book of Subscriptions, or a Plan")
        return given
    if size < 1:
        raise UsageError(f"a shard of {size} subscriptions makes no sense")
    if len(subs) <= size:
        return [subs.compile()]
    names = iter(subs)
    made = []
    while part := list(islice(names, size)):
        made.append(subs.part(part))
    return made


@dataclass(frozen=True)
class Parts:
    """The plans of a book at one moment. A name in `gone` counts in the last plan alone."""

    plans: tuple[Plan, ...]
    gone: tuple[str, ...]


class Shards:
    """The plans of a book that changes. The book is the caller's: alter it, say what changed, ask for the parts."""

    def __init__(self, book: Subscriptions, size: int = SHARD_SIZE) -> None:
        self._book = book
        self._base = shards(book, size)
        self._base_size = len(book)
        self._changed: dict[str, None] = {}

    def changed(self, names: Iterable[str]) -> None:
        """These were added to the book, removed from it or altered."""
        self._changed.update(dict.fromkeys(names))

    @property
    def grown(self) -> bool:
        """Whether so much has changed that it is time to start anew."""
        return len(self._changed) > max(LEAST_RECENT, GROWN * self._base_size)

    def parts(self) -> Parts:
        """The plans of the book as it is now."""
        if not self._changed:
            return Parts(tuple(self._base), ())
        alive = [name for name in self._changed if name in self._book and not self._stateful(name)]
        gone = tuple(n for n in self._changed if any(plan.find(n) is not None for plan in self._base))
        return Parts((*self._base, self._book.part(alive)), gone)

    def _stateful(self, name: str) -> bool:
        """A sequence that came while the query ran is left out, and said so: the others go on."""
        if tokenise(self._book[name].text).kinds[0] != "SELECT":
            return False
        log.warning("subscription %s is a sequence, which needs state: it is left out of this query", name)
        return True

"""The cover set: which subscriptions are active, which passive, and who covers whom.

A newcomer that the active ones cover together becomes passive and remembers its coverers; all others are active. A
passive one needs to be tested only when a coverer matched, and need not be told to a neighbour who knows the active
ones. When a coverer leaves, those it helped to cover are decided again, and promoted if need be; so no match is ever
lost. What could not be decided in time stays active.

With `demote`, actives that a newcomer covers become passive in turn. Whoever they helped to cover is then covered by
those who cover them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from headgate.covering import kernels
from headgate.covering.boxes import Union
from headgate.covering.cover import WIDE, Cover, answer
from headgate.covering.decision import Procedure, decide
from headgate.covering.grid import Grid, Rows
from headgate.covering.parse_boxes import Source, checked, schema_of, union_or_none
from headgate.errors import DuplicateName, UnknownName, UsageError
from headgate.schema import Schema

Id = Hashable
BUDGET = Procedure(budget=0.02)
DEMOTIONS = ("none", "pairwise", "group")


@dataclass(frozen=True, slots=True)
class Change:
    """What an add or a remove did. `promoted` became active, `demoted` passive, besides the subscription itself."""

    cover: Cover | None = None
    promoted: tuple[Id, ...] = ()
    demoted: tuple[Id, ...] = ()


@dataclass
class _Member:
    union: Union | None
    """None for a filter that is too wide for boxes: it is active and covers nothing."""
    rows: tuple[int, ...] = ()
    """Its rows while it is active."""
    by: frozenset[Id] = frozenset()
    """Its coverers while it is passive."""
    active: bool = True
    covers: dict[Id, None] = field(default_factory=dict)
    """Whom it helps to cover."""


class CoverSet:
    """Active and passive subscriptions over one schema. Not safe for use by several threads at once."""

    def __init__(
        self,
        schema: Mapping[str, str] | Schema | None = None,
        procedure: Procedure = BUDGET,
        *,
        demote: str = "none",
    ) -> None:
        if demote not in DEMOTIONS:
            raise UsageError(f"demote = {demote!r} has no meaning", f"it is one of {', '.join(DEMOTIONS)}")
        self._schema = schema_of(schema)
        self._procedure = procedure
        self._demote = demote
        self._members: dict[Id, _Member] = {}
        self._grid = Grid()
        self._rows = Rows(self._grid)
        self._owners: list[Id] = []
        self._alive = np.zeros(64, np.bool_)
        self.unknown = 0
        """How many decisions ran out of time or met something opaque."""

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, name: Id) -> bool:
        return name in self._members

    @property
    def active(self) -> Iterator[Id]:
        return (name for name, member in self._members.items() if member.active)

    @property
    def gates(self) -> dict[Id, frozenset[Id]]:
        """The passive subscriptions, each with the active ones of which one must match before it can."""
        return {name: member.by for name, member in self._members.items() if not member.active}

    def passive(self, name: Id) -> bool:
        return not self._members[name].active

    def union(self, name: Id) -> Union | None:
        return self._members[name].union

    # -- changes

    def add(self, name: Id, text: str, missing: str = "null") -> Change:
        """Add a subscription by its text."""
        (body,), self._schema = checked([Source(text, missing)], self._schema)
        return self.add_union(name, union_or_none(body, missing, self._schema))

    def add_union(self, name: Id, union: Union | None, *, decided: bool = False) -> Change:
        """Add a subscription by its boxes; None for one that is too wide to be boxes. `decided`: it is to be active."""
        if name in self._members:
            raise DuplicateName(f"there is a subscription {name} already", "remove it first")
        member = _Member(union)
        self._members[name] = member
        if decided:
            self._activate(name, member)
            return Change()
        found = self._settle(name, member)
        demoted = self._demoted(member) if member.active and self._demote != "none" else ()
        return Change(found, (), demoted)

    def remove(self, name: Id) -> Change:
        """Remove a subscription; those that only it covered are promoted."""
        member = self._members.pop(name, None)
        if member is None:
            raise UnknownName(f"there is no subscription {name}")
        if not member.active:
            self._forget(name, member)
            return Change()
        self._deactivate(member)
        promoted = []
        for other in list(member.covers):
            passive = self._members[other]
            self._forget(other, passive)
            self._settle(other, passive)
            if passive.active:
                promoted.append(other)
        return Change(None, tuple(promoted))

    def matching(self, holds: Callable[[Id], bool | None]) -> Iterator[Id]:
        """The subscriptions that match an event, asking `holds` of the active ones and behind open gates only.

        None from `holds` says that the test failed; whoever such a subscription covers is tested itself.
        """
        open_: dict[Id, None] = {}
        for name, member in self._members.items():
            if member.active:
                answer = holds(name)
                if answer is not False:
                    open_.update(member.covers)
                if answer:
                    yield name
        yield from (name for name in open_ if holds(name))

    # -- inside

    def _decide(self, union: Union | None, without: tuple[int, ...] = ()) -> Cover:
        if union is None:
            return WIDE
        among = np.flatnonzero(self._alive[: self._rows.count])
        if without:
            among = np.setdiff1d(among, np.array(without, np.int64), assume_unique=True)
        return answer(decide(self._rows, among, union, self._procedure), self._grid, self._owners)

    def _settle(self, name: Id, member: _Member) -> Cover:
        """Make a member passive if the active ones cover it, else active."""
        found = self._decide(member.union)
        if found.covered:
            self._passivate(name, member, frozenset(found.by))
        else:
            self.unknown += found.covered is None
            self._activate(name, member)
        return found

    def _activate(self, name: Id, member: _Member) -> None:
        member.active = True
        member.by = frozenset()
        rows = []
        for box in member.union or ():
            row = self._rows.append(self._grid.pieces(box))
            self._owners.append(name)
            if row >= self._alive.size:
                self._alive = np.concatenate([self._alive, np.zeros_like(self._alive)])
            self._alive[row] = True
            rows.append(row)
        member.rows = tuple(rows)

    def _deactivate(self, member: _Member) -> None:
        self._alive[list(member.rows)] = False
        member.rows = ()
        if self._rows.count > 64 and 2 * np.count_nonzero(self._alive[: self._rows.count]) < self._rows.count:
            self._compact()

    def _compact(self) -> None:
        kept = np.flatnonzero(self._alive[: self._rows.count])
        self._rows.keep(kept)
        self._owners = [self._owners[row] for row in kept]
        self._alive = np.zeros(max(64, 2 * len(kept)), np.bool_)
        self._alive[: len(kept)] = True
        number = {int(old): new for new, old in enumerate(kept)}
        for member in self._members.values():
            member.rows = tuple(number[row] for row in member.rows)

    def _passivate(self, name: Id, member: _Member, by: frozenset[Id]) -> None:
        member.active = False
        member.by = by
        for coverer in by:
            self._members[coverer].covers[name] = None

    def _forget(self, name: Id, member: _Member) -> None:
        """Take a passive member off its coverers' lists."""
        for coverer in member.by:
            if coverer in self._members:
                del self._members[coverer].covers[name]

    def _demoted(self, newcomer: _Member) -> tuple[Id, ...]:
        """Make those passive that the newcomer, alone or with others, covers."""
        demoted = []
        for other in self._touched(newcomer):
            member = self._members[other]
            found = self._decide(member.union, member.rows)
            if not found.covered:
                continue
            heirs = frozenset(found.by)
            self._deactivate(member)
            covered, member.covers = member.covers, {}
            self._passivate(other, member, heirs)
            for passive in covered:
                inner = self._members[passive]
                inner.by = (inner.by - {other}) | heirs
                for heir in heirs:
                    self._members[heir].covers[passive] = None
            demoted.append(other)
        return tuple(demoted)

    def _touched(self, newcomer: _Member) -> list[Id]:
        """The actives worth a look: those with a box inside the newcomer's, or with `group` those that meet it."""
        among = np.flatnonzero(self._alive[: self._rows.count])
        test = kernels.inside if self._demote == "pairwise" else kernels.meeting
        rows = [row for own in newcomer.rows for row in test(*self._rows.arrays(), among, own)]
        names = dict.fromkeys(self._owners[row] for row in rows)
        return [name for name in names if self._members[name] is not newcomer]

"""Schedulers: in which order the predicates of an event are asked. There are four of them.

`naive` is the paper's baseline: subscription by subscription, with memory. `sequential` (algorithm 1) goes through all
predicates of an undecided subscription and is never worse than d times the optimum, d being the widest subscription.
`suborder` (section 4.2) takes the subscriptions in the order of their linked chains. `greedy`, the default, asks what
is expected to decide most for its cost, after every answer anew; `guarded`, it keeps the guarantee of `sequential` by
marking subscriptions as it goes and refusing what the marks do not pay for; `paired`, it expects of a predicate what
others have shown on this event.

All give the same matches; they differ in how many calls that takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from headgate.errors import UsageError
from headgate.operators.correlation import Links
from headgate.operators.kernels import (
    ASKED,
    CHANCE,
    CHOOSER,
    COST,
    CURRENT,
    GUARDED,
    JOINS,
    PENDING,
    READY,
    Floats,
    Residual,
    gather,
    unfold,
)
from headgate.operators.program import Program
from headgate.operators.ranking import net_savings
from headgate.operators.schedule import kernels

Packed = tuple[NDArray[np.int8], NDArray[np.int32], NDArray[np.int8], NDArray[np.int32], Floats, NDArray[np.int64]]
"""A residual as the kernels take it: the first two arrays never change, the others do as the event proceeds."""
NOTHING = np.zeros(0)
Look = Callable[[NDArray[np.int32]], NDArray[np.int8]]
"""Given the gates of some joins: for each TRUE, FALSE, ERROR, or PENDING while rows are still to come."""


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Which of the compiled choosers runs, and in which order it meets the subscriptions."""

    name: str
    chooser: int
    guarded: bool = False
    paired: bool = False
    arrange: Callable[[Program, Floats, Floats], NDArray[np.int64] | None] = lambda program, chance, cost: None
    """The rank of every slot by the chances and costs of predicates, if the order of subscriptions matters."""


def greedy(guarded: bool = True, paired: bool = True) -> Scheduler:
    return Scheduler("greedy", kernels.GREEDY, guarded, paired)


def suborder(ranking: Callable[[Program, Floats, Floats], NDArray[np.int64]] = net_savings) -> Scheduler:
    """In the order of a ranking: net savings, or another."""
    return Scheduler("suborder", kernels.SUBORDER, arrange=ranking)


SCHEDULERS: dict[str, Scheduler] = {
    "naive": Scheduler("naive", kernels.NAIVE),
    "sequential": Scheduler("sequential", kernels.SEQUENTIAL),
    "suborder": suborder(),
    "greedy": greedy(),
}


def scheduler(name: str) -> Scheduler:
    if name not in SCHEDULERS:
        raise UsageError(f"there is no scheduler {name}", f"the schedulers are {', '.join(SCHEDULERS)}")
    return SCHEDULERS[name]


class Residuals:
    """Makes the residual of one event after another from one program.

    Where nothing is decided early, as in a book of operators alone, all events begin with the same residual; it is made
    once and copied, the parts that never change not even that.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._where = np.full(program.predicates, -1, np.int32)
        self._pristine: tuple[NDArray[np.int64], Packed] | None = None

    def of(self, slots: NDArray[np.int64], early: NDArray[np.bool_], chance: Floats, cost: Floats) -> Packed:
        """The residual of an event for which these slots are open; `early` is the truth of the early parts."""
        if len(early) == 0 and self._pristine is not None and np.array_equal(self._pristine[0], slots):
            return self._copied(self._pristine[1], chance, cost)
        p = self._program
        made: Packed = gather(p.nodes, p.start, p.weight, p.shares, slots, early, chance, cost, self._where)
        if len(early) == 0:
            self._pristine = slots, made
            return self._copied(made, chance, cost)
        return made

    def _copied(self, pristine: Packed, chance: Floats, cost: Floats) -> Packed:
        shape, links, value, ints, floats, counters = pristine
        copy = (shape, links, value.copy(), ints.copy(), floats.copy(), counters.copy())
        residual: Residual = unfold.py_func(*copy)
        residual.worth[CHANCE::4] = chance[residual.number]
        residual.worth[COST::4] = cost[residual.number]
        return copy


class Run:
    """One event on its way: asks for predicates until everything is decided.

    A run is stepped from outside, so that the runs of several events can share a batched or concurrent call.
    """

    __slots__ = (
        "_arrays", "_choose", "_links", "_look", "_step", "_usual", "_where", "answer", "counters", "predicates", "residual",
    )  # fmt: skip

    def __init__(
        self,
        scheduler: Scheduler,
        program: Program,
        packed: Packed,
        look: Look,
        links: Links | None = None,
        usual: Floats = NOTHING,
    ) -> None:
        """`links` are the pairs of predicates to use, and `usual` the chances of all predicates without them."""
        self.residual: Residual = unfold.py_func(*packed)
        self.counters = packed[5]
        self.counters[CHOOSER], self.counters[GUARDED] = scheduler.chooser, scheduler.guarded
        self.predicates: list[int] = self.residual.number.tolist()
        """The number in the program of each predicate of the residual."""
        self._arrays = (*packed, program.shares)
        # Bound once: to hand the arrays over anew for every predicate took longer than to choose it.
        self._choose = partial(kernels.choose, *self._arrays)
        self._step = partial(kernels.step, *self._arrays)
        self._look = look
        self._links = links
        self._usual = usual
        self.answer: Callable[[int], int] = self._step if links is None and not packed[5][JOINS] else self._answer
        """Take the answer to the predicate asked last; the next one, or -1."""
        if links is not None:
            self._where = np.full(program.predicates, -1, np.int32)
            self._where[self.residual.number] = np.arange(len(self.residual.number), dtype=np.int32)

    def give(self, predicate: int, truth: int) -> None:
        """An answer that costs nothing, before the run starts: a missing argument, a GRAPH that was matched before."""
        if self._links is not None:
            self._tell(self._links, predicate, truth)
        kernels.give(*self._arrays, predicate, truth)
        self._joins()

    def begin(self) -> int:
        """The first predicate to ask, in the numbers of the residual; -1 if nothing is open."""
        chosen: int = self._choose()
        return chosen if chosen != -2 else self._resolved()

    def _answer(self, truth: int) -> int:
        if self._links is not None:
            self._tell(self._links, int(self.counters[CURRENT]), truth)
        chosen: int = self._step(truth)
        return chosen if chosen != -2 else self._resolved()

    def _tell(self, links: Links, predicate: int, truth: int) -> None:
        """Let an answer change what is expected of other predicates."""
        found = links.told(self.predicates[predicate], truth)
        if found is not None:
            kernels.revise(*self._arrays[:6], *found, self._usual, self._where)

    def _resolved(self) -> int:
        chosen = -2
        while chosen == -2:
            self._joins()
            chosen = self._choose()
        return chosen

    def _joins(self) -> None:
        s = self.residual
        gates = s.ready[: self.counters[READY]]
        gates = gates[s.value[gates] == PENDING]
        if len(gates):
            found = self._look(gates)
            known = found != PENDING
            kernels.conclude(*self._arrays, gates[known], found[known])
        self.counters[READY] = 0

    @property
    def asked(self) -> int:
        return int(self.counters[ASKED])

    def joins_of(self, gates: NDArray[np.int32]) -> NDArray[np.int32]:
        """The numbers of the joins at some gates."""
        joins: NDArray[np.int32] = self.residual.argument[gates + self.residual.size[gates] - 1]
        return joins


def no_joins(gates: NDArray[np.int32]) -> NDArray[np.int8]:
    """For programs without joins."""
    return np.full(len(gates), PENDING, np.int8)


def run_table(run: Run, truths: Sequence[int]) -> list[int]:
    """Run an event whose truths are given, by number of the predicate; the predicates asked, in order."""
    asked = []
    predicates = run.predicates
    answer = run.answer
    local = run.begin()
    while local >= 0:
        number = predicates[local]
        asked.append(number)
        local = answer(truths[number])
    return asked

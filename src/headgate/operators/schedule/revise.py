"""What an answer says of other predicates: their chances on this event, put in before the next is chosen.

A kernel of its own, called only for the few predicates that have partners: arrays cost more to hand over than to use.
"""

from __future__ import annotations

import numpy as np

from headgate.compiled import borrowing
from headgate.operators.kernels import CHANCE, HEAPED, SHELF, SHELVES, Bytes, Floats, Ints, Longs, unfold
from headgate.operators.schedule.score_buckets import heapify, push, score


@borrowing
def revise(
    shape: Bytes,
    links: Ints,
    value: Bytes,
    ints: Ints,
    floats: Floats,
    counters: Longs,
    partners: Ints,
    chances: Floats,
    usual: Floats,
    where: Ints,
) -> None:
    """Some predicates, by their numbers in the program, have these chances now. `where` are their places here, -1 for
    those that are not open, and `usual` what was believed before the event.

    Of several answers that tell of one predicate the one counts that says most: they often tell the same.
    """
    s = unfold(shape, links, value, ints, floats, counters)
    for i in range(len(partners)):
        t = where[partners[i]]
        if t < 0 or s.live[t] <= 0:
            continue
        at = 4 * t + CHANCE
        before = usual[partners[i]]
        if np.abs(chances[i] - before) <= np.abs(s.worth[at] - before):
            continue
        old = score(s.worth, t)
        s.worth[at] = chances[i]
        # A lower score is found out when it comes up. Before the first choice there is no heap yet.
        if score(s.worth, t) > old and counters[SHELF] <= SHELVES:
            if counters[HEAPED] < len(s.heap):
                push(s, counters, t)
            else:
                heapify(s, counters)

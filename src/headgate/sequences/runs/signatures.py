"""The name of a state that stays the same whatever else is in the book: runs that were saved are filed under it.

It is a hash of everything from the start of a pattern to the step the state waits in, streams by name. Numbers of
states, slots and columns are no part of it, so that subscriptions may come and go and the others keep their runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import xxhash

from headgate.sequences.automaton import State


def signature(state: State, streams: Sequence[str]) -> str:
    """The structure from the start to this state."""
    parts: list[object] = [state.missing]
    at: State | None = state
    while at is not None:
        step = at.step
        starts = sorted(step.starts.items())
        parts += [step.kind, streams[at.stream], step.theta, step.keep, step.accumulators, starts, step.within]
        parts.append(at.origin.after)
        if at.origin.origin is None:
            parts.append(streams[at.origin.streams[0]])
        at = at.origin.origin
    return xxhash.xxh3_128_hexdigest(repr(parts).encode())

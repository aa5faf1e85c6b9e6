"""Whether the clock on the wall can be believed.

Validity and retention go by the wall clock, which survives restarts, and may be set. A clock that jumps is not believed
until it has run evenly for a while, by a clock that cannot be set: so one that is a day ahead for some seconds ends no
subscription and forgets nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable

HOLD_S = 60.0
_JUMP_S = 2.0


class WallClock:
    """Asked about once a second."""

    def __init__(
        self,
        wall: Callable[[], float] | None = None,
        steady: Callable[[], float] = time.monotonic,
        hold: float = HOLD_S,
    ) -> None:
        # Looked up at each call, for tests that set the clock.
        self._wall = wall or (lambda: time.time())
        self._steady = steady
        self._hold = hold
        self._last = self._wall() - self._steady()
        self._jumped: float | None = None

    def believable(self) -> bool:
        now = self._steady()
        distance = self._wall() - now
        if abs(distance - self._last) > _JUMP_S:
            self._jumped = now
        self._last = distance
        return self._jumped is None or now - self._jumped >= self._hold

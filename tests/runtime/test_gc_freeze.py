"""The collector leaves alone what stays in a worker."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from headgate.runtime.gc_freeze import freeze_long_lived, mark_long_lived


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    freeze_long_lived()
    gc.unfreeze()
    yield
    gc.unfreeze()


def looked_at(thing: object) -> bool:
    """Whether the collector goes through it."""
    return any(other is thing for other in gc.get_objects())


def test_what_has_grown_is_left_alone_from_the_end_of_the_task_on() -> None:
    mine: list[list[int]] = [[]]
    freeze_long_lived()
    assert looked_at(mine), "nothing has been made that stays"
    mark_long_lived()
    assert looked_at(mine), "the task is not at its end"
    freeze_long_lived()
    assert not looked_at(mine)


def test_a_cycle_that_is_gone_goes_when_something_else_has_grown() -> None:
    class Tied:
        """Refers to itself."""

        def __init__(self) -> None:
            self.me = self

    tied = Tied()
    seen = weakref.ref(tied)
    mark_long_lived()
    freeze_long_lived()
    del tied
    mark_long_lived()
    freeze_long_lived()
    assert seen() is None

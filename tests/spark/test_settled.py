"""The collector leaves alone what stays in a worker."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from headgate.spark.settled import grown, settle


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    settle()
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_what_has_grown_is_frozen_once_at_the_end_of_a_task() -> None:
    grown()
    settle()
    frozen = gc.get_freeze_count()
    assert frozen > 0
    mine = [[n] for n in range(1000)]
    settle()
    assert gc.get_freeze_count() == frozen, "nothing has been made that stays"
    grown()
    settle()
    assert gc.get_freeze_count() >= frozen + len(mine)


def test_a_cycle_that_is_gone_goes_when_something_else_has_grown() -> None:
    class Tied:
        """Refers to itself."""

        def __init__(self) -> None:
            self.me = self

    tied = Tied()
    seen = weakref.ref(tied)
    grown()
    settle()
    del tied
    grown()
    settle()
    assert seen() is None

"""Freezes long-lived objects so that Spark's gc.collect() after every task stays cheap.

A compiled book of 10,000 sequences is millions of objects that live as long as the worker. Traversing them took 0.8 s a
task, half as long as the task itself, which matched 200,000 events.
"""

from __future__ import annotations

import gc

_dirty = False


def mark_long_lived() -> None:
    """Something was made that lives longer than its task."""
    global _dirty
    _dirty = True


def freeze_long_lived() -> None:
    """At the end of a task: freeze what is alive, if the task made something that stays. Frozen garbage of earlier tasks
    is collected first."""
    global _dirty
    if _dirty:
        _dirty = False
        gc.unfreeze()
        gc.collect()
        gc.freeze()

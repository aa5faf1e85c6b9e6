"""What a task leaves in its worker for those that follow is not gone through again and again.

Spark calls Python's collector after every task. A book of 10,000 sequences, compiled, is millions of objects that stay:
going through them took 0.8 s, half as long as the task that used them for 200,000 events.
"""

from __future__ import annotations

import gc

_grown = False


def grown() -> None:
    """Something was made that stays."""
    global _grown
    _grown = True


def settle() -> None:
    """At the end of a task: what is there now is left alone. What was made before and is gone is collected once more."""
    global _grown
    if _grown:
        _grown = False
        gc.unfreeze()
        gc.collect()
        gc.freeze()

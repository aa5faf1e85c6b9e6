"""Operators in a module, which other processes can import."""

from __future__ import annotations

import headgate as hg


@hg.operator
def is_even(event: object, n: int) -> bool:
    return n % 2 == 0

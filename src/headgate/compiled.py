"""How kernels are compiled that only look at arrays which Python holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., object])


def borrowing(function: _Function) -> _Function:
    """Compiled without counts of references: to count them for every array of a tuple of arrays made an event of 20,000
    operator subscriptions dearer by a third to a half, and a search for cover by a fifth. The option has no public name,
    but has been in numba since 2015; a numba without it would refuse to compile, not compute something else. Nothing
    that is compiled so may make or return an array, nor copy one into a slice of another."""
    made: _Function = njit(cache=True, _nrt=False)(function)  # type: ignore[call-overload]  # not in numba's stubs
    return made

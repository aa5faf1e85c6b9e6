"""Calls that wait, in threads: the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from starlette.concurrency import run_in_threadpool

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(call: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """The result of a call. A task that is cancelled meanwhile ends when the call does: at the end of the broker the
    connections to the store are closed, and nobody may be using one then."""
    running = asyncio.ensure_future(run_in_threadpool(call, *args, **named))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise

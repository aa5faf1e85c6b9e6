"""A process beside the broker for what strangers ask for and what may take long: trying events, explaining, drawing.

One call at a time, each with a budget of seconds. A call that overruns it is answered, and its process killed and
replaced; whatever a call does to its process, the broker takes in events and delivers meanwhile.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, ParamSpec, TypeVar

from headgate.broker.problems import Refused, refusal_of
from headgate.errors import HeadgateError
from headgate.results import described

P = ParamSpec("P")
T = TypeVar("T")
_START_S = 120.0
_MAIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from headgate.broker.side_process import serve; serve()"
)


class SideProcess:
    """Safe for threads: they take turns."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._turn = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._connection: Connection[Any, Any] | None = None

    def call(self, function: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """The result of a function of some module. Refused with what it raised, or if it takes too long."""
        waited = time.monotonic()
        if not self._turn.acquire(timeout=2 * self._seconds):
            waited = time.monotonic() - waited
            raise Refused(503, "busy", f"others are being answered since {waited:.0f} seconds", wait=self._seconds)
        try:
            connection = self._connection or self._start()
            connection.send((function, args, named))
            if not connection.poll(self._seconds):
                hint = "ask for less: a smaller text, or fewer at once"
                raise Refused(422, "budget", f"it took longer than {self._seconds:g} seconds", hint)
            result, refused = connection.recv()
        except (OSError, EOFError):
            self._stop()
            raise Refused(422, "died", "the process that was to answer this has died") from None
        except BaseException:
            self._stop()
            raise
        finally:
            self._turn.release()
        if refused is not None:
            status, code, detail, hint, more = refused
            raise Refused(status, code, detail, hint, **more)
        made: T = result
        return made

    def close(self) -> None:
        with self._turn:
            self._stop()

    def _start(self) -> Connection[Any, Any]:
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-c", _MAIN, json.dumps(sys.path), str(theirs.fileno())]
            # What is printed there goes to the log: the standard output may be somebody's data.
            self._child = subprocess.Popen(  # noqa: S603 - this interpreter
                command, stdin=subprocess.DEVNULL, stdout=2, pass_fds=[theirs.fileno()]
            )
        self._connection = Connection(ours.detach())
        # Starting is not part of the budget.
        if not self._connection.poll(_START_S):
            raise Refused(503, "busy", "the process that is to answer this does not start", wait=10.0)
        self._connection.recv()
        return self._connection

    def _stop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child = None


def serve() -> None:
    """The child: answers what comes over the socket, one after the other, until the broker is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the broker, which ends its child
    from headgate.broker.dry_run import warm

    connection: Connection[Any, Any] = Connection(int(sys.argv[2]))
    warm()
    connection.send("ready")
    threading.Thread(target=_leave_with_parent, args=(os.getppid(),), daemon=True).start()
    while True:
        try:
            function, args, named = connection.recv()
        except (EOFError, OSError):
            return
        connection.send(_answer(function, args, named))


def _answer(function: Callable[..., Any], args: Any, named: Any) -> tuple[Any, tuple[Any, ...] | None]:
    try:
        return function(*args, **named), None
    except HeadgateError as problem:
        refused = refusal_of(problem)
    except BaseException as problem:  # noqa: BLE001 - it is the answer to one request
        refused = Refused(422, "failed", f"this cannot be answered: {described(problem)}")
    return None, (refused.status_code, refused.code, refused.detail, refused.hint, refused.more)


def _leave_with_parent(parent: int) -> None:
    """A call that never ends must not outlive the broker."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(0)

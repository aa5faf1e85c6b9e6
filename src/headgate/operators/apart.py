"""Operators in processes of their own: what they do to their process, they do to themselves.

The child is a fresh interpreter that gets the operator by name or by value (`operator_pickling`), so it neither runs the user's
main script again nor shares anything with the parent but one socket. The parent sends calls, several at once; the child
answers them one by one and says when it begins, so that a death or a timeout belongs to exactly one call. A thread of the
child reads the socket: when the parent is gone, the child ends too, whatever its operator does.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any

from headgate.operators import operator_pickling
from headgate.operators.calls import FOREIGN, Call, OperatorFailure, Returned, failure, make
from headgate.operators.crew import Crew
from headgate.operators.registry import Operator
from headgate.results import described

START_SECONDS = 300.0
"""How long a process may take to import its operator."""
_BEGUN = "begun"
_READY = "ready"
_MAIN = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from headgate.operators.apart import serve; serve()"


class ProcessWorker:
    def __init__(self, operator: Operator, packed: bytes) -> None:
        self.pending: deque[int] = deque()
        self.since: float | None = None
        self._operator = operator
        self._unsent: list[bytes] = []
        self._ready = False
        self._started = time.monotonic()
        ours, theirs = socket.socketpair()
        with theirs:
            # What it prints goes to the standard error: the standard output may be somebody's data.
            command = [sys.executable, "-c", _MAIN, json.dumps([str(p) for p in sys.path]), str(theirs.fileno())]
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter
                command, stdin=subprocess.DEVNULL, stdout=2, pass_fds=[theirs.fileno()]
            )
        self.connection: Connection[Any, Any] = Connection(ours.detach())
        self._send(packed)

    def begin(self, numbers: Sequence[int], calls: Sequence[Call]) -> None:
        self.pending.extend(numbers)
        self._unsent = [_packed(self._operator, call) for call in calls]
        if self._ready:
            self._hand_over()

    def take(self) -> Returned | None:
        while True:
            try:
                if not self.connection.poll():
                    break
                message = self.connection.recv()
            except (EOFError, OSError):
                doing = "" if self._ready else " while it started"
                said = f"the process of {self._operator.name} died{doing}"
                raise OperatorFailure("operator.died", said) from None
            if isinstance(message, Returned):
                self.since = time.monotonic() if len(self.pending) > 1 else None
                return message
            if message == _BEGUN:
                self.since = time.monotonic()
            elif message == _READY:
                self._ready = True
                self._hand_over()
            else:
                raise OperatorFailure(
                    "operator.start", f"{self._operator.name} cannot be started in a process: {message}"
                )
        if not self._ready and time.monotonic() - self._started > START_SECONDS:
            raise OperatorFailure("operator.start", f"the process of {self._operator.name} does not start")
        return None

    def stop(self) -> None:
        self.connection.close()
        self._process.kill()
        self._process.wait()

    def _hand_over(self) -> None:
        self._send(self._unsent)
        self._unsent = []

    def _send(self, message: object) -> None:
        try:
            self.connection.send(message)
        except OSError:
            return  # it died; whoever takes its answers finds out


class ProcessCrew(Crew[ProcessWorker]):
    def __init__(self, operator: Operator, size: int) -> None:
        super().__init__(operator, size)
        # One process has nobody to share the calls with: it gets them at once, which spares it waiting for each.
        self.share = 1 if size > 1 else sys.maxsize
        self._packed = b""

    def _hire(self) -> ProcessWorker:
        try:
            self._packed = self._packed or operator_pickling.pack([self.operator])
            return ProcessWorker(self.operator, self._packed)
        except FOREIGN as problem:
            said = f"{self.operator.name} cannot be started in a process: {described(problem)}"
            raise OperatorFailure("operator.start", said) from None

    def _wait(self, workers: Sequence[ProcessWorker], seconds: float | None) -> None:
        if workers:
            wait([w.connection for w in workers], 1.0 if seconds is None else seconds)


def _packed(operator: Operator, call: Call) -> bytes:
    """A call that cannot travel travels as its failure: a year beyond 9999 has no datetime."""
    try:
        return pickle.dumps(call)
    except FOREIGN as problem:
        return pickle.dumps(failure(operator, problem))


def serve() -> None:
    """The child: makes the calls that come over the socket until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the parent, which ends its children
    connection: Connection[Any, Any] = Connection(int(sys.argv[2]))
    sys.argv[1:] = []
    try:
        (operator,) = operator_pickling.unpack(connection.recv())
    except BaseException as problem:  # noqa: BLE001 - foreign code is imported; the parent says it to the subscribers
        connection.send(described(problem))
        return
    connection.send(_READY)
    rounds: SimpleQueue[list[bytes]] = SimpleQueue()
    threading.Thread(target=_receive, args=(connection, rounds), daemon=True).start()
    while True:
        calls = rounds.get()
        connection.send(_BEGUN)
        for packed in calls:
            connection.send(_made(operator, packed))


def _made(operator: Operator, packed: bytes) -> Returned:
    try:
        call = pickle.loads(packed)  # noqa: S301 - from the parent
        return Returned(call) if isinstance(call, OperatorFailure) else make(operator, call)
    except BaseException as problem:  # noqa: BLE001 - one call's own
        return Returned(failure(operator, problem))


def _receive(connection: Connection[Any, Any], rounds: SimpleQueue[list[bytes]]) -> None:
    while True:
        try:
            rounds.put(connection.recv())
        except (EOFError, OSError):
            os._exit(0)

"""The side of a harness that is written in Python: commands on stdin, one JSON value a line on stdout."""

from __future__ import annotations

import json
import sys
from typing import Any, Protocol


class Peer(Protocol):
    @property
    def events(self) -> int: ...
    def build(self) -> int: ...
    def run(self, times: int) -> int: ...
    def matches(self) -> list[list[int]]: ...


def answer(peer: Peer) -> None:
    """Until stdin ends. See `harness.py` for the commands."""

    def say(value: Any) -> None:
        sys.stdout.write(json.dumps(value) + "\n")
        sys.stdout.flush()

    say({"loaded": peer.events})
    for line in sys.stdin:
        word, *arguments = line.split()
        if word == "build":
            say({"rules": peer.build()})
        elif word == "run":
            say({"matches": peer.run(int(arguments[0]))})
        else:
            say(peer.matches())

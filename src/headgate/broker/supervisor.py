"""The Spark query as a child process: started, watched, started again when it ends, and ended with the broker.

A process of its own, because Spark's driver takes memory and may die, and the broker must go on taking events then. The
child says in lines of JSON what it has done. It holds our end of its stdin: when the broker is killed, it leaves too.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headgate.broker.settings import STORE, Settings
from headgate.results import described

log = logging.getLogger("headgate.broker")
_FIRST_WAIT_S, _LONGEST_WAIT_S, _GOOD_S = 0.5, 30.0, 60.0


class SparkEngine:
    def __init__(self, settings: Settings, told: Callable[[dict[str, Any]], None]) -> None:
        self._settings = settings
        self._told = told
        self._stop = threading.Event()
        self._child: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._run, name="headgate-supervisor", daemon=True)
        self.ready = threading.Event()
        self.trouble: str | None = None
        """Why matching does not go on, as the child said last."""

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None else None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        child = self._child
        if child is not None and child.stdin is not None:
            child.stdin.close()
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
        self._thread.join(10)

    def _command(self) -> list[str]:
        s = self._settings
        given = ["--checkpoint", str(s.data / "checkpoint"), "--child"]
        if s.master:
            given += ["--master", s.master]
        if s.plans:
            given += ["--plans", s.plans]
        return [sys.executable, "-m", "headgate.broker.pipeline", *given]

    def _run(self) -> None:
        wait = _FIRST_WAIT_S
        self._settings.data.mkdir(parents=True, exist_ok=True)
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self._once(self._settings.data / "spark.log")
            except Exception as problem:
                log.error("the matching process could not be run", exc_info=problem)
                self.trouble = described(problem)
            self.ready.clear()
            if self._stop.is_set():
                return
            wait = _FIRST_WAIT_S if time.monotonic() - began > _GOOD_S else min(2 * wait, _LONGEST_WAIT_S)
            self._told({"event": "ended"})
            log.error("the matching process ended; it is started again in %.1f s", wait)
            self._stop.wait(wait)

    def _once(self, file: Path) -> None:
        """Run the child until it ends."""
        with file.open("a") as errors:
            # The URL of a store may hold a password, and everybody on the host can read the arguments of a process.
            env = {**os.environ, STORE: self._settings.store}
            self._child = subprocess.Popen(  # noqa: S603 - our own interpreter and module, with the owner's arguments
                self._command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=env
            )
            assert self._child.stdout is not None
            for line in self._child.stdout:
                try:
                    said = json.loads(line)
                except ValueError:
                    continue
                if said.get("event") == "started":
                    self.trouble = None
                    self.ready.set()
                if said.get("event") == "failed":
                    self.trouble = said.get("reason")
                    log.error("matching failed: %s", said.get("reason"))
                self._told(said)
            self._child.wait()

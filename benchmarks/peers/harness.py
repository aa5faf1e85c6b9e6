"""A peer as a process of its own: started with the name of a system and the folder of a workload, on one core.

It loads the rules and events and prints `{"loaded": N}`. Then it answers commands, one line each way:

* `build`: makes whatever it matches with; prints `{"rules": N}`;
* `run K`: all events K times over, from their text to the matches; prints `{"matches": N}`;
* `matches`: once; prints a list with the sorted numbers of the rules that each event matches.

The processor time of a command is read from outside, by the clock of that process, all its threads together: the same way
for all languages. A peer whose pass has work around it that should not count prints `cpu_s` itself.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
_JAVA = "--add-opens=java.base/{}=ALL-UNNAMED"
_HEAP = "-Xmx6g"


class Failed(Exception):
    """A peer ended, or did not answer in time."""


@dataclass(frozen=True)
class System:
    name: str
    title: str
    language: str
    command: tuple[str, ...]
    build: tuple[str, ...] = ()
    folder: str = ""
    """Where `build` runs, under this folder."""


def _java(name: str, title: str) -> System:
    opens = [_JAVA.format(p) for p in ("java.util", "java.lang", "java.time", "java.nio")]
    at = HERE / "java" / "target"
    command = ("java", _HEAP, "-XX:+UseSerialGC", *opens, "-cp", f"{at}/classes:{at}/lib/*", "peers.Main")
    return System(name, title, "Java", command, ("mvn", "-q", "-B", "package"), "java")


_PYTHON = (sys.executable, "-m")
SYSTEMS = {
    s.name: s
    for s in (
        System("headgate", "Headgate, batches of 1,024", "Python", (*_PYTHON, "benchmarks.peers.ours")),
        System("headgate-single", "Headgate, one event a call", "Python", (*_PYTHON, "benchmarks.peers.ours")),
        _java("event-ruler", "event-ruler 2.1.0"),
        System(
            "quamina", "quamina 1.4.0", "Go", (str(HERE / "go" / "target" / "quamina"),),
            ("go", "build", "-o", "target/quamina", "."), "go",
        ),
        System(
            "a-tree", "a-tree 0.6.1", "Rust", (str(HERE / "rust" / "target" / "release" / "peers"),),
            ("cargo", "build", "--release", "-q"), "rust",
        ),
        System("rule-engine", "rule-engine", "Python", (*_PYTHON, "benchmarks.peers.rule_lists")),
        System("json-logic", "json-logic-qubit", "Python", (*_PYTHON, "benchmarks.peers.rule_lists")),
        _java("esper", "Esper 9.0.0"),
        _java("flink-cep", "Flink CEP 1.20.1"),
    )
}  # fmt: skip


def make(system: System) -> str | None:
    """Builds a harness that has to be built; None if it worked, else why not."""
    if not system.build:
        return None
    try:
        done = subprocess.run(system.build, cwd=HERE / system.folder, capture_output=True, text=True, timeout=900)  # noqa: S603 - the commands are ours
    except FileNotFoundError:
        return f"{system.build[0]} is not installed"
    except subprocess.TimeoutExpired:
        return f"{system.build[0]} did not end in 15 minutes"
    return None if done.returncode == 0 else f"{system.build[0]}: {(done.stdout + done.stderr).strip()[:200]}"


class Harness:
    """One running peer. Leaves no process behind."""

    def __init__(self, system: System, folder: Path, patience: float = 300.0) -> None:
        self.system, self.patience = system, patience
        self._waiting = b""
        environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
        core = min(os.sched_getaffinity(0))
        self._process = subprocess.Popen(  # noqa: S603 - the commands are ours
            [*system.command, system.name, str(folder)], cwd=ROOT, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )  # fmt: skip
        self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, command: str) -> tuple[Any, float]:
        """The answer and the processor time it took."""
        assert self._process.stdin is not None
        before = self._clock()
        with suppress(BrokenPipeError):
            self._process.stdin.write(command.encode() + b"\n")
            self._process.stdin.flush()
        answer = self._read()
        took = self._clock() - before
        return answer, answer["cpu_s"] if isinstance(answer, dict) and "cpu_s" in answer else took

    def peak_bytes(self) -> int:
        """The most memory the process has had, its runtime included."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text("ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        return 0

    def _clock(self) -> float:
        # clock_getcpuclockid(3), which Python does not offer: the clock of another process by its number.
        try:
            return time.clock_gettime((~self._process.pid << 3) | 2)
        except OSError:
            return 0.0

    def _read(self) -> Any:
        """The next JSON value. A library may greet on stdout before the first answer; such lines are passed over."""
        while True:
            line = self._line()
            if line.lstrip()[:1] in (b"{", b"["):
                return json.loads(line)

    def _line(self) -> bytes:
        # By the file's number, with a buffer of our own: what waits in Python's could not be seen by select.
        assert self._process.stdout is not None
        until = time.monotonic() + self.patience
        while b"\n" not in self._waiting:
            ready, _, _ = select.select([self._process.stdout], [], [], max(until - time.monotonic(), 0))
            if not ready:
                self.close()
                raise Failed(f"no answer in {self.patience:.0f} s")
            more = os.read(self._process.stdout.fileno(), 1 << 16)
            if not more:
                said = self._process.stderr.read().decode(errors="replace") if self._process.stderr else ""
                raise Failed(" ".join(said.split())[-300:] or "ended without a word")
            self._waiting += more
        line, _, self._waiting = self._waiting.partition(b"\n")
        return line

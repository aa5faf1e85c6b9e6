"""Brokers as processes of their own: started by `headgate serve`, killed and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.broker.running import until
from tests.spark.servers import free_port

from headgate.broker.client import Client

ROOT = Path(__file__).parents[2]
PATIENCE_S = 180.0
LINK_KEY = "the key of the network in the tests"


@dataclass
class Process:
    """One broker; `more` are options of `headgate serve`."""

    name: str
    folder: Path
    more: tuple[str, ...] = ()
    engine: str = "local"
    port: int = field(default_factory=free_port)
    child: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "headgate.cli", "serve", "--json", "--data", str(self.folder)]
        command += ["--port", str(self.port), "--engine", self.engine, "--name", self.name, *self.more]
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        env = {**os.environ, "PYTHONPATH": path, "HEADGATE_LINK_KEY": LINK_KEY}
        env.setdefault("PYSPARK_PYTHON", sys.executable)
        with (self.folder / "log").open("ab") as log:
            self.child = subprocess.Popen(command, stdout=log, stderr=log, env=env, start_new_session=True)

    def kill(self) -> None:
        """At once, as a crash would; a Spark query beside it sees that and leaves."""
        assert self.child is not None
        self.child.kill()
        self.child.wait()

    def end(self) -> int:
        """Asked to end, as a service manager does."""
        assert self.child is not None
        self.child.send_signal(signal.SIGTERM)
        return self.child.wait(60)

    def wait(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with suppress(OSError), urlopen(f"{self.url}/readyz", timeout=10):  # noqa: S310 - our own address
                return
            assert self.child is not None
            said = (self.folder / "log").read_text("utf-8", "replace")[-3000:]
            assert self.child.poll() is None, f"{self.name} ended:\n{said}"
            assert time.monotonic() < deadline, f"{self.name} is not ready:\n{said}"
            time.sleep(0.1)

    def query(self) -> int | None:
        """The process of the Spark query beside it, if it has one."""
        assert self.child is not None
        for children in Path(f"/proc/{self.child.pid}/task").glob("*/children"):
            for word in children.read_text("ascii").split():
                with suppress(OSError):
                    if b"headgate.broker.pipeline" in Path(f"/proc/{word}/cmdline").read_bytes():
                        return int(word)
        return None

    def client(self, key: str | None = None) -> Client:
        return Client(self.url, key)

    def stats(self) -> dict[str, Any]:
        with urlopen(f"{self.url}/v1/stats", timeout=30) as answer:  # noqa: S310 - our own address
            found: dict[str, Any] = json.load(answer)
        return found


@contextmanager
def network(folder: Path, links: dict[str, list[str]], *more: str) -> Iterator[dict[str, Process]]:
    """Brokers by name; each links to those that stand beside it."""
    made: dict[str, Process] = {name: Process(name, folder / name) for name in links}
    for name, peers in links.items():
        made[name].more = (*more, *(word for peer in peers for word in ("--peer", made[peer].url)))
    try:
        for one in made.values():
            one.start()
        for one in made.values():
            one.wait()
        wanted = {name: len(peers) + sum(name in p for p in links.values()) for name, peers in links.items()}
        until(lambda: all(len(made[n].stats()["peers"]) == w for n, w in wanted.items()), "the links", PATIENCE_S)
        yield made
    finally:
        for one in made.values():
            if one.child is not None and one.child.poll() is None:
                one.kill()

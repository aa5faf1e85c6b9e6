"""A broker and a PostgreSQL server as processes that can be killed and started again."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

PATIENCE_S = 300.0


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@dataclass
class Broker:
    folder: Path
    store: str
    engine: str = "spark"
    more: tuple[str, ...] = ()
    port: int = field(default_factory=free_port)
    child: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "headgate.cli", "serve", "--json", "--data", str(self.folder)]
        command += ["--store", self.store, "--port", str(self.port), "--engine", self.engine, *self.more]
        env = {"PYSPARK_PYTHON": sys.executable, **os.environ}
        with (self.folder / "log").open("ab") as log:
            self.child = subprocess.Popen(command, stdout=log, stderr=log, env=env, start_new_session=True)  # noqa: S603 - our own program

    def wait(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with suppress(OSError), urlopen(f"{self.url}/readyz", timeout=10):  # noqa: S310 - our own address
                return
            if time.monotonic() > deadline or (self.child is not None and self.child.poll() is not None):
                raise TimeoutError(f"the broker is not ready; its log is {self.folder / 'log'}")
            time.sleep(0.5)

    def kill(self) -> None:
        assert self.child is not None
        self.child.kill()
        self.child.wait()

    def query(self) -> int | None:
        """The process of its Spark query."""
        assert self.child is not None
        for children in Path(f"/proc/{self.child.pid}/task").glob("*/children"):
            for word in children.read_text("ascii").split():
                with suppress(OSError):
                    if b"headgate.broker.pipeline" in Path(f"/proc/{word}/cmdline").read_bytes():
                        return int(word)
        return None

    def kill_query(self) -> bool:
        pid = self.query()
        if pid is None:
            return False
        os.kill(pid, signal.SIGKILL)
        return True


@dataclass
class Postgres:
    folder: Path
    port: int = field(default_factory=free_port)
    child: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql://headgate@127.0.0.1:{self.port}/postgres"

    def _program(self, name: str) -> str:
        beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
        found = shutil.which(name) or (str(beside[-1]) if beside else None)
        if found is None:
            raise FileNotFoundError(f"PostgreSQL is not installed: there is no {name}")
        return found

    def _owner(self) -> str | None:
        """PostgreSQL refuses to run as root; its packages bring a user."""
        return pwd.getpwnam("postgres").pw_name if os.getuid() == 0 else None

    def create(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres")
        words = [
            self._program("initdb"),
            "-D",
            str(self.folder / "data"),
            "-U",
            "headgate",
            "-A",
            "trust",
            "-E",
            "UTF8",
        ]
        subprocess.run(words, user=self._owner(), check=True, capture_output=True, cwd=self.folder)  # noqa: S603 - as said
        self.start()

    def start(self) -> None:
        settings = ("listen_addresses=127.0.0.1", f"unix_socket_directories={self.folder}", "max_connections=200")
        words = [self._program("postgres"), "-D", str(self.folder / "data"), "-p", str(self.port)]
        words += [word for s in settings for word in ("-c", s)]
        with Path(f"{self.folder}.log").open("ab") as log:
            self.child = subprocess.Popen(words, user=self._owner(), stdout=log, stderr=log, cwd=self.folder)  # noqa: S603 - as said
        self.wait()

    def wait(self) -> None:
        import psycopg

        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                psycopg.connect(self.url).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                if self.child is not None and self.child.poll() is not None:
                    # The backends of a killed server hold its memory for a moment; it is tried again.
                    time.sleep(0.5)
                    self.start()
                    return
                time.sleep(0.1)

    def kill(self) -> None:
        """At once, as a crash would."""
        assert self.child is not None
        self.child.kill()
        self.child.wait()

    def end(self) -> None:
        assert self.child is not None
        self.child.send_signal(signal.SIGQUIT)
        self.child.wait()

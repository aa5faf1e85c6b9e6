"""A PostgreSQL server of its own for the tests, where the programs are installed."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def _program(name: str) -> str | None:
    beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(beside[-1]) if beside else None)


@contextmanager
def server() -> Iterator[str]:
    """The URL of a running server; the test is skipped where there is no PostgreSQL."""
    # Not in the folders of pytest: each session of it closes them to other users, PostgreSQL's among them.
    with tempfile.TemporaryDirectory(prefix="headgate-postgres-") as folder:
        yield from _server(Path(folder))


def _server(folder: Path) -> Iterator[str]:
    initdb, postgres = _program("initdb"), _program("postgres")
    if initdb is None or postgres is None:
        pytest.skip("PostgreSQL is not installed (initdb, postgres)")
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    data = folder / "data"
    owner: str | None = None
    if os.getuid() == 0:
        # PostgreSQL refuses to run as root; its packages bring a user.
        try:
            owner = pwd.getpwnam("postgres").pw_name
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        shutil.chown(folder, owner)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    subprocess.run(
        [initdb, "-D", str(data), "-U", "headgate", "-A", "trust", "-E", "UTF8", "--no-sync"],
        user=owner,
        check=True,
        capture_output=True,
        cwd=folder,
    )
    # Its log goes into a file: a pipe that nobody reads would fill up and stop it.
    settings = ("listen_addresses=127.0.0.1", f"unix_socket_directories={folder}", "fsync=off")
    command = [postgres, "-D", str(data), "-p", str(port), *(word for s in settings for word in ("-c", s))]
    with (folder / "log").open("w") as log:
        running = subprocess.Popen(command, user=owner, stdout=log, stderr=log, cwd=folder)
        try:
            url = f"postgresql://headgate@127.0.0.1:{port}/postgres"
            _wait(url, running)
            yield url
        finally:
            # Connections of tests may still be open; it need not wait for them.
            running.send_signal(signal.SIGQUIT)
            running.wait(60)


def _wait(url: str, running: subprocess.Popen[bytes]) -> None:
    import psycopg

    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            if running.poll() is not None or time.monotonic() > deadline:
                pytest.fail("PostgreSQL did not start")
            time.sleep(0.05)

"""A broker in this process, and what tests ask of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import uvicorn
from tests.spark.servers import free_port

from headgate.broker.client import Client
from headgate.broker.http.app import server
from headgate.broker.service import Broker
from headgate.broker.settings import Settings

T = TypeVar("T")
PATIENCE_S = 60.0
SECRET = b"a secret of the tests, long enough"


def until(ask: Callable[[], T], what: str = "it", patience: float = PATIENCE_S) -> T:
    """The first true answer, within a generous time."""
    deadline = time.monotonic() + patience
    while not (found := ask()):
        assert time.monotonic() < deadline, f"waited {patience} s for {what}"
        time.sleep(0.02)
    return found


@dataclass(frozen=True)
class Running:
    broker: Broker
    url: str
    server: uvicorn.Server

    def client(self, key: str | None = None) -> Client:
        return Client(self.url, key)

    def http(self, **more: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, trust_env=False, timeout=30.0, **more)

    def key(self, name: str = "tests", **more: Any) -> str:
        return self.broker.keys.create(name, **more)[0]


@contextmanager
def running(folder: Path, store: str | None = None, *, lead: bool = True, **changes: Any) -> Iterator[Running]:
    """A broker with the local engine, until the end of the block; unless another one leads, it does."""
    given: dict[str, Any] = {"engine": "local", "name": "tests", **changes}
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = Settings(store or str(folder / "broker.db"), folder, SECRET, port=port, advertise=url, **given)
    made = server(settings)
    app: Any = made.config.app
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    try:
        until(lambda: made.started, "the server")
        until(lambda: app.state.broker.ready and app.state.broker.leader == lead, "the broker")
        yield Running(app.state.broker, url, made)
    finally:
        made.should_exit = True
        thread.join(60)
        assert not thread.is_alive()

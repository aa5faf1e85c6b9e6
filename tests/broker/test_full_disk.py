"""A full disk makes publishers wait; what was acknowledged is matched once there is space again."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from pathlib import Path

import pytest
from tests.broker.running import running, until

from headgate.broker.log import Publisher, _Waiting
from headgate.errors import UsageError
from headgate.store.database import Database
from headgate.store.keys import Keys
from headgate.store.publications import Publication, Publications


class Disk:
    """Every connection to SQLite from now on shares it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._connections: list[sqlite3.Connection] = []
        self._limit = 1 << 30
        original = Database._sqlite

        def opened(database: Database) -> sqlite3.Connection:
            made = original(database)
            made.execute(f"PRAGMA max_page_count = {self._limit}")
            self._connections.append(made)
            return made

        monkeypatch.setattr(Database, "_sqlite", opened)

    def leave(self, path: Path, pages: int) -> None:
        with sqlite3.connect(path) as looking:
            (used,) = looking.execute("PRAGMA page_count").fetchone()
        looking.close()
        self._limit = used + pages
        for connection in self._connections:
            connection.execute(f"PRAGMA max_page_count = {self._limit}")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_a_full_disk_is_back_pressure_and_nothing_acknowledged_is_lost(disk: Disk, tmp_path: Path) -> None:
    acknowledged: list[int] = []
    with running(tmp_path) as made, made.client() as client, made.http() as http:
        client.declare("stock", {"n": "bigint", "text": "string"})
        mine = client.subscribe("n >= 0", stream="stock")
        disk.leave(tmp_path / "broker.db", 20)

        def publish(n: int) -> int:
            status = http.post("/v1/streams/stock/events", json={"n": n, "text": "x" * 2000}).status_code
            if status == 202:
                acknowledged.append(n)
            return status

        statuses = [publish(n) for n in range(100)]
        assert 503 in statuses and set(statuses) <= {202, 503}
        disk.leave(tmp_path / "broker.db", 10_000)
        until(lambda: publish(1000) == 202, "space")
        until(lambda: http.get("/readyz").status_code == 200, "matching")
        found = until(
            lambda: n if len(n := client.pull(mine.id, mine.ticket, limit=1000)) >= len(acknowledged) else None,
            "every notification",
        )
        assert found is not None
        assert [n["data"]["n"] for n in found] == acknowledged


def test_one_publication_that_cannot_be_kept_is_refused_alone(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "broker.db"))
    publisher = Publisher(database, Publications(database, Keys(database, b"x" * 16)), 1000)

    async def publish() -> list[object]:
        loop = asyncio.get_running_loop()
        group = [
            _Waiting(Publication(stream, ["{}"], time.time()), loop, loop.create_future())
            for stream in ("a", "b\0", "c")
        ]
        publisher._write(group)
        return list(await asyncio.gather(*(w.answer for w in group), return_exceptions=True))

    first, second, third = asyncio.run(publish())
    assert isinstance(second, UsageError)
    assert [e.stream for e in publisher._logs.events(0, 9)] == ["a", "c"]
    assert not isinstance(first, Exception) and not isinstance(third, Exception)
    database.close()

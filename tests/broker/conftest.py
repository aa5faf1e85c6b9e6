"""Brokers for the tests; those that are about the store run on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.running import Running, running
from tests.store.conftest import postgres, url

__all__ = ["postgres", "url"]

STOCK = {"name": "string", "price": "double", "vol": "bigint"}


def declare(found: Running) -> None:
    with found.client() as client:
        client.declare("stock", STOCK)


@pytest.fixture
def both(url: str, tmp_path: Path) -> Iterator[Running]:
    """A broker on each database."""
    with running(tmp_path, url) as found:
        declare(found)
        yield found


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One for a whole file, on SQLite, which may call webhooks on this machine."""
    options: Any = {
        "allow_private": True,
        "first_wait": 0.01,
        "attempts": 3,
        "idle_seconds": 1.0,
        "body_bytes": 1 << 20,
    }
    with running(tmp_path_factory.mktemp("broker"), **options) as found:
        declare(found)
        yield found

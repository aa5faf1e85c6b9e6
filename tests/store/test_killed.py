"""A process that changes a store is killed: the store opens again, with the book as it was before."""

from __future__ import annotations

import multiprocessing
import random
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.store.changes import Proposals, Twin, everything, write

from headgate.store import Store

PATIENCE_S = 120.0
ROUNDS = 2


@pytest.fixture(params=["sqlite", "postgresql"])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Gives URLs of new stores."""
    if request.param == "sqlite":
        return lambda: str(tmp_path / f"{uuid.uuid4().hex}.db")
    base = request.getfixturevalue("postgres")

    def made() -> str:
        import psycopg

        schema = f"s{uuid.uuid4().hex}"
        with psycopg.connect(base, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}".encode())
        return f"{base}?options=-csearch_path%3D{schema}"

    return made


def killed(url: str, seed: str, folder: Path, after: int) -> int:
    """Let a process change the store until it has told of so many changes, and kill it; how many it told of."""
    # A server that has loaded everything forks each writer: they start at once.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.store.changes"])
    ours, theirs = context.Pipe(duplex=False)
    writer = context.Process(target=write, args=(url, seed, str(folder), theirs), daemon=True)
    writer.start()
    theirs.close()
    acknowledged = 0
    try:
        while acknowledged < after:
            assert ours.poll(PATIENCE_S), "the writer does not write"
            ours.recv()
            acknowledged += 1
    finally:
        writer.kill()
        writer.join()
    while ours.poll():
        try:
            ours.recv()
        except EOFError:
            break
        acknowledged += 1
    return acknowledged


def opens_as_it_was(url: str, seed: str, folder: Path) -> None:
    chance, twin = random.Random(f"{seed} kills"), Twin()
    for number in range(ROUNDS):
        round_seed = f"{seed} {number}"
        acknowledged = killed(url, round_seed, folder, chance.randrange(1, 25))
        for path in folder.glob("*.ttl"):
            path.unlink()
        proposals = Proposals(round_seed, folder)
        for _ in range(acknowledged):
            twin.advance(proposals)
        store = Store(url)
        found = store.replica()
        store.close()
        assert found.quarantined == {}
        if everything(found.book) != everything(twin.book):
            twin.advance(proposals)  # it was written, and the writer was killed before it could tell
        assert everything(found.book) == everything(twin.book)
        found.book.compile()


def test_a_store_whose_writer_is_killed_opens_with_the_book_before(fresh: Callable[[], str], tmp_path: Path) -> None:
    for seed in range(12):
        opens_as_it_was(fresh(), str(seed), tmp_path)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_two_hundred_stores_open_with_the_book_before(fresh: Callable[[], str], tmp_path: Path) -> None:
    for seed in range(200):
        opens_as_it_was(fresh(), f"nightly {seed}", tmp_path)

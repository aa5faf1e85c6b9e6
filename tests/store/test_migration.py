"""Stores of older versions are brought up to date when they are opened; `store-5.sql` was made by the version before."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from headgate.store import Store, database
from headgate.store.database import Database
from headgate.store.migrations import STEPS

DUMP = Path(__file__).parent / "store-5.sql"
TABLES = ("facts", "changes", "subscriptions", "batches", "events", "notifications")


@pytest.fixture
def old(url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a store as the version before has left it. That version could not open it again."""
    if "://" not in url:
        with sqlite3.connect(url) as made:
            made.executescript(DUMP.read_text())
        made.close()
        return url
    dumped = sqlite3.connect(":memory:")
    dumped.executescript(DUMP.read_text())
    with monkeypatch.context() as patch:
        patch.setattr(database, "STEPS", STEPS[:5])
        target = Database(url)
    target.execute("DELETE FROM facts")
    for table in TABLES:
        found = dumped.execute(f"SELECT * FROM {table}")  # noqa: S608 - a constant of this file
        columns = [c[0] for c in found.description]
        marks = ", ".join("?" * len(columns))
        target.many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", found.fetchall())  # noqa: S608 - as above
    target.close()
    dumped.close()
    return url


def test_a_store_of_the_version_before_is_opened_with_all_it_has(old: str) -> None:
    store = Store(old)
    book = store.book()
    assert store.quarantined() == []
    assert {name: book[name].text for name in book} == {
        "cheap": "price < 50",
        "two": "name = 'IBM' AND price > 5",
        "both": "vol = size",
        "reads": "SELECT p.x AS x FROM pairs AS p NEXT {$2.x = 2} trade AS b",
        "news1": "title LIKE 'a%'",
        "last": "title = 'x'",
    }
    assert list(book) == ["cheap", "two", "both", "reads", "news1", "last"]
    assert book["two"].paused and book["two"].labels == {"owner": "me"}
    assert {name: schema.declared for name, schema in book.streams.items()} == {
        "stock": False,
        "trade": False,
        "pairs": True,
        "news": True,
    }
    assert list(book.published) == ["pairs"]
    book.compile()
    store.close()


def test_a_migrated_store_goes_on_where_it_was(old: str) -> None:
    store = Store(old)
    assert store.version == 13
    assert store.add("new", "price > 500", on="stock") == 14
    assert [n.id for n in store.logs.notifications()] == ["m1"]
    assert "gone" in store.book(store.logs.version_of("q", 0, 99)), "a batch that is done again has its old version"
    store.close()
    again = Store(old)
    assert len(again) == 7
    again.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(database, "STEPS", (*STEPS[:-1], (*STEPS[-1], "NO SUCH STATEMENT")))
        with pytest.raises(Exception, match=r"(?i)syntax error"):
            Store(old)
    store = Store(old)
    assert len(store) == 6
    store.close()

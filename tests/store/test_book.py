"""The durable book: versions, changes, and books as they were."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path

import pytest

import headgate as hg
from headgate.errors import DuplicateName, TypeProblem, UnknownName
from headgate.store import Store
from headgate.store.database import Database


def names(book: hg.Subscriptions) -> dict[str, str]:
    return {name: book[name].text for name in book}


def test_a_new_store_is_empty_and_at_version_zero(store: Store) -> None:
    assert store.version == 0
    assert len(store) == 0
    assert list(store.book()) == []


def test_every_change_counts_the_version_up_by_one(store: Store) -> None:
    assert store.stream("stock", {"name": "string", "price": "double"}) == 1
    assert store.add("cheap", "price < 100", labels={"owner": "me"}) == 2
    assert store.replace("cheap", "price < 50") == 3
    assert store.pause("cheap") == 4
    assert store.remove("cheap") == 5
    assert [(c.version, c.kind, c.name) for c in store.changes(2)] == [
        (3, "subscription", "cheap"),
        (4, "subscription", "cheap"),
        (5, "subscription", "cheap"),
    ]
    assert store.changes(4)[0].body is None


def test_the_book_of_an_old_version_is_the_book_as_it_was(store: Store) -> None:
    store.stream("stock", {"price": "double"})
    first = store.add("a", "price < 1")
    second = store.add("b", "price < 2")
    store.replace("a", "price < 3")
    store.remove("b")
    assert names(store.book(first)) == {"a": "price < 1"}
    assert names(store.book(second)) == {"a": "price < 1", "b": "price < 2"}
    assert names(store.book()) == {"a": "price < 3"}


def test_a_book_comes_back_with_everything_it_had(store: Store) -> None:
    given = hg.Subscriptions.parse(
        """CREATE STREAM stock (name STRING, price DOUBLE DEFAULT -1, vol BIGINT NOT NULL, tags ARRAY<STRING>,
                                at TIMESTAMP NOT NULL) TIME at;
           CREATE STREAM news (`odd name`.x STRING);
           CREATE SUBSCRIPTION one ON stock WITH (missing = 'default', owner = 'me') AS price < 5;
           CREATE SUBSCRIPTION two ON news AS `odd name`.x = 'k';"""
    )
    given.pause("two")
    store.load(given)
    back = store.book()
    assert {n: back[n] for n in back} == {n: given[n] for n in given}
    assert dict(back.streams) == dict(given.streams)
    assert back.compile().fingerprint == given.compile().fingerprint


def test_a_bad_subscription_is_refused_with_its_caret_and_leaves_no_trace(store: Store) -> None:
    store.stream("stock", {"price": "double"})
    with pytest.raises(TypeProblem, match=r"\^"):
        store.add("bad", "price = 'x'")
    store.add("good", "price > 1")
    with pytest.raises(DuplicateName, match="there is a subscription good already"):
        store.add("good", "price > 2")
    with pytest.raises(UnknownName, match="there is no subscription god"):
        store.remove("god")
    assert store.version == 2
    assert names(store.book()) == {"good": "price > 1"}


def test_a_script_is_loaded_whole_or_not_at_all(store: Store) -> None:
    store.add("b", "x = 1")
    with pytest.raises(DuplicateName):
        store.load(hg.Subscriptions().add("a", "x = 1").add("b", "x = 2"))
    assert names(store.book()) == {"b": "x = 1"}
    store.add("c", "x = 3")
    assert set(names(store.book())) == {"b", "c"}


def test_two_stores_on_one_database_see_each_other(url: str, store: Store) -> None:
    other = Store(url)
    store.add("a", "x = 1")
    other.add("b", "x = 2")
    with pytest.raises(DuplicateName):
        store.add("b", "x = 3")
    assert set(store.book()) == {"a", "b"}
    assert store.identity == other.identity
    other.close()


def test_writers_at_the_same_time_lose_nothing(url: str, store: Store) -> None:
    def write(number: int) -> None:
        mine = Store(url)
        for i in range(10):
            mine.add(f"{number}-{i}", f"x = {i}")
        mine.close()

    threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.book()) == len(store) == 30
    # The stream that they name is a definition of its own.
    assert [c.version for c in store.changes()] == list(range(1, 32))
    assert [c.kind for c in store.changes()] == ["stream", *["subscription"] * 30]


def test_a_pickled_store_is_the_same_store(store: Store) -> None:
    store.add("a", "x = 1")
    copy: Store = pickle.loads(pickle.dumps(store))  # noqa: S301 - it was pickled on this line
    assert set(copy.book()) == {"a"}
    copy.close()


def test_a_version_that_does_not_exist_is_refused(store: Store) -> None:
    with pytest.raises(hg.UsageError, match=r"the store has no version 3\n  hint: the newest is 0"):
        store.book(3)


def test_a_store_of_a_newer_version_is_left_alone(url: str, store: Store) -> None:
    database = Database(url)
    database.execute("UPDATE facts SET value = '99' WHERE name = 'tables'")
    database.close()
    with pytest.raises(hg.EnvironmentProblem, match="the store has tables of version 99"):
        Store(url)


@pytest.mark.parametrize(
    ("url", "error", "said"),
    [
        ("mysql://x", hg.UsageError, "mysql://x is no store"),
        ("/nowhere/at/all/book.db", hg.EnvironmentProblem, "cannot open the store /nowhere/at/all/book.db"),
        ("postgresql://127.0.0.1:1/x", hg.EnvironmentProblem, "cannot reach the store"),
    ],
)
def test_a_store_that_cannot_be_opened_says_why(url: str, error: type[Exception], said: str, tmp_path: Path) -> None:
    if url.startswith("postgresql"):
        pytest.importorskip("psycopg", reason="psycopg is not installed")
    with pytest.raises(error, match=said):
        Store(url)

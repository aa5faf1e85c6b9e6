"""The log of a store grows with its book, not with the number of its changes."""

from __future__ import annotations

import pytest

from headgate.errors import UsageError
from headgate.store import Store, book
from headgate.store.replica import Replica


def rows(store: Store) -> int:
    return int(store.database.value("SELECT count(*) FROM changes"))


def texts(replica: Replica) -> dict[str, str]:
    return {name: replica.book[name].text for name in replica.book}


def churn(store: Store, times: int) -> None:
    for i in range(times):
        store.replace("a", f"x = {i}")
        store.add("short", "x = 0")
        store.remove("short")


@pytest.fixture
def churned(store: Store) -> Store:
    store.stream("s", {"x": "bigint"})
    store.add("a", "x = 1")
    store.add("b", "x = 2")
    churn(store, 10)
    return store


def test_what_later_changes_made_void_is_forgotten(churned: Store) -> None:
    before = texts(churned.replica())
    newest = churned.version
    assert churned.compact(keep=1) == churned.oldest == newest - 1
    assert rows(churned) == 5, "the stream, three subscriptions of which one has just gone, and that it has"
    assert texts(churned.replica()) == before
    assert list(before) == ["a", "b"]
    assert churned.version == newest
    assert churned.add("c", "x = 3") == newest + 1


def test_the_newest_versions_stay_and_older_ones_are_refused(churned: Store) -> None:
    wanted = {v: texts(churned.replica(v)) for v in range(churned.version - 5, churned.version + 1)}
    oldest = churned.compact(keep=5)
    assert {v: texts(churned.replica(v)) for v in wanted} == wanted
    with pytest.raises(UsageError, match=f"no longer has version {oldest - 1}\n  hint: the oldest is {oldest};"):
        churned.replica(oldest - 1)


def test_a_follower_that_is_too_far_behind_is_told_to_begin_anew(churned: Store) -> None:
    behind, level = churned.replica(5), churned.replica()
    churned.compact(keep=1)
    assert churned.follow(behind, churned.version) is None
    churned.add("c", "x = 3")
    assert churned.follow(level, churned.version) is not None
    assert texts(level) == texts(churned.replica())


def test_the_last_batch_of_a_query_keeps_its_version(churned: Store) -> None:
    for batch, version in enumerate((3, 8, 9)):
        churned.logs.version_of("q", batch, version)
    wanted = texts(churned.replica(9))
    assert churned.compact(keep=1) == 9
    assert texts(churned.replica(churned.logs.version_of("q", 2, 99))) == wanted


def test_a_query_that_is_long_gone_keeps_nothing(churned: Store) -> None:
    churned.logs.version_of("q", 0, 3)
    churned.database.execute("UPDATE batches SET at = 5")
    assert churned.compact(keep=1) == churned.version - 1


def test_the_log_is_compacted_as_it_grows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "COMPACT_EVERY", 20)
    store.stream("s", {"x": "bigint"})
    store.add("a", "x = 1")
    churn(store, 40)
    assert store.version > 100
    assert rows(store) < 50


def test_only_the_last_batches_of_a_query_are_remembered(churned: Store) -> None:
    for batch in range(150):
        churned.logs.version_of("q", batch, 5)
    churned.compact(keep=1)
    assert churned.logs.recorded("q", 10) is None
    assert churned.logs.last_batch("q") == 149
    assert churned.logs.last_batch("other") is None

"""A book that changes: large segments that stay, a small one of what is new, and a fresh start now and then."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.plan import Plan, deltas
from headgate.plan.sequence_book import SequenceBook
from headgate.runtime.batches import EVENT, BatchMatcher
from headgate.spark import cache
from headgate.spark.follow import Follower
from headgate.spark.ship import filed
from headgate.store import Store

EVENTS = pa.table({EVENT: [f"e{i}" for i in range(50)], "x": list(range(50))})


def matches(plan: Plan) -> set[tuple[str, str]]:
    """As a worker finds them that gets the plan in files."""
    sent = filed(plan, b"", None)
    opened = cache.plan(sent.head, sent.segments, [])
    matcher = BatchMatcher("s", opened)
    rows = matcher.matches(matcher.decode(EVENTS)).to_pylist()
    assert len(rows) == len({r["id"] for r in rows})
    return {(r["event"], r["subscription"]) for r in rows}


def fresh(store: Store, version: int) -> set[tuple[str, str]]:
    return matches(store.book(version).compile())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "book.db")
    made.stream("s", {"x": "bigint"})
    for n in range(12):
        made.add(f"s{n}", f"x > {n * 4}")
    return made


@pytest.mark.parametrize("seed", range(5))
def test_after_any_changes_the_parts_match_as_a_fresh_compile(store: Store, seed: int) -> None:
    rng, follower = random.Random(seed), Follower(store)
    follower.at(store.version)
    for step in range(25):
        names = list(store.book())
        name = rng.choice(names)
        match rng.randrange(5):
            case 0:
                store.add(f"n{step}", f"x = {rng.randrange(50)}")
            case 1:
                store.remove(name)
            case 2:
                store.replace(name, f"x < {rng.randrange(50)}")
            case 3:
                store.pause(name)
            case _:
                store.resume(name)
        if rng.random() < 0.5:
            assert matches(follower.at(store.version)) == fresh(store, store.version)


def test_an_old_version_is_the_book_as_it_was(store: Store) -> None:
    follower, before = Follower(store), store.version
    follower.at(before)
    store.replace("s0", "x = 49")
    store.remove("s1")
    assert matches(follower.at(store.version)) == fresh(store, store.version)
    assert matches(follower.at(before)) == fresh(store, before)
    assert matches(follower.at(store.version)) == fresh(store, store.version)


def test_a_change_moves_a_small_file(store: Store) -> None:
    follower = Follower(store)
    before = filed(follower.at(store.version), b"", None)
    store.add("new", "x = 1")
    store.replace("s3", "x = 2")
    plan = follower.at(store.version)
    after = filed(plan, b"", None)
    assert [len(segment) for segment in plan.segments] == [12, 2]
    assert after.segments[0] == before.segments[0]
    assert after.head != before.head


def test_when_much_has_changed_the_base_is_made_anew_beside_the_work(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deltas, "LEAST", 2)
    follower = Follower(store)
    follower.at(store.version)
    deadline = time.monotonic() + 60
    while True:
        store.add(f"n{store.version}", f"x = {store.version % 50}")
        plan = follower.at(store.version)
        assert matches(plan) == fresh(store, store.version)
        if len(plan.segments[0]) > 12:
            break
        assert time.monotonic() < deadline, "the base was never made anew"


def test_sequences_are_left_to_those_who_run_them(store: Store) -> None:
    follower = Follower(store)
    before = follower.at(store.version)
    assert not before.living_sequences()
    store.add("pattern", "SELECT * FROM s NEXT {$2.x = $1.x} s", on="s")
    plan = follower.at(store.version)
    assert matches(plan) == matches(before)
    assert "sequences" not in vars(plan), "the driver compiles them by group, and not once more"
    book = SequenceBook.of(plan, 2)
    assert list(book.digests) == ["pattern"]
    store.add("plain", "x = 7")
    assert SequenceBook.of(follower.at(store.version), 2) is book, "its sequences are the same"
    store.remove("pattern")
    assert not follower.at(store.version).living_sequences()

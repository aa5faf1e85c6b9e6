"""A book that changes, as plans: large ones that stay, a small one of what is new, and a fresh start now and then."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.runtime.batches import EVENT, BatchMatcher
from headgate.spark import shards
from headgate.spark.follow import Follower
from headgate.spark.shards import Parts
from headgate.store import Store

EVENTS = pa.table({EVENT: [f"e{i}" for i in range(50)], "x": list(range(50))})


def matches(parts: Parts) -> set[tuple[str, str]]:
    matcher = BatchMatcher("s", parts.plans, pa.array(parts.gone, pa.string()) if parts.gone else None)
    rows = matcher.matches(matcher.decode(EVENTS)).to_pylist()
    assert len(rows) == len({r["id"] for r in rows})
    return {(r["event"], r["subscription"]) for r in rows}


def fresh(store: Store, version: int) -> set[tuple[str, str]]:
    return matches(Parts((store.book(version).compile(),), ()))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "book.db")
    made.stream("s", {"x": "bigint"})
    for n in range(12):
        made.add(f"s{n}", f"x > {n * 4}")
    return made


@pytest.mark.parametrize("seed", range(5))
def test_after_any_changes_the_parts_match_as_a_fresh_compile(store: Store, seed: int) -> None:
    rng, follower = random.Random(seed), Follower(store, shard=5)
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


def test_a_change_leaves_the_large_plans_where_they_are(store: Store) -> None:
    follower = Follower(store, shard=5)
    large = follower.at(store.version).plans
    assert [len(plan) for plan in large] == [5, 5, 2]
    store.add("new", "x = 1")
    store.replace("s3", "x = 2")
    parts = follower.at(store.version)
    assert all(a is b for a, b in zip(parts.plans, large, strict=False))
    assert len(parts.plans[-1]) == 2
    assert parts.gone == ("s3",)


def test_when_much_has_changed_the_large_plans_are_made_anew_beside_the_work(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "LEAST_RECENT", 2)
    follower = Follower(store)
    follower.at(store.version)
    deadline = time.monotonic() + 60
    while True:
        store.add(f"n{store.version}", f"x = {store.version % 50}")
        parts = follower.at(store.version)
        assert matches(parts) == fresh(store, store.version)
        if len(parts.plans[0]) > 12:
            break
        assert time.monotonic() < deadline, "the plans were never made anew"


def test_sequences_are_a_plan_of_their_own_and_change_with_the_book(store: Store) -> None:
    follower = Follower(store)
    before = follower.at(store.version)
    assert before.sequences is None
    store.add("pattern", "SELECT * FROM s NEXT {$2.x = $1.x} s", on="s")
    parts = follower.at(store.version)
    assert matches(parts) == matches(before)
    assert parts.sequences is not None
    assert list(parts.sequences.names()) == ["pattern"]
    store.remove("pattern")
    assert follower.at(store.version).sequences is None

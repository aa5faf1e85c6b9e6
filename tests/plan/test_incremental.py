"""Change online: after any sequence of changes a plan matches as a fresh compile does, and as the oracle does."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate import Subscriptions
from headgate.plan.deltas import MOST_DELTAS
from headgate.schema import Schema
from headgate.testing import oracle_match, random_events, random_subscriptions

SCHEMA = Schema.of(
    "stock",
    {"name": "string", "price": "double", "vol": "bigint", "halted": "boolean", "tags": "array<string>"},
    defaults={"price": -1.0},
)
EVENTS = random_events(SCHEMA, 40, seed=11)
TEXTS = list(random_subscriptions(SCHEMA, 300, seed=11, depth=2).values())
ACTIONS = ("add", "add", "add", "remove", "replace", "pause", "resume", "compile", "compile", "compile")


def fresh(book: Subscriptions) -> Subscriptions:
    """The same book, never compiled before."""
    other = Subscriptions().stream("stock", SCHEMA)
    for name in book:
        entry = book[name]
        other.add(name, entry.text, missing=entry.missing, labels=entry.labels)
        if entry.paused:
            other.pause(name)
    return other


def change(book: Subscriptions, action: str, rng: random.Random) -> None:
    text, mode = rng.choice(TEXTS), rng.choice(["null", "strict", "default", "total"])
    names = list(book)
    if action == "add":
        book.add(f"s{rng.randrange(10**9)}", text, missing=mode, labels={"n": "1"} if rng.random() < 0.3 else None)
    elif action == "compile":
        book.compile()
    elif names and action == "replace":
        book.replace(rng.choice(names), text, missing=mode)
    elif names:
        getattr(book, action)(rng.choice(names))


def run(actions: list[str], seed: int) -> None:
    rng = random.Random(seed)
    book = Subscriptions().stream("stock", SCHEMA)
    for action in actions:
        change(book, action, rng)
    found = book.compile().match(EVENTS, errors="collect")[0]
    assert found.equals(fresh(book).compile().match(EVENTS, errors="collect")[0])
    assert found.equals(oracle_match(book, EVENTS))


@given(st.lists(st.sampled_from(ACTIONS), min_size=10, max_size=60), st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_changes_one_by_one_equal_a_fresh_compile_and_the_oracle(actions: list[str], seed: int) -> None:
    run(actions, seed)


@pytest.mark.nightly
@given(st.lists(st.sampled_from(ACTIONS), max_size=200), st.integers(0, 10**9))
@settings(max_examples=3000, deadline=None)
def test_many_changes_equal_a_fresh_compile_and_the_oracle(actions: list[str], seed: int) -> None:
    run(actions, seed)


def test_a_compile_after_every_change_keeps_the_segments_few() -> None:
    book = Subscriptions().stream("stock", SCHEMA)
    for number, text in enumerate(TEXTS[:40]):
        book.add(f"s{number}", text)
        plan = book.compile()
        assert len(plan.segments) <= MOST_DELTAS + 1
        assert len(plan) == number + 1
    assert plan.match(EVENTS, errors="collect")[0].equals(oracle_match(book, EVENTS))


def test_an_old_plan_goes_on_as_it_was() -> None:
    book = Subscriptions().add("a", "x > 0").add("b", "x > 1")
    old = book.compile()
    book.remove("a").replace("b", "x > 100")
    new = book.compile()
    assert old.match([{"x": 5}]).column("subscription").to_pylist() == ["a", "b"]
    assert new.match([{"x": 5}]).num_rows == 0


def test_a_plan_shares_the_segments_of_the_last_one() -> None:
    book = Subscriptions().add("a", "x > 0")
    first = book.compile()
    second = book.add("b", "x > 1").compile()
    assert second.segments[0] is first.segments[0]


def test_without_a_change_the_plan_is_the_same_one_in_all_but_identity() -> None:
    book = Subscriptions().add("a", "x > 0")
    assert book.compile().fingerprint == book.compile().fingerprint


def test_a_change_of_text_labels_or_mode_changes_the_fingerprint() -> None:
    def print_of(text: str = "x > 0", **more: object) -> str:
        made = Subscriptions().stream("s", {"x": "bigint"})
        return made.add("a", text, **more).compile().fingerprint  # type: ignore[arg-type]  # the options of add

    prints = {print_of(), print_of("x > 1"), print_of(missing="strict"), print_of(labels={"k": "v"})}
    assert len(prints) == 4
    assert print_of() == print_of()


def test_find_gives_only_the_living() -> None:
    book = Subscriptions().add("a", "x > 0").add("b", "x > 1")
    book.compile()
    plan = book.remove("a").compile()
    assert plan.find("a") is None
    found = plan.find("b")
    assert found is not None
    segment, slot = found
    assert segment.entry(slot).text == "x > 1"
    assert plan.find("c") is None


def test_a_plan_needs_only_what_its_subscriptions_read() -> None:
    plan = Subscriptions().stream("stock", SCHEMA).add("a", "vol > 1 AND tags = 'x'").compile()
    assert plan.needs("stock") == {("vol",), ("tags",)}
    assert plan.needs("elsewhere") == frozenset()

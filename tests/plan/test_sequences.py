"""Sequences in plans: what changes is laid over what was compiled, runs are counted, losses are told."""

from __future__ import annotations

from typing import Any

import pytest

import headgate as hg
from headgate.plan import deltas, sequences

STOCK = "CREATE STREAM stock (name STRING, price DOUBLE, at BIGINT) TIME at;"
PAIR = "SELECT e1.price AS a, e2.price AS b FROM FILTER {{price = {0}}} (stock) NEXT {{$2.name = $1.name}} stock"


def book(*prices: int) -> hg.Subscriptions:
    made = hg.Subscriptions.parse(STOCK)
    for price in prices:
        made.add(f"p{price}", PAIR.format(price))
    return made


def rows(*events: tuple[str, float]) -> list[dict[str, Any]]:
    return [{"name": name, "price": price, "at": i} for i, (name, price) in enumerate(events)]


EVENTS = rows(("A", 1), ("A", 2), ("B", 3), ("A", 3), ("B", 1), ("A", 1), ("B", 2))


def matched(plan: hg.Plan) -> list[tuple[str, int, str]]:
    found = plan.match(EVENTS)
    return list(zip(*(found.column(c).to_pylist() for c in ("subscription", "event", "id")), strict=True))


def test_a_sequence_that_comes_is_laid_over_the_others() -> None:
    changing = book(1, 2)
    before = changing.compile().sequences
    changing.add("p3", PAIR.format(3))
    plan = changing.compile()
    assert before is not None
    assert plan.sequences is not None
    assert [id(level) for level in plan.sequences.levels[: len(before.levels)]] == [id(v) for v in before.levels]
    assert matched(plan) == matched(book(1, 2, 3).compile())


def test_a_sequence_that_goes_matches_no_more() -> None:
    changing = book(1, 2, 3)
    changing.compile()
    changing.remove("p2")
    assert matched(changing.compile()) == matched(book(1, 3).compile())


def test_a_sequence_that_is_replaced_is_the_new_one() -> None:
    changing = book(1, 2)
    changing.compile()
    changing.replace("p2", PAIR.format(3))
    plan = changing.compile()
    assert {(name, event) for name, event, _ in matched(plan)} == {("p1", 1), ("p1", 6), ("p2", 4), ("p2", 5)}
    changing.replace("p2", PAIR.format(2))
    assert matched(changing.compile()) == matched(book(1, 2).compile())


def test_sequences_come_and_go_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deltas, "LEAST", 3)
    changing, names = book(), set[int]()
    for price in (1, 2, 3, 1, 1, 4, 2, 3, 5, 3, 5, 2):
        if price in names:
            changing.remove(f"p{price}")
        else:
            changing.add(f"p{price}", PAIR.format(price))
        names ^= {price}
        assert matched(changing.compile()) == matched(book(*sorted(names)).compile())


def test_what_publishes_may_come_and_go() -> None:
    changing = book(1)
    changing.compile()
    changing.add(
        "out", "SELECT e1.name AS name, e2.price AS price FROM stock NEXT {$2.name = $1.name} stock PUBLISH pairs"
    )
    changing.add("on", "SELECT price FROM FILTER {price = 3} (pairs)")
    plan = changing.compile()
    assert [(n, e) for n, e, _ in matched(plan) if n == "on"] == [("on", 3)]
    changing.remove("on")
    changing.remove("out")
    assert matched(changing.compile()) == matched(book(1).compile())


def test_stats_tell_the_runs_of_each_subscription_and_the_slower_path() -> None:
    made = book(1, 3)
    made.add("text", "SELECT e1.name AS n FROM stock NEXT {$2.name CONTAINS $1.name AND $2.price > 99} stock")
    plan = made.compile()
    session = plan.session()
    session.feed(EVENTS[:3])
    told = plan.stats()["sequences"]
    assert told["subscriptions"] == 3
    assert list(told["slower_path"]) == ["text"]
    assert told["runs"] == session.stats()["runs"] == {"p3": 1, "text": 3}


def test_runs_that_a_quota_drops_are_told_on_the_error_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "QUOTA", 2)
    made = hg.Subscriptions.parse(STOCK)
    made.add("s", "SELECT e1.name AS n FROM stock NEXT {$2.name = $1.name} stock")
    session = made.compile().session()
    session.feed(rows(*((f"n{i}", 1.0) for i in range(5))))
    told = session.errors().to_pylist()
    assert [(t["code"], t["event"], t["stream"]) for t in told] == [("quota", 4, "stock")]
    assert told[0]["subscriptions"] == ["s"]
    assert told[0]["reason"] == ("3 of the oldest runs dropped, because more than 2 wait for the event at place 2")
    session.feed([{"name": "n4", "price": 1.0, "at": 9}])
    assert len(session.errors()) == 1


def test_analyse_warns_of_sequences_that_may_wait_for_ever() -> None:
    made = book(1)
    made.add("bounded", "SELECT e1.name AS n FROM stock NEXT {$2.name = $1.name AND DUR <= 5} stock")
    made.add("equal", "SELECT e1.name AS n FROM stock NEXT {$2.name = $1.name AND DUR = 5} stock")
    assert [(f.kind, str(f)) for f in made.analyse() if f.kind == "sequence"] == [
        ("sequence", "p1: e2 is awaited without an upper bound on DUR: runs may wait for ever"),
        ("sequence", "equal: DUR = 5 holds only if an event comes at that very tick: use >= or <="),
    ]

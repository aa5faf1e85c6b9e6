"""An exception that leaves an engine costs the pairs that raise it; everything else is matched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headgate as hg
from headgate.columns import Columns
from headgate.events import decoder
from headgate.filters.engine import FilterIndex
from headgate.runtime.quarantine import culprits
from headgate.sequences.engine import Session

BOOK = hg.Subscriptions().stream("s", {"x": "bigint"})
for _n in range(40):
    BOOK.add(f"s{_n:02}", f"x > {_n}")
EVENTS = [{"x": x % 50} for x in range(100)]
EXPECTED = {(event, f"s{n:02}") for event, e in enumerate(EVENTS) for n in range(40) if e["x"] > n}


def pairs(table: Any) -> set[tuple[int, str]]:
    return {(row["event"], row["subscription"]) for row in table.to_pylist()}


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[FilterIndex, Columns], bool]], list[int]]:
    """Makes the filters raise; gives the numbers of events of all evaluations, which is the cost of a search."""

    def install(raises: Callable[[FilterIndex, Columns], bool]) -> list[int]:
        asked: list[int] = []
        for name in ("evaluate", "count"):
            original = getattr(FilterIndex, name)

            def one(self: FilterIndex, columns: Columns, original: Any = original) -> Any:
                asked.append(len(columns))
                if raises(self, columns):
                    raise ZeroDivisionError("a defect")
                return original(self, columns)

            monkeypatch.setattr(FilterIndex, name, one)
        return asked

    return install


def holds(columns: Columns, x: int) -> bool:
    return bool((np.asarray(columns[("x",)].values) == x).any())


def matches(index: FilterIndex, above: int) -> bool:
    """Whether an index has the subscription x > above: the test asks what it counts on two events."""
    columns = Columns.of("s", {"x": ("bigint", [above, above + 1])})
    return bool((FilterIndex.__dict__["count"].__defaults__[0](index, columns) == 1).any())


def test_an_event_that_an_engine_raises_on_is_set_aside(broken: Any) -> None:
    asked = broken(lambda index, columns: holds(columns, 7))
    table, errors = BOOK.compile().match(EVENTS, errors="collect")
    bad = {i for i, e in enumerate(EVENTS) if e["x"] == 7}
    assert pairs(table) == {pair for pair in EXPECTED if pair[0] not in bad}
    assert {e["event"] for e in errors.to_pylist()} == bad
    assert {e["code"] for e in errors.to_pylist()} == {"quarantined"}
    assert errors.to_pylist()[0]["reason"] == "set aside, because matching failed: ZeroDivisionError: a defect"
    assert len(asked) < 300


@pytest.mark.parametrize("output", ["pairs", "counts"])
def test_a_subscription_that_an_engine_raises_on_is_set_aside_alone(broken: Any, output: str) -> None:
    broken(lambda index, columns: matches(index, 23))
    plan = hg.Subscriptions().stream("s", {"x": "bigint"})
    for name in BOOK:
        plan.add(name, BOOK[name].text)
    table, errors = plan.compile().match(EVENTS, output=output, errors="collect")
    honest = {pair for pair in EXPECTED if pair[1] != "s23"}
    if output == "pairs":
        assert pairs(table) == honest
    else:
        assert sum(table.column("count").to_pylist()) == len(honest)
    assert {tuple(e["subscriptions"]) for e in errors.to_pylist()} == {("s23",)}
    assert {e["event"] for e in errors.to_pylist()} == set(range(len(EVENTS)))


def test_one_pair_costs_one_pair(broken: Any) -> None:
    broken(lambda index, columns: matches(index, 23) and holds(columns, 49))
    table, errors = BOOK.compile().match(EVENTS, errors="collect")
    lost = {(i, "s23") for i, e in enumerate(EVENTS) if e["x"] == 49}
    assert pairs(table) == EXPECTED - lost
    assert {(e["event"], *e["subscriptions"]) for e in errors.to_pylist()} == lost


def test_the_next_batch_need_not_search_among_the_others(broken: Any) -> None:
    plan = hg.Subscriptions().stream("s", {"x": "bigint"})
    for name in BOOK:
        plan.add(name, BOOK[name].text)
    made = plan.compile()
    asked = broken(lambda index, columns: matches(index, 23) and holds(columns, 49))
    made.match(EVENTS, errors="collect")
    first = len(asked)
    asked.clear()
    table, _ = made.match(EVENTS, errors="collect")
    assert len(asked) < first
    assert pairs(table) == EXPECTED - {(i, "s23") for i, e in enumerate(EVENTS) if e["x"] == 49}


def test_what_is_quarantined_raises_where_errors_do(broken: Any) -> None:
    broken(lambda index, columns: holds(columns, 7))
    with pytest.raises(hg.EventError, match=r"event 7 of stream s: .*set aside, because matching failed"):
        BOOK.compile().match(EVENTS)


def test_an_event_that_the_decoder_raises_on_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    original = decoder.assemble

    def assemble(source: Any, *more: Any, **named: Any) -> Any:
        for row in range(source.rows):
            if "13" in source.text(row):
                raise ZeroDivisionError("a defect")
        return original(source, *more, **named)

    monkeypatch.setattr(decoder, "assemble", assemble)
    table, errors = BOOK.compile().match(EVENTS, errors="collect")
    assert {e["event"] for e in errors.to_pylist()} == {13, 63}
    assert {e["code"] for e in errors.to_pylist()} == {"quarantined"}
    assert pairs(table) == {pair for pair in EXPECTED if pair[0] not in (13, 63)}


@pytest.mark.parametrize("bad", [{0}, {6}, {2, 3}, set(range(7))])
def test_culprits_are_found_by_halving(bad: set[int]) -> None:
    def attempt(some: range) -> None:
        if bad & set(some):
            raise ValueError(str(some))

    assert culprits(7, attempt, ValueError("all")).keys() == bad


@pytest.fixture
def broken_sequences(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Session, Columns], bool]], None]:
    """Makes the engine of sequences raise, in the middle of its work: what it has done by then stays done."""

    def install(raises: Callable[[Session, Columns], bool]) -> None:
        original = Session.feed

        def feed(self: Session, batches: Any, until: int | None = None, decided: Any = None) -> Any:
            batches = list(batches)
            found = original(self, batches, until, decided)
            if any(raises(self, columns) for columns in batches if len(columns)):
                raise ZeroDivisionError("a defect")
            return found

        monkeypatch.setattr(Session, "feed", feed)

    return install


RISE = "SELECT a.x AS x FROM s AS a NEXT {$2.x > $1.x} s AS b"


def test_an_event_that_sequences_raise_on_is_set_aside(broken_sequences: Any) -> None:
    book = hg.Subscriptions().stream("s", {"x": "bigint"}).add("plain", "x = 13").add("rise", RISE)
    broken_sequences(lambda session, columns: holds(columns, 13))
    table, errors = book.compile().match([{"x": 1}, {"x": 13}, {"x": 2}], errors="collect")
    assert pairs(table) == {(1, "plain"), (2, "rise")}
    (error,) = errors.to_pylist()
    assert (error["event"], error["code"]) == (1, "quarantined")


@pytest.mark.parametrize("slack", [0, 1024])
def test_a_session_survives_a_defect_of_sequences_in_any_feed(
    slack: int, broken_sequences: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.runtime.sequences.SLACK", slack)
    book = hg.Subscriptions().stream("s", {"x": "bigint"}).add("rise", RISE)
    broken_sequences(lambda session, columns: holds(columns, 13))
    with book.compile().session() as session:
        found = [pairs(session.feed([{"x": x} for x in part])) for part in ([9, 1], [0, 13, 5], [13], [10])]
        errors = session.errors().to_pylist()
    assert found == [set(), {(4, "rise")}, set(), {(6, "rise")}], "1 and 0 rise to 5; 9 and 5 to 10"
    assert [(e["event"], e["code"]) for e in errors] == [(3, "quarantined"), (5, "quarantined")]


def test_a_sequence_that_its_engine_raises_on_is_set_aside_and_the_others_keep_their_runs(
    broken_sequences: Any,
) -> None:
    book = hg.Subscriptions().stream("s", {"x": "bigint"}).add("rise", RISE)
    for n in range(5):
        book.add(f"fall{n}", RISE.replace("$2.x > $1.x", f"$2.x < $1.x - {n}"))
    broken_sequences(lambda session, columns: "fall3" in session.index.names and holds(columns, 13))
    with book.compile().session() as session:
        session.feed([{"x": 9}])
        first, second = pairs(session.feed([{"x": 13}, {"x": 5}])), pairs(session.feed([{"x": 13}, {"x": 12}]))
        (error,) = session.errors().to_pylist()
    assert first == {(1, "rise"), *((2, f"fall{n}") for n in (0, 1, 2, 4))}
    assert second == {(3, "rise"), (4, "fall0")}
    assert (error["event"], error["code"], error["subscriptions"]) == (1, "quarantined", ["fall3"])


def test_a_session_survives_sequences_that_raise_on_everything(broken_sequences: Any) -> None:
    book = hg.Subscriptions().stream("s", {"x": "bigint"}).add("rise", RISE)
    broken_sequences(lambda session, columns: True)
    with book.compile().session() as session:
        assert pairs(session.feed([{"x": 1}, {"x": 2}])) == set()
        assert set(session.errors().column("event").to_pylist()) == {0, 1}

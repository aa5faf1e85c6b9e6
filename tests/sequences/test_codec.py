"""Saved state: a session goes on as if nothing had happened, also under another plan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.sequences.book import STOCK, Found, columns_of, session_of, spines_of, take
from tests.sequences.patterns import SCHEMAS, S, T, books, events

from headgate.errors import PlanError
from headgate.sequences.engine import Index
from headgate.sequences.publish_levels import Subscription
from headgate.sequences.runs.codec import restore, save

PAIR = "SELECT e1.price AS p, e2.price AS q FROM stock NEXT {$2.name = $1.name} stock"
SUM = "SELECT total FROM stock FOLD {$2.name = $1.name, TRUE, SUM(price) AS total, FIRST(name) AS who} stock"
TEXT = "SELECT e2.name AS n FROM stock NEXT {$2.name CONTAINS $1.name} stock"


def rows(*events: tuple[str, float, int]) -> list[tuple[Any, ...]]:
    return [(name, float(price), 1, at) for name, price, at in events]


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=books(), s=events(), t=events(), time=st.integers(0, 8))
def test_a_restored_session_gives_what_the_saved_one_would_have_given(
    texts: dict[str, str], s: Any, t: Any, time: int
) -> None:
    note(str(texts))
    spines = spines_of(texts, *SCHEMAS)
    session = session_of(spines)
    early = [columns_of(S, [r for r in s if r[4] <= time]), columns_of(T, [r for r in t if r[4] <= time])]
    session.feed(early)
    restored, report = restore(session.index, save(session))
    assert report.left_out == 0
    late = [
        columns_of(S, [r for r in s if r[4] > time], len(early[0])),
        columns_of(T, [r for r in t if r[4] > time], len(early[1])),
    ]
    assert str(list(restored.feed(late))) == str(list(session.feed(late)))


def test_subscriptions_that_stay_keep_their_runs_when_others_come_and_go() -> None:
    old = session_of(spines_of({"pair": PAIR, "sum": SUM, "text": TEXT}, STOCK))
    old.feed([columns_of(STOCK, rows(("A", 1, 1), ("B", 2, 2)))])
    spines = spines_of({"new": PAIR.replace("e1.price AS p", "e1.vol AS v"), "text": TEXT, "pair": PAIR}, STOCK)
    index = Index([Subscription(n, s, since=2 if n == "new" else None) for n, s in spines.items()])
    session, report = restore(index, save(old))
    assert (report.kept, report.left_out) == (4, 2)
    found: Found = {"new": [], "text": [], "pair": []}
    take(found, session.feed([columns_of(STOCK, rows(("A", 3, 3), ("A", 4, 4)), 2)]))
    assert found["pair"] == [(1, 3, "p=1.0, q=3.0"), (3, 4, "p=3.0, q=4.0")]
    assert found["text"] == [(1, 3, "n='A'"), (3, 4, "n='A'")]
    assert found["new"] == [(3, 4, "v=1, q=4.0")], "a newcomer does not inherit the runs of a state it shares"


def test_events_that_wait_for_their_epoch_are_saved_too() -> None:
    session = session_of(spines_of({"s": PAIR}, STOCK))
    session.feed([columns_of(STOCK, rows(("A", 1, 1), ("A", 2, 5)))], until=5)
    restored, _ = restore(session.index, save(session))
    (found,) = list(restored.feed([columns_of(STOCK, rows(("B", 1, 6)), 2)]))
    assert (found["t0"], found["t1"], found["event"]) == (1, 5, 1)


def test_an_unknown_version_is_refused() -> None:
    session = session_of(spines_of({"s": PAIR}, STOCK))
    data = bytearray(save(session))
    data[4] = 99
    with pytest.raises(PlanError, match=r"has version 99, this program reads version 2"):
        restore(session.index, bytes(data))


def test_bytes_that_are_no_state_are_refused() -> None:
    index = session_of(spines_of({"s": PAIR}, STOCK)).index
    with pytest.raises(PlanError, match="no saved state"):
        restore(index, b"something else")


def test_a_state_that_was_cut_short_is_refused() -> None:
    session = session_of(spines_of({"s": PAIR}, STOCK))
    session.feed([columns_of(STOCK, rows(("A", 1, 1)))])
    with pytest.raises(PlanError, match="cut short"):
        restore(session.index, save(session)[:-8])

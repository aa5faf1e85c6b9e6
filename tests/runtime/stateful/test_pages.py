"""Pages of runs: a session goes on from its pages as if nothing had happened, also under another plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.sequences.book import STATIC, STOCK, Found, columns_of, session_of, spines_of, take
from tests.sequences.patterns import SCHEMAS, S, T, books, events

from headgate.columns import Columns
from headgate.errors import PlanError
from headgate.runtime.stateful.pages import EventIds, Page, Pages, decode
from headgate.sequences.engine import Index, Session
from headgate.sequences.publish_levels import Subscription

PAIR = "SELECT e1.price AS p, e2.price AS q FROM stock NEXT {$2.name = $1.name} stock"
SUM = "SELECT total FROM stock FOLD {$2.name = $1.name, TRUE, SUM(price) AS total, FIRST(name) AS who} stock"
TEXT = "SELECT e2.name AS n FROM stock NEXT {$2.name CONTAINS $1.name} stock"
_APART = 1000
"""Row numbers of a bucket are those of all its streams together, so the second stream begins here."""


def rows(*events: tuple[str, float, int]) -> list[tuple[Any, ...]]:
    return [(name, float(price), 1, at) for name, price, at in events]


def saved(session: Session, fed: Sequence[Columns]) -> list[bytes]:
    """The pages of a session that was fed these events."""
    numbers = np.concatenate([columns.row_numbers for columns in fed])
    ids = EventIds()
    ids.add(numbers, pa.array([str(n) for n in numbers.tolist()]), np.zeros(len(numbers), np.uint64))
    return [data for _, data in Pages().changed(session, ids, everything=True) if data is not None]


def restored(index: Index, pages: Sequence[bytes], closed: int | None) -> tuple[Session, int, int]:
    """A session from pages, how many runs they had, and how many of these go on."""
    session = index.session()
    session.clock.resume(closed)
    counts = [decode(session, Page.of(data), EventIds()) for data in pages]
    return session, sum(there for there, _ in counts), sum(kept for _, kept in counts)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=books(), s=events(), t=events(), time=st.integers(0, 8))
def test_a_restored_session_gives_what_the_saved_one_would_have_given(
    texts: dict[str, str], s: Any, t: Any, time: int
) -> None:
    note(str(texts))
    session = session_of(spines_of(texts, *SCHEMAS))
    early = [columns_of(S, [r for r in s if r[4] <= time]), columns_of(T, [r for r in t if r[4] <= time], _APART)]
    session.feed(early)
    again, there, kept = restored(session.index, saved(session, early), session.closed)
    assert there == kept
    late = [
        columns_of(S, [r for r in s if r[4] > time], len(early[0])),
        columns_of(T, [r for r in t if r[4] > time], _APART + len(early[1])),
    ]
    assert str(list(again.feed(late))) == str(list(session.feed(late)))


def test_subscriptions_that_stay_keep_their_runs_when_others_come_and_go() -> None:
    old = session_of(spines_of({"pair": PAIR, "sum": SUM, "text": TEXT}, STOCK))
    early = columns_of(STOCK, rows(("A", 1, 1), ("B", 2, 2)))
    old.feed([early])
    spines = spines_of({"new": PAIR.replace("e1.price AS p", "e1.vol AS v"), "text": TEXT, "pair": PAIR}, STOCK)
    index = Index([Subscription(n, s, since=2 if n == "new" else None) for n, s in spines.items()], STATIC)
    session, there, kept = restored(index, saved(old, [early]), old.closed)
    assert (there, kept) == (6, 4)
    found: Found = {"new": [], "text": [], "pair": []}
    take(found, session.feed([columns_of(STOCK, rows(("A", 3, 3), ("A", 4, 4)), 2)]))
    assert found["pair"] == [(1, 3, "p=1.0, q=3.0"), (3, 4, "p=3.0, q=4.0")]
    assert found["text"] == [(1, 3, "n='A'"), (3, 4, "n='A'")]
    assert found["new"] == [(3, 4, "v=1, q=4.0")], "a newcomer does not inherit the runs of a state it shares"


def one_page() -> bytes:
    session = session_of(spines_of({"s": PAIR}, STOCK))
    early = columns_of(STOCK, rows(("A", 1, 1)))
    session.feed([early])
    (data,) = saved(session, [early])
    return data


def test_an_unknown_version_is_refused() -> None:
    data = bytearray(one_page())
    data[4] = 99
    with pytest.raises(PlanError, match=r"has version 99, this program reads version"):
        Page.of(bytes(data))


def test_bytes_that_are_no_page_are_refused() -> None:
    with pytest.raises(PlanError, match="no page of runs"):
        Page.of(b"something else")


def test_a_page_that_was_cut_short_is_refused() -> None:
    data = one_page()
    with pytest.raises(PlanError, match="cut short"):
        Page.of(data[: len(data) // 2])

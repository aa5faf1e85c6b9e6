"""A bucket survives an engine that raises: what raises is set aside with its reason, and the others go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.stateful.pipeline import Pipeline, book_of
from tests.runtime.stateful.test_changes import NOW, PAIR, RISE, stock, tick, told
from tests.sequences.book import STOCK, columns_of

from headgate.columns import Columns
from headgate.match.static import FilterStatic
from headgate.plan.sequence_book import SequenceBook
from headgate.sequences.engine import Session

Raises = Callable[[Session, Columns], bool]


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[Raises], None]:
    """Makes the engine raise in the middle of its work: what it has done by then stays done."""

    def install(raises: Raises) -> None:
        original = Session.feed

        def feed(self: Session, batches: Any, *more: Any) -> Any:
            found = original(self, batches, *more)
            if any(raises(self, columns) for columns in batches if len(columns)):
                raise ZeroDivisionError("a defect")
            return found

        monkeypatch.setattr(Session, "feed", feed)

    return install


def holds(columns: Columns, name: str) -> bool:
    found: Any = columns[("name",)].values
    return name in found.to_pylist()


@pytest.mark.parametrize("restart", [False, True])
def test_an_event_that_the_engine_raises_on_is_set_aside(broken: Any, restart: bool) -> None:
    broken(lambda session, columns: holds(columns, "poison"))
    pipeline = Pipeline(book_of({"pair": PAIR}, [STOCK]), NOW, buckets=1)
    pipeline.batch(stock(tick("a", "IBM", 1, 1)))
    pipeline.batch(stock(tick("p", "poison", 1, 2), tick("b", "IBM", 2, 3), tick("c", "SAP", 1, 4)))
    if restart:
        pipeline.forget()
    pipeline.batch(stock(tick("q", "poison", 1, 5), tick("d", "SAP", 2, 6), tick("e", "IBM", 2, 7)))
    pipeline.batch(stock(tick("end", "", 0, 9)))
    assert told(pipeline) == [("pair", "b"), ("pair", "d"), ("pair", "e")]
    reason = "set aside by sequences, because matching failed: ZeroDivisionError: a defect"
    assert pipeline.errors == [("p", reason), ("q", reason)]


@pytest.mark.parametrize("restart", [False, True])
def test_a_subscription_that_the_engine_raises_on_is_set_aside_and_the_others_keep_their_runs(
    broken: Any, restart: bool
) -> None:
    broken(lambda session, columns: holds(columns, "poison") and "bad" in session.index.names)
    texts = {f"pair{i}": PAIR.replace("{", f"{{$2.vol > -{i} AND ") for i in range(4)}
    pipeline = Pipeline(book_of({**texts, "bad": PAIR}, [STOCK]), NOW, buckets=1)
    pipeline.batch(stock(tick("a", "IBM", 1, 1)))
    pipeline.batch(stock(tick("p", "poison", 1, 2), tick("b", "IBM", 2, 3), tick("c", "SAP", 1, 4)))
    pipeline.batch(stock(tick("q", "poison", 1, 5), tick("d", "SAP", 2, 6)))
    if restart:
        pipeline.forget()
    pipeline.batch(stock(tick("e", "IBM", 2, 9)))
    pipeline.batch(stock(tick("end", "", 0, 10)))
    ends = ("b", "d", "e", "q")
    assert [t for t in told(pipeline) if t[0] != "bad"] == [(name, e) for name in texts for e in ends]
    assert [event for event, _ in pipeline.errors] == ["p"], "it is set aside until the book changes"


def test_a_subscription_that_was_set_aside_is_tried_again_when_the_book_changes(broken: Any) -> None:
    defect = [True]
    broken(lambda session, columns: defect[0] and holds(columns, "poison") and "bad" in session.index.names)
    subs = book_of({"pair": PAIR, "bad": RISE}, [STOCK])
    pipeline = Pipeline(subs, NOW, buckets=1)
    pipeline.batch(stock(tick("a", "poison", 1, 1), tick("b", "poison", 2, 2), tick("c", "SAP", 1, 3)))
    assert told(pipeline) == [("pair", "b")]
    subs.add("other", PAIR)
    defect[0] = False
    pipeline.batch(stock(tick("d", "poison", 1, 4), tick("e", "poison", 2, 5), tick("end", "", 0, 9)))
    assert ("bad", "e") in told(pipeline)


def test_a_part_of_a_book_that_was_opened_from_a_file_matches_as_it_did(tmp_path: Path) -> None:
    subs = book_of({"pair": PAIR, "bad": PAIR.replace("{", "{$2.vol > 0 AND ")}, [STOCK])
    SequenceBook.of(subs.compile(), 1).save(tmp_path / "book")
    opened = SequenceBook.open(tmp_path / "book").compiled("stock.name", 0)
    assert opened is not None
    reduced = opened.without({"bad"})
    assert (reduced.index.names, reduced.emits.tolist()) == (["pair"], [True])
    events = columns_of(STOCK, [("IBM", 1.0, 1, 1), ("SAP", 1.0, 1, 2), ("IBM", 2.0, 1, 3)])
    assert [(m["subscription"], m["event"]) for m in reduced.index.session().feed([events])] == [("pair", 2)]


def test_static_predicates_that_raise_on_the_way_to_the_buckets_are_decided_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = FilterStatic.hits

    def hits(self: FilterStatic, columns: Columns) -> Any:
        if holds(columns, "poison"):
            raise ZeroDivisionError("a defect")
        return original(self, columns)

    monkeypatch.setattr(FilterStatic, "hits", hits)
    text = "SELECT e2.price AS p FROM FILTER {price > 100} (stock) NEXT {$2.name = $1.name AND $2.vol > 0} stock"
    pipeline = Pipeline(book_of({"s": text}, [STOCK]), NOW, buckets=1)
    events = [tick("a", "IBM", 101, 1), tick("p", "poison", 102, 2), tick("b", "IBM", 2, 3), tick("end", "", 0, 9)]
    pipeline.batch(stock(*events))
    assert told(pipeline) == [("s", "b")]
    assert [event for event, _ in pipeline.errors] == ["p"]

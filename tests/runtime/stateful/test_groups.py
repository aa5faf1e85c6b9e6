"""Which sequences are keyed, by what, and which are global."""

from __future__ import annotations

import pytest
from tests.runtime.stateful.pipeline import book_of
from tests.sequences.book import STOCK, select

from headgate.plan.sequence_book import SequenceBook
from headgate.schema import Schema

NEWS = Schema.of("news", {"symbol": "string", "tone": "bigint", "tags": "array<string>", "at": "bigint"}, "at")
PAIR = "SELECT e2.price AS p FROM stock NEXT {$2.name = $1.name} stock"

_PAIRED = " stock NEXT {$2.name = $1.name} stock) NEXT {name = $1.p} stock"


def groups(**texts: str) -> dict[str, str]:
    book = SequenceBook.of(book_of(texts, [STOCK, NEWS]).compile(), 4)
    return {name: p.group for name, p in book.placed.items()}


@pytest.mark.parametrize(
    ("text", "group"),
    [
        (PAIR, "stock.name"),
        ("SELECT e2.price AS p FROM stock NEXT {$1.name = name AND price > 3} stock", "stock.name"),
        ("SELECT e2.price AS p FROM stock NEXT {name = $1.name OR price > 3} stock", "global"),
        ("SELECT e2.price AS p FROM stock NEXT {NOT name = $1.name} stock", "global"),
        ("SELECT e2.price AS p FROM stock NEXT stock", "global"),
        ("SELECT e2.price AS p FROM stock NEXT {vol = $1.price} stock", "global"),
        ("SELECT e2.vol AS p FROM FILTER {vol = 3} (stock) NEXT {vol = 3} stock", "stock.vol"),
        ("SELECT e2.vol AS p FROM FILTER {vol = 3} (stock) NEXT {vol = 4} stock", "global"),
        ("SELECT e2.vol AS p FROM FILTER {vol = 3} (stock) NEXT FILTER {vol = 3} (stock)", "stock.vol"),
        ("SELECT n FROM stock FOLD {name = $.name, TRUE, COUNT(*) AS n} stock", "stock.name"),
        ("SELECT n FROM stock FOLD {name = $1.name AND vol > $.vol, TRUE, COUNT(*) AS n} stock", "stock.name"),
        ("SELECT e2.tone AS t FROM stock NEXT {symbol = $1.name} news", "news.symbol,stock.name"),
        ("SELECT e2.tone AS t FROM stock NEXT {tags = $1.name} news", "global"),
        ("SELECT e1.price AS p FROM stock ABSENT {name = $1.name} stock WITHIN 5", "stock.name"),
        (
            select(
                "e2.name AS n",
                "(SELECT e1.name AS p FROM stock NEXT {$2.name = $1.name} stock) NEXT {name = $1.p} stock",
            ),
            "stock.name",
        ),
        (
            select(
                "e2.name AS n", "(SELECT e1.vol AS p FROM stock NEXT {$2.name = $1.name} stock) NEXT {vol = $1.p} stock"
            ),
            "global",
        ),
        ("SELECT e2.name AS n FROM (stock UNION stock) NEXT {name = $1.name} stock", "stock.name"),
    ],
)
def test_a_sequence_is_keyed_if_every_step_must_agree_in_one_attribute(text: str, group: str) -> None:
    assert groups(s=text) == {"s": group}


def test_in_default_mode_a_missing_value_may_equal_another_so_nothing_is_keyed() -> None:
    book = SequenceBook.of(book_of({"s": PAIR}, [STOCK], "default").compile(), 4)
    assert book.placed["s"].group == "global"


def test_a_producer_and_its_consumer_share_a_group_if_the_key_is_published() -> None:
    made = "SELECT e1.name AS who, e2.price AS p FROM stock NEXT {name = $1.name} stock PUBLISH pairs"
    assert groups(p=made, c="SELECT e2.vol AS v FROM pairs NEXT {name = $1.who} stock") == {
        "p": "stock.name",
        "c": "stock.name",
    }


def test_a_consumer_without_the_key_does_not_move_its_producer() -> None:
    made = "SELECT e1.vol AS v FROM stock NEXT {name = $1.name} stock PUBLISH pairs"
    texts = {"p": made, "c": "SELECT e2.v AS v FROM pairs NEXT {v > $1.v} pairs"}
    assert groups(**texts) == {"p": "stock.name", "c": "global"}
    book = SequenceBook.of(book_of(texts, [STOCK]).compile(), 1)
    made_ = book.compiled("global", 0)
    assert made_ is not None
    assert {s.name: bool(e) for s, e in zip(made_.index.subscriptions, made_.emits, strict=True)} == {
        "p": False,
        "c": True,
    }


def test_the_choice_can_be_read() -> None:
    book = SequenceBook.of(book_of({"a": PAIR, "b": "SELECT * FROM stock NEXT stock"}, [STOCK]).compile(), 4)
    assert book.explain() == {
        "a": "keyed by stock.name: runs are spread over the buckets by its value",
        "b": "global: no attribute must be equal in all its steps, so one worker sees all its events",
    }

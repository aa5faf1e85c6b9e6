"""Names in patterns: what each form reaches, and what is said where one reaches nothing."""

from __future__ import annotations

import pytest
from tests.sequences.book import STOCK, spines_of

from headgate.errors import PlanError
from headgate.language.catalogue import Catalogue
from headgate.language.parser import parse_body
from headgate.sequences.scopes import check_pattern
from headgate.sequences.spine import publish_order


def problems(text: str) -> list[str]:
    body = parse_body(text)
    scoped = check_pattern(body, Catalogue(streams={"stock": STOCK}))  # type: ignore[arg-type]  # these are patterns
    assert all(p.at >= 0 for p in scoped.problems)
    return [p.message for p in scoped.problems]


def paths(text: str) -> list[tuple[str, ...]]:
    """Where the items of SELECT read."""
    return [item.expression.path for item in spines_of({"s": text}, STOCK)["s"].items]  # type: ignore[attr-defined]  # they are attributes


def test_a_bare_name_in_select_is_that_of_the_most_recent_event() -> None:
    assert paths("SELECT price, e1.price AS first FROM stock NEXT stock") == [("#1", "price"), ("#0", "price")]


def test_an_aggregate_is_found_by_its_name_and_through_the_alias_of_its_fold() -> None:
    text = "SELECT n, run.n AS m FROM stock FOLD {TRUE, TRUE, COUNT(*) AS n} stock AS run NEXT stock"
    assert paths(text) == [("@1", "n"), ("@1", "n")]


def test_select_star_names_attributes_by_alias_and_aggregates_by_name() -> None:
    spine = spines_of({"s": "SELECT * FROM stock AS a FOLD {TRUE, TRUE, COUNT(*) AS n} stock"}, STOCK)["s"]
    assert [i.name for i in spine.items] == [
        "a_name", "a_price", "a_vol", "a_at", "e2_name", "e2_price", "e2_vol", "e2_at", "n",
    ]  # fmt: skip


def test_what_absent_waits_for_has_no_values_afterwards() -> None:
    assert problems("SELECT e2.price AS p FROM stock ABSENT {TRUE} stock WITHIN 3") == [
        "e2 did not happen: it is what ABSENT waits for"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "SELECT * FROM stock NEXT {$.price > 1} stock",
            "$ is the last iteration: it has a meaning only in the braces of a FOLD",
        ),
        (
            "SELECT $2.price AS p FROM stock",
            "$2 is the incoming event: it has a meaning only in braces of NEXT, FOLD and ABSENT",
        ),
        ("SELECT * FROM FILTER {$1.price > 1} (stock)", "$1 has no meaning in a FILTER over one stream"),
        ("SELECT * FROM stock AS a NEXT {TRUE} stock AS a", "two events are called a"),
        ("SELECT * FROM FILTER {TRUE} (stock NEXT stock) AS x", "AS x names a FILTER over several events"),
        ("SELECT price + 1 FROM stock", "this item of SELECT needs a name"),
        ("SELECT price, e1.price FROM stock", "SELECT gives two values the name price"),
        ("SELECT * FROM stock NEXT {name > 5} stock", "BIGINT cannot be compared with STRING"),
        ("SELECT * FROM stock NEXT {DUR < 5 MINUTES} stock", "5 MINUTE has no meaning where TIME is BIGINT"),
        ("SELECT * FROM stock FOLD {TRUE, TRUE, SUM(name) AS s} stock", "SUM needs numbers, this is STRING"),
        ("SELECT * FROM stock FOLD {TRUE, TRUE, COUNT(*) AS price} stock", "price is taken already"),
        ("SELECT * FROM nothing", "there is no stream nothing"),
    ],
)
def test_a_name_without_meaning_is_refused(text: str, message: str) -> None:
    assert problems(text) == [message]


def test_all_problems_of_a_text_are_reported_in_its_order() -> None:
    assert len(problems("SELECT zip FROM stock NEXT {x = 1 AND $1.y = 2} stock")) == 3


def test_subscriptions_that_publish_in_a_circle_are_refused() -> None:
    spines = spines_of({"a": "SELECT name FROM stock PUBLISH p", "b": "SELECT name FROM p PUBLISH q"}, STOCK)
    assert publish_order(spines) == [["a"], ["b"]]
    spines["a"] = spines_of({"x": "SELECT name FROM stock PUBLISH q", "a": "SELECT name FROM q PUBLISH p"}, STOCK)["a"]
    with pytest.raises(PlanError, match="in a circle: a -> b -> a"):
        publish_order(spines)

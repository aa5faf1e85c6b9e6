"""What waits for graphs and operators: variables beside attributes, times, and answers that nobody knows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import headgate as hg
from headgate.operators.schedule import Run

PREFIX = "PREFIX : <http://example.org/>;"
WHEN = '_:H <http://example.org/when> "2026-03-01T10:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .'


@hg.operator
def number(event: Any, variable: Any) -> Iterator[tuple[int]]:
    yield (2,)


@hg.operator
def moment(event: Any, variable: Any) -> Iterator[tuple[datetime]]:
    yield (datetime(2026, 3, 1, 10, tzinfo=UTC),)


def book(script: str, **texts: str) -> hg.Plan:
    made = hg.Subscriptions.parse(PREFIX + script, operators=[number, moment])
    for name, text in texts.items():
        made.add(name, text, on="s", missing="default" if name.startswith("default") else "null")
    return made.compile()


def matched(plan: hg.Plan, event: dict[str, Any]) -> list[str]:
    return sorted(str(name) for name in plan.match([event]).column("subscription").to_pylist())


def test_a_variable_is_compared_with_the_default_of_a_missing_attribute() -> None:
    plan = book(
        "CREATE STREAM s (b BIGINT DEFAULT 3, c BIGINT);",
        default_below="number(?z) AND ?z < b",
        default_above="number(?z) AND ?z > b",
        default_without="number(?z) AND ?z < c",
        null="number(?z) AND ?z < b",
    )
    assert matched(plan, {}) == ["default_below"]


TIMES = "CREATE STREAM s (doc GRAPH, at TIMESTAMP);"


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("GRAPH { _:H :when ?t } AND ?t > TIMESTAMP '2026-01-01'", True),
        ("GRAPH { _:H :when ?t } AND ?t < TIMESTAMP '2026-01-01'", False),
        ("GRAPH { _:H :when ?t } AND ?t = at", True),
        ("GRAPH { _:H :when ?t } AND ?t + 1 HOUR > at", True),
        ("GRAPH { _:H :when ?t } AND moment(?t)", True),
        ("moment(?t) AND ?t = at", True),
        ("moment(?t) AND ?t > 5", False),
    ],
)
def test_a_time_is_compared_with_times(text: str, holds: bool) -> None:
    event = {"doc": WHEN, "at": datetime(2026, 3, 1, 10, tzinfo=UTC)}
    assert matched(book(TIMES, it=text), event) == ["it"] * holds


def test_a_time_is_written_as_people_write_it() -> None:
    plan = book(TIMES, graph="GRAPH { _:H :when ?t }", call="moment(?t)")
    rows = plan.match([{"doc": WHEN}]).column("output").to_pylist()
    assert rows == ['{"t":"2026-03-01T10:00:00Z"}'] * 2


def test_a_search_that_was_given_up_is_a_problem_and_neither_true_nor_false() -> None:
    numbers = " ".join(f"_:H <http://example.org/p> {i} ." for i in range(400))
    pattern = "GRAPH { _:H :p ?a . _:H :p ?b . FILTER (?a > ?b) }"
    plan = book("CREATE STREAM s (doc GRAPH);", it=pattern, negated=f"NOT {pattern}", other="GRAPH { _:H :p 5 }")
    matches, errors = plan.match([{"doc": numbers}], errors="collect")
    assert matches.column("subscription").to_pylist() == ["other"]
    assert set(errors.column("code").to_pylist()) == {"limit"}


def test_a_graph_alone_does_not_pass_the_scheduler_of_the_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = book(
        "CREATE STREAM s (doc GRAPH, n BIGINT);",
        alone="GRAPH { _:H :when ?t }",
        both="n > 1 AND GRAPH { _:H :when ?t }",
        negated="NOT GRAPH { _:H :where ?t }",
        either="GRAPH { _:H :where ?t } OR n > 1",
        joined="GRAPH { _:H :when ?t } AND GRAPH { _:H :when ?t } AND ?t > TIMESTAMP '2026-01-01'",
    )

    def refuse(*_: Any) -> None:
        raise AssertionError("the scheduler was asked")

    monkeypatch.setattr(Run, "begin", refuse)
    assert matched(plan, {"doc": WHEN, "n": 2}) == ["alone", "both", "either", "joined", "negated"]


def test_in_default_mode_nothing_holds_of_a_document_that_is_missing() -> None:
    plan = book(
        "CREATE STREAM s (doc GRAPH);", default_not="NOT GRAPH { _:H :p ?x }", null_not="NOT GRAPH { _:H :p ?x }"
    )
    assert matched(plan, {}) == ["default_not"]

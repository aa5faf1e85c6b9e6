"""Isolation: whatever an operator does, the caller gets an answer."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from headgate.columns import Columns
from headgate.language.parser import parse_body
from headgate.operators import VAR, Operator, operator
from headgate.operators.answer import ERROR, FALSE, TRUE
from headgate.operators.caller import Caller
from headgate.operators.engine import OperatorEngine, Outcome


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


COLUMNS = Columns.of("s", {"n": ("bigint", [1, 2, 3, 1]), "at": ("timestamp", [0, 1, None, 0])})


def run(op: Operator, text: str, caller: Caller | None = None) -> Outcome:
    engine = OperatorEngine([op], caller=caller or Caller(cache=0))
    try:
        return engine.run(engine.compile([parse_body(text)]), COLUMNS, trace=True)
    finally:
        engine.close()


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (42, "42 is neither a bool nor an iterable of tuples"),
        ("yes", "'yes' is neither a bool"),
        (True, "True does not say what the 1 variable"),
        ([3], "the row 3 is not a tuple"),
        ([(1, 2)], r"the row \(1, 2\) has 2 value"),
        ([(object(),)], "a value of type object cannot be bound"),
        ([(i,) for i in range(9)], "more than 5 rows"),
    ],
)
def test_a_wrong_return_is_an_error_that_says_what_came_back(returned: Any, message: str) -> None:
    @operator(rows=5)
    def p(event: Any, x: Any) -> Any:
        return returned

    outcome = run(p, "p(?x)")
    assert len(outcome.hits) == 0
    assert len(outcome.hits.problems) == 4
    assert re.search(message, outcome.hits.problems[0].reason)


def test_an_exception_inside_a_generator_is_caught_too() -> None:
    @operator
    def p(event: Any, x: Any) -> Iterator[tuple[int]]:
        yield (1,)
        raise OSError("disk gone")

    assert run(p, "p(?x)").hits.problems[0].reason == "p raised OSError: disk gone"


def test_a_call_that_takes_too_long_is_given_up_and_the_next_one_answered() -> None:
    release = threading.Event()

    @operator(timeout=0.2, workers=1, needs=["n"])
    def p(event: Any) -> bool:
        if event["n"] == 2:
            release.wait(20)
        return True

    outcome = run(p, "p()")
    release.set()
    assert outcome.hits.event.tolist() == [0, 2, 3]
    assert [(f.event, f.code) for f in outcome.hits.problems] == [(1, "operator.timeout")]


def test_a_circuit_opens_after_failures_in_a_row_and_tries_again_after_a_pause() -> None:
    clock, calls = Clock(), []

    @operator(breaker=2)
    def p(event: Any) -> bool:
        calls.append(event["n"])
        raise ValueError("no")

    caller = Caller(pause=10.0, clock=clock, cache=0)
    outcome = run(p, "p()", caller)
    assert len(calls) == 2
    assert [f.code for f in outcome.hits.problems] == ["operator.raised"] * 2 + ["operator.circuit"] * 2
    clock.now = 11.0
    run(p, "p()", caller)
    assert len(calls) == 3


def test_without_a_breaker_an_operator_is_called_however_often_it_failed() -> None:
    calls = []

    @operator
    def p(event: Any) -> bool:
        calls.append(event["n"])
        raise ValueError("no")

    caller = Caller(cache=0)
    for _ in range(3):
        run(p, "p()", caller)
    assert len(calls) == 12


def test_a_pure_operator_is_called_once_for_equal_content() -> None:
    calls = []

    @operator(pure=True, needs=["n"])
    def p(event: Any) -> bool:
        calls.append(event["n"])
        return True

    assert len(run(p, "p()", Caller()).hits) == 4
    assert calls == [1, 2, 3]


def test_a_batch_operator_gets_the_events_of_a_window_as_a_table() -> None:
    seen = []

    def together(table: Any, arguments: list[tuple[Any, ...]]) -> list[bool]:
        seen.append((table.column("n").to_pylist(), arguments))
        return [n > 1 for n in table.column("n").to_pylist()]

    @operator(batch=together, needs=["n"])
    def p(event: Any, limit: int) -> bool:
        raise AssertionError("the batch form is used")

    assert run(p, "p(7)").hits.event.tolist() == [1, 2]
    assert seen == [([1, 2, 3, 1], [(7,)] * 4)]


def test_a_batch_of_the_wrong_length_fails_for_all_of_it() -> None:
    @operator(batch=lambda table, arguments: [True], needs=["n"])
    def p(event: Any) -> bool:
        return True

    assert "1 results for 4 calls" in run(p, "p()").hits.problems[3].reason


def test_threads_answer_the_events_of_a_window_side_by_side() -> None:
    together = threading.Barrier(4, timeout=20)

    @operator(concurrency="threads", workers=4)
    def p(event: Any) -> bool:
        together.wait()
        return True

    assert len(run(p, "p()").hits) == 4


def test_an_operator_sees_only_what_it_needs_with_instants_as_datetimes() -> None:
    seen: list[Any] = []

    @operator(needs=["at"])
    def p(event: Any) -> bool:
        seen.append((list(event), event["at"]))
        with pytest.raises(KeyError, match="sees no attribute n"):
            event["n"]
        return True

    run(p, "p()")
    assert seen[0][0] == ["at"]
    assert seen[0][1].isoformat() == "1970-01-01T00:00:00+00:00"
    assert seen[2][1] is None


def test_answers_count_their_truth() -> None:
    @operator
    def p(event: Any, x: Any) -> Any:
        if event["n"] == 3:
            raise ValueError
        return [(1,)] if event["n"] == 1 and x is VAR else []

    outcome = run(p, "p(?x)")
    assert [outcome.asked[e][0].answer.truth for e in range(4)] == [TRUE, FALSE, ERROR, TRUE]

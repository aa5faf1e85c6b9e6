"""A timeout is the time of one call: waiting does not count, and what is late, hangs or dies takes no other call with it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from headgate.columns import Columns
from headgate.language.parser import parse_body
from headgate.operators import Operator, operator
from headgate.operators.caller import Caller
from headgate.operators.engine import OperatorEngine, Outcome

EVENTS = 20
"""More than one window."""


def run(op: Operator, *, events: int = EVENTS, apart: bool = False, caller: Caller | None = None) -> Outcome:
    engine = OperatorEngine([op], caller=caller or Caller(cache=0))
    if apart:
        engine.run_apart()
    columns = Columns.of("s", {"n": ("bigint", list(range(events)))})
    try:
        return engine.run(engine.compile([parse_body(f"{op.name}()")]), columns)
    finally:
        engine.close()


def codes(outcome: Outcome) -> dict[int, Any]:
    return {f.event: f.code for f in outcome.hits.problems}


def test_waiting_for_a_thread_does_not_count() -> None:
    @operator(timeout=2.0, concurrency="threads", workers=1)
    def p(event: Any) -> bool:
        time.sleep(0.2)
        return True

    assert len(run(p).hits) == EVENTS


def test_threads_that_hang_take_no_other_call_with_them() -> None:
    release = threading.Event()

    @operator(timeout=0.5, concurrency="threads", workers=4)
    def p(event: Any) -> bool:
        if event["n"] in (0, 1, 2, 3):
            release.wait(60)
        return True

    outcome = run(p)
    release.set()
    assert outcome.hits.event.tolist() == list(range(4, EVENTS))
    assert codes(outcome) == dict.fromkeys(range(4), "operator.timeout")


def test_threads_that_hang_for_ever_are_not_made_without_end() -> None:
    release, begun = threading.Event(), []

    @operator(timeout=0.05)
    def p(event: Any) -> bool:
        begun.append(event["n"])
        return release.wait(60)

    outcome = run(p, caller=Caller(cache=0, stuck=3))
    release.set()
    assert len(begun) == 3
    assert [codes(outcome)[n] for n in range(5)] == ["operator.timeout"] * 3 + ["operator.stuck"] * 2
    assert "3 earlier calls of p still hang" in outcome.hits.problems[3].reason


@pytest.mark.parametrize("form", ["processes", "apart"])
def test_a_slow_call_in_a_process_takes_no_other_call_with_it(form: str) -> None:
    @operator(timeout=1.0, workers=2, concurrency="processes" if form == "processes" else None)
    def p(event: Any) -> bool:
        if event["n"] == 7:
            time.sleep(60)
        return True

    outcome = run(p, apart=form == "apart")
    assert codes(outcome) == {7: "operator.timeout"}
    assert len(outcome.hits) == EVENTS - 1


@pytest.mark.parametrize("form", ["processes", "apart"])
def test_a_process_that_dies_is_an_error_of_its_own_call(form: str) -> None:
    @operator(workers=2, concurrency="processes" if form == "processes" else None)
    def p(event: Any) -> bool:
        import os

        if event["n"] in (7, 8):
            os._exit(3)
        return True

    outcome = run(p, apart=form == "apart")
    assert codes(outcome) == {7: "operator.died", 8: "operator.died"}
    assert len(outcome.hits) == EVENTS - 2


def test_an_operator_that_cannot_be_started_in_a_process_is_an_error_of_its_calls() -> None:
    class Unpicklable:
        def __reduce__(self) -> Any:
            return eval, ("1/0",)

    @operator(concurrency="processes")
    def p(event: Any, broken: Any = Unpicklable()) -> bool:  # noqa: B008 - travels with the operator
        return True

    outcome = run(p, events=2)
    assert codes(outcome) == {0: "operator.start", 1: "operator.start"}
    assert "p cannot be started in a process: ZeroDivisionError" in outcome.hits.problems[0].reason


def test_what_an_operator_prints_in_a_process_does_not_disturb_its_answers() -> None:
    @operator(concurrency="processes", workers=1)
    def p(event: Any) -> bool:
        print("hello" * 10_000, flush=True)  # noqa: T201 - that is the point
        return bool(event["n"] % 2)

    assert run(p).hits.event.tolist() == list(range(1, EVENTS, 2))


@pytest.mark.parametrize("form", ["inline", "threads", "processes"])
def test_a_batch_call_that_is_late_is_tried_again_in_halves(form: Any) -> None:
    def together(table: Any, arguments: list[tuple[Any, ...]]) -> list[bool]:
        if 7 in table.column("n").to_pylist():
            time.sleep(20)
        return [True] * len(arguments)

    @operator(batch=together, timeout=0.5, needs=["n"], concurrency=form)
    def p(event: Any) -> bool:
        raise AssertionError("the batch form is used")

    outcome = run(p)
    assert codes(outcome) == {7: "operator.timeout"}
    assert len(outcome.hits) == EVENTS - 1


def test_a_batch_call_that_dies_or_raises_is_tried_again_in_halves() -> None:
    def together(table: Any, arguments: list[tuple[Any, ...]]) -> list[bool]:
        import os

        if 7 in table.column("n").to_pylist():
            os._exit(1)
        if 9 in table.column("n").to_pylist():
            raise ValueError("nine")
        return [True] * len(arguments)

    @operator(batch=together, needs=["n"], concurrency="processes")
    def p(event: Any) -> bool:
        raise AssertionError("the batch form is used")

    outcome = run(p)
    assert codes(outcome) == {7: "operator.died", 9: "operator.raised"}
    assert len(outcome.hits) == EVENTS - 2


def test_a_thread_that_hangs_does_not_keep_the_interpreter_from_its_end() -> None:
    script = (
        "import time, headgate as hg\n"
        "@hg.operator(timeout=0.1)\n"
        "def p(event):\n    time.sleep(600)\n"
        "subs = hg.Subscriptions(operators=[p])\n"
        "subs.extend('CREATE STREAM s (n BIGINT); CREATE SUBSCRIPTION a ON s AS p();')\n"
        "print(subs.compile().match([{'n': 1}], errors='collect')[1]['code'].to_pylist())\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert "operator.timeout" in ended.stdout

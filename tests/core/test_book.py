"""Any book that `add` accepts compiles, and any events, hostile ones included, match as the oracles say.

1,000 cases in every run, 20,000 at night, over all families: declared and undeclared streams, all types and modes, arrays,
operators with variables and constraints, graphs, sequences with FOLD and COLLECT, PUBLISH, texts that are refused.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.core.cases import Case, cases, smaller
from tests.core.judge import Verdict, comparable, judge
from tests.core.operators import OPERATORS

import headgate as hg
from headgate.results import QUARANTINED

PLAIN = settings(max_examples=1_000, deadline=None, suppress_health_check=list(HealthCheck))
LONG = settings(PLAIN, max_examples=20_000, report_multiple_bugs=False)
_PARTIAL = ("late", "total", "quota", "graph", "rdf", "operator")
"""The beginnings of the codes of problems that keep an event from some subscriptions only."""


def build(case: Case) -> hg.Subscriptions:
    """The book of a case. What is refused says where it is wrong, and leaves the book as it was."""
    book = hg.Subscriptions(operators=OPERATORS).extend(case.script)
    for s in case.subscriptions:
        problems: list[hg.LanguageError] = []
        try:
            book.add(s.name, s.text, on=s.stream, missing=s.missing)
        except hg.LanguageErrors as several:
            problems = several.errors
        except hg.LanguageError as one:
            problems = [one]
        unplaced = [p.message for p in problems if p.place is None]
        assert not unplaced, unplaced
        assert (s.name in book) == (not problems)
    return book


def found(table: Any) -> list[tuple[str, int, str, str]]:
    rows = [(r["stream"], r["event"], r["subscription"], r["output"]) for r in table.to_pylist()]
    return sorted((s, e, n, comparable(None if o is None else json.loads(o))) for s, e, n, o in rows)


def check(case: Case) -> None:
    book = build(case)
    plan = book.compile()
    events = {stream: given for stream, given in case.events.items() if stream in plan.schemas}
    matches, errors = plan.match(events, errors="collect")
    verdict = judge(book, plan, events)
    assert found(matches) == verdict.matches
    check_errors(verdict, errors.to_pylist())


def check_errors(verdict: Verdict, errors: list[dict[str, Any]]) -> None:
    """An event takes part, or is on the error channel with its reason; a pair without an answer is there too."""
    assert all(e["reason"] for e in errors)
    assert [e["reason"] for e in errors if e["code"] == QUARANTINED] == []
    told = {(e["stream"], e["event"]) for e in errors}
    whole = {(e["stream"], e["event"]) for e in errors if not e["code"].startswith(_PARTIAL)}
    assert whole == verdict.rejected
    assert {(stream, event) for stream, event, _ in verdict.problems} <= told


def failure(case: Case) -> Exception | None:
    """What is wrong with a case."""
    try:
        check(case)
    except Exception as problem:  # noqa: BLE001 - any exception is a failure of the case
        return problem
    return None


def check_all(case: Case) -> None:
    problem = failure(case)
    if problem is None:
        return
    kind, smallest = type(problem), case
    while less := next((c for c in smaller(smallest) if type(failure(c)) is kind), None):
        smallest = less
    raise AssertionError(f"{smallest!r} fails") from failure(smallest)


@pytest.mark.timeout(1200)
@PLAIN
@given(cases())
def test_any_book_matches_any_events_as_the_oracles_do(case: Case) -> None:
    check_all(case)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@LONG
@given(cases())
def test_any_book_matches_any_events_as_the_oracles_do_at_length(case: Case) -> None:
    check_all(case)

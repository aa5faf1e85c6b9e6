"""Operators inside sequences: asked when some run or start could use the answer, once an event, and never in vain."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st
from tests.sequences.book import Found, columns_of, take
from tests.sequences.patterns import SCHEMAS, S, T, books, events

import headgate as hg
from headgate.errors import PlanError
from headgate.language.ast import Pattern
from headgate.language.catalogue import Catalogue
from headgate.language.parser import parse_body
from headgate.plan.compile_context import CompileContext, Signatures
from headgate.predicates import values
from headgate.sequences.automaton import Options
from headgate.sequences.engine import Index
from headgate.sequences.publish_levels import Subscription
from headgate.sequences.scopes import check_pattern

STREAM = "CREATE STREAM cam (id BIGINT, place STRING, people BIGINT, at BIGINT) TIME at;"


class Camera:
    """A book over cameras, and the calls of its operator as (event, argument)."""

    def __init__(self, *texts: str, fail: int | None = None) -> None:
        self.calls: list[tuple[int, int]] = []

        @hg.operator(cost=5.0)
        def crowded(event: Any, n: int) -> bool:
            self.calls.append((event["id"], n))
            if event["id"] == fail:
                raise ValueError("no picture")
            return bool(event["people"] > n)

        self.book = hg.Subscriptions(operators=[crowded]).extend(STREAM)
        for i, text in enumerate(texts):
            self.book.add(f"s{i}", text)

    def match(self, *rows: tuple[str, int]) -> list[tuple[int, str]]:
        table = self.book.compile().match(_events(*rows))
        return [(r["event"], r["subscription"]) for r in table.to_pylist()]


def _events(*rows: tuple[str, int]) -> list[dict[str, Any]]:
    return [{"id": i, "place": place, "people": people, "at": i} for i, (place, people) in enumerate(rows)]


PAIR = "SELECT y.id AS i FROM FILTER {place = 'a'} (cam) AS x NEXT {$2.place = $1.place AND crowded(5)} cam AS y"


def test_an_operator_in_theta_is_asked_only_where_a_run_waits() -> None:
    camera = Camera(PAIR)
    assert camera.match(("b", 9), ("c", 9), ("a", 9), ("b", 9), ("a", 1), ("a", 9)) == [(5, "s0"), (5, "s0")]
    assert camera.calls == [(4, 5), (5, 5)]


def test_an_operator_on_a_forward_edge_waits_for_theta_and_for_its_own_comparisons() -> None:
    camera = Camera(
        "SELECT y.id AS i FROM FILTER {y.people > 2 * x.people AND crowded(5)} "
        "(FILTER {place = 'a'} (cam) AS x NEXT {$2.place = 'b'} cam AS y)"
    )
    assert camera.match(("b", 99), ("a", 4), ("c", 99), ("b", 7), ("a", 4), ("b", 99)) == [(5, "s0")]
    assert camera.calls == [(5, 5)]


def test_an_operator_behind_an_operator_is_asked_only_if_the_first_one_held() -> None:
    camera = Camera("SELECT y.id AS i FROM FILTER {crowded(5)} (cam AS x NEXT {crowded(3)} cam AS y)")
    camera.match(("a", 9), ("a", 1), ("a", 4))
    assert camera.calls == [(1, 3), (2, 3), (2, 5)]


def test_a_call_is_made_once_an_event_however_many_sequences_want_it() -> None:
    camera = Camera(
        "SELECT x.id AS i FROM FILTER {crowded(5)} (cam) AS x",
        "SELECT y.id AS i FROM cam AS x NEXT {crowded(5)} cam AS y",
        "SELECT y.id AS i FROM FILTER {crowded(5)} (cam AS x NEXT {TRUE} cam AS y)",
        "SELECT n AS n FROM cam AS x FOLD {TRUE, crowded(5), COUNT(*) AS n} cam AS y",
    )
    camera.match(("a", 9), ("a", 1), ("a", 9))
    assert sorted(camera.calls) == [(0, 5), (1, 5), (2, 5)]


def test_runs_of_one_epoch_are_looked_at_before_any_of_its_events_is_taken() -> None:
    camera = Camera("SELECT y.id AS i FROM FILTER {place = 'a'} (cam) AS x NEXT {crowded(5)} cam AS y")
    found = camera.book.compile().match([{**e, "at": e["id"] // 2} for e in _events(("a", 9), ("b", 9), ("b", 9))])
    assert [r["event"] for r in found.to_pylist()] == [2]
    assert camera.calls == [(2, 5)]  # the second event has the same time as the first, so no run waits for it


def test_an_operator_sees_what_it_needs_even_if_no_text_mentions_it() -> None:
    camera = Camera("SELECT x.place AS p FROM FILTER {crowded(5)} (cam) AS x")
    assert camera.match(("a", 9)) == [(0, "s0")]


def test_a_failing_operator_is_told_with_the_sequences_that_needed_it() -> None:
    camera = Camera(PAIR, "SELECT x.id AS i FROM FILTER {place = 'a'} (cam) AS x", fail=1)
    matches, errors = camera.book.compile().match(_events(("a", 9), ("a", 9), ("a", 9)), errors="collect")
    # The second event found the operator broken, so the run of the first still waits when the third comes.
    found = [(r["event"], r["subscription"]) for r in matches.to_pylist()]
    assert sorted(found) == [(0, "s1"), (1, "s1"), (2, "s0"), (2, "s0"), (2, "s1")]
    (error,) = errors.to_pylist()
    assert (error["stream"], error["event"]) == ("cam", 1)
    assert error["subscriptions"] == ["s0"]
    assert "no picture" in error["reason"]


def test_a_failing_operator_in_a_union_is_told() -> None:
    camera = Camera("SELECT x.id AS i FROM (FILTER {crowded(5)} (cam) UNION FILTER {place = 'b'} (cam)) AS x", fail=0)
    matches, errors = camera.book.compile().match(_events(("a", 9), ("b", 1)), errors="collect")
    assert [r["event"] for r in matches.to_pylist()] == [1]
    assert "no picture" in errors.to_pylist()[0]["reason"]


# -- equal to comparisons

_INCOMING = re.compile(r"(?<![\w.$)] )(?<![\w.$(*/%+-])(\$2\.[ax]|[ax]) (=|<>|<=?|>=?) (\d(?:\.\d)?)(?![\w.]| [-+*/%])")


def comparing(text: str) -> str:
    """The pattern with more to ask: what asks for nothing compares the incoming event with a constant."""
    text = re.sub(r"(NEXT|ABSENT) \{TRUE", r"\1 {$2.a >= 1", text)
    text = re.sub(r"FOLD \{TRUE", "FOLD {$2.x <= 1.0", text)
    return re.sub(r"FILTER \{TRUE\} \(([ST])\)", r"FILTER {a <= 1} (\1)", text)


def asking(text: str) -> str:
    """Comparisons of the incoming event with a constant, as calls of an operator that compares."""
    return _INCOMING.sub(r"compared('\2', \1, \3)", text)


@hg.operator
def compared(event: Any, op: str, value: Any, constant: Any) -> bool:
    return values.compare(op, value, constant)


def by_engine(texts: dict[str, str], batches: Any, missing: str, options: Options, *, operators: bool) -> Found:
    context = CompileContext([compared])
    catalogue = Catalogue({s.stream: s for s in SCHEMAS}, Signatures(context.registry))
    subscriptions = []
    for name, text in texts.items():
        pattern = parse_body(asking(text) if operators else text)
        assert isinstance(pattern, Pattern)
        scoped = check_pattern(pattern, catalogue)
        # What is asked when ABSENT is over may compare, but not call.
        assume(not (operators and any("when ABSENT is over" in p.message for p in scoped.problems)))
        assert scoped.spine is not None, [str(p) for p in scoped.problems]
        subscriptions.append(Subscription(name, scoped.spine, missing))
        if scoped.spine.publish is not None:
            catalogue.streams[scoped.spine.publish] = scoped.spine.schema
    session = Index(subscriptions, context.static(catalogue), options, {s.stream: s for s in SCHEMAS}).session()
    found: Found = {name: [] for name in texts}
    for batch in batches:
        take(found, session.feed(batch))
    assert not session.errors
    return {name: sorted(rows) for name, rows in found.items()}


def check(texts: dict[str, str], s: Any, t: Any, missing: str, options: Options) -> None:
    texts = {name: comparing(text) for name, text in texts.items()}
    assume(any(asking(text) != text for text in texts.values()))
    for name, text in texts.items():
        note(f"{name}: {asking(text)}")
    batches = [[columns_of(S, s), columns_of(T, t)]]
    try:
        found = by_engine(texts, batches, missing, options, operators=True)
    except PlanError as e:
        assume("sees the incoming event only" not in str(e))
        raise
    assert found == by_engine(texts, batches, missing, options, operators=False)


CASES: dict[str, Any] = {
    "texts": books(late=False),
    "s": events(),
    "t": events(),
    "missing": st.sampled_from(["null", "null", "strict", "default"]),
    "options": st.builds(Options, st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.booleans()),
}


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(**CASES)
def test_sequences_that_ask_operators_equal_those_that_compare(
    texts: dict[str, str], s: Any, t: Any, missing: str, options: Options
) -> None:
    check(texts, s, t, missing, options)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
@given(**CASES)
def test_sequences_that_ask_operators_equal_those_that_compare_at_length(
    texts: dict[str, str], s: Any, t: Any, missing: str, options: Options
) -> None:
    check(texts, s, t, missing, options)


def test_the_rewriting_turns_comparisons_of_the_incoming_event_into_calls() -> None:
    assert asking("FROM S NEXT {$2.a >= 2 AND $1.a < 3} T") == "FROM S NEXT {compared('>=', $2.a, 2) AND $1.a < 3} T"

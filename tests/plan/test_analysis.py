"""What is odd about a book."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate import Subscriptions, operator
from headgate.errors import UnknownName
from headgate.filters.equivalence import Meanings
from headgate.language.catalogue import Catalogue
from headgate.language.forms import cut
from headgate.language.parser import parse_body
from headgate.language.tokens import tokenise
from headgate.oracle.filters import truth
from headgate.plan.analysis import analyse
from headgate.schema import Schema

SCHEMA = Schema.of("s", {"i": "bigint", "b": "boolean", "d": "double"}, not_null=["b"])


def test_contradictions_tautologies_and_duplicates_are_found() -> None:
    made = Subscriptions().stream("s", {"name": "string", "price": "double", "vol": "bigint"})
    for name, text in {
        "cheap": "name = 'IBM' AND price < 100",
        "same": "100 > price AND NOT name <> 'IBM'",
        "never": "vol > 3 AND vol < 4",
        "always": "vol > 3 OR NOT vol > 3 OR vol IS NULL",
        "nearly": "vol > 3 OR vol <= 3",
    }.items():
        made.add(name, text)
    found = [(f.kind, f.subscriptions) for f in made.analyse()]
    assert found == [("contradiction", ("never",)), ("tautology", ("always",)), ("duplicates", ("cheap", "same"))]
    assert str(made.analyse()[0]) == "never can never match: its conditions contradict each other"


def test_covered_subscriptions_are_told_with_their_coverers() -> None:
    made = Subscriptions().stream("s", {"x": "double", "t": "string"})
    for name, text in {
        "low": "x BETWEEN 0 AND 6",
        "high": "x BETWEEN 5 AND 9",
        "inner": "x BETWEEN 2 AND 8",
        "twin": "x >= 2 AND x <= 8",
        "same": "x <= 8 AND x >= 2",
        "all": "x IS NULL OR x = x",
        "none": "x > 9 AND x < 0",
        "text": "t = 'a'",
    }.items():
        made.add(name, text)
    made.add("resting", "x = 1").pause("resting")
    found = [(f.kind, f.subscriptions) for f in made.analyse() if f.kind == "covered"]
    assert found == [("covered", ("inner", "high", "low"))]
    assert str(made.analyse()[-1]) == "inner is covered: whatever it matches, one of high, low matches too"


def test_sequences_and_late_ones_that_others_cover_are_told() -> None:
    @operator
    def busy(event: Any) -> bool:
        return True

    made = Subscriptions([busy]).stream("s", {"x": "double"})
    made.add("asks", "busy()").add("asks_more", "busy() AND x > 1")
    made.add("run", "SELECT * FROM FILTER {x > 1} (s) NEXT {$2.x > $1.x} s")
    made.add("narrow", "SELECT x FROM FILTER {x > 2} (s) NEXT {$2.x > $1.x} s")
    found = [f.message for f in made.analyse() if f.kind == "covered"]
    assert found == [
        "asks_more is covered: whatever it matches, asks matches too",
        "narrow is covered: whatever it matches, run matches too",
    ]


def test_of_two_sequences_that_match_alike_one_is_called_covered() -> None:
    made = Subscriptions().stream("s", {"x": "double"})
    for name in ("one", "two"):
        made.add(name, "SELECT * FROM FILTER {x > 1} (s) NEXT {$2.x > $1.x} s")
    assert [f.subscriptions for f in made.analyse() if f.kind == "covered"] == [("one", "two")]


def test_a_book_that_is_too_large_for_the_time_is_said_to_be_unchecked() -> None:
    made = Subscriptions().stream("s", {"x": "double"})
    for i in range(10):
        made.add(f"n{i}", f"x > {i}")
    last = analyse({n: made[n] for n in made}, Catalogue(streams=dict(made.streams)), budget=0.0)[-1]
    assert (last.kind, last.message) == (
        "unchecked",
        "10 subscriptions were not looked at for cover: the 0 s for it were spent",
    )


def test_what_covers_one_subscription_can_be_asked() -> None:
    made = Subscriptions().stream("s", {"x": "double"}).stream("other", {"x": "double"})
    made.add("wide", "x > 0", on="s").add("narrow", "x > 5", on="s").add("elsewhere", "x > 0", on="other")
    found = made.covered("narrow")
    assert (found.covered, found.by) == (True, ("wide",))
    open_ = made.covered("wide")
    assert open_.covered is False
    assert open_.witness is not None
    assert 0 < open_.witness["x"] <= 5
    with pytest.raises(UnknownName, match="no subscription nobody"):
        made.covered("nobody")


ATOMS = st.sampled_from(
    [
        "i < 2",
        "i <= 1",
        "i = 1",
        "i <> 1",
        "i IN (0, 1)",
        "i >= 2",
        "b",
        "b = FALSE",
        "d > 0.5",
        "d IS NULL",
        "i IS NULL",
    ]
)
TEXTS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(("AND", "OR")), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda t: f"NOT ({t})"),
    ),
    max_leaves=5,
)
ROWS: list[dict[tuple[str, ...], Any]] = [
    {("i",): i, ("b",): b, ("d",): d}
    for i, b, d in product((None, -5, 0, 1, 2, 9), (True, False), (None, 0.0, 0.5, 1.0, float("nan")))
]


@settings(max_examples=150, deadline=None)
@given(a=TEXTS, b=TEXTS, modes=st.tuples(*[st.sampled_from(("null", "strict", "default"))] * 2))
def test_meanings_agree_with_brute_force(a: str, b: str, modes: tuple[str, str]) -> None:
    meanings = Meanings([(cut(tokenise(t)), m) for t, m in zip((a, b), modes, strict=True)], SCHEMA)
    table = [[truth(parse_body(t), row, SCHEMA, m) is True for row in ROWS] for t, m in zip((a, b), modes, strict=True)]
    for number in (0, 1):
        assert meanings.is_contradiction(number) == (not any(table[number]))
        assert meanings.is_tautology(number) == all(table[number])
    assert bool(meanings.duplicates()) == (table[0] == table[1])
    assert meanings.implies(0, 1) == all(y for x, y in zip(*table, strict=True) if x)


@pytest.mark.parametrize(("text", "contradiction"), [("i > 3 AND i < 4", True), ("d > 3 AND d < 4", False)])
def test_between_two_neighbours_there_is_no_whole_number(text: str, contradiction: bool) -> None:
    assert Meanings([(cut(tokenise(text)), "null")], SCHEMA).is_contradiction(0) is contradiction


def test_a_sequence_whose_runs_may_wait_for_ever_is_told() -> None:
    made = Subscriptions().stream("s", {"x": "bigint", "at": "bigint"}, time="at")
    made.add("bounded", "SELECT * FROM s NEXT {$2.x = $1.x AND DUR < 5} s")
    made.add("endless", "SELECT * FROM s NEXT {$2.x = $1.x} s")
    made.add("exact", "SELECT * FROM s NEXT {$2.x = $1.x AND DUR = 5} s")
    assert [(f.kind, f.subscriptions, str(f)) for f in made.analyse()] == [
        (
            "sequence",
            ("endless",),
            "endless: e2 is awaited without an upper bound on DUR: runs may wait for ever",
        ),
        (
            "sequence",
            ("exact",),
            "exact: DUR = 5 holds only if an event comes at that very tick: use >= or <=",
        ),
    ]

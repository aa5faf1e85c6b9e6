"""One book of all families: filters, operators, graphs and sequences in one plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headgate as hg
from headgate.errors import LanguageError

SCRIPT = """
CREATE STREAM stock (name STRING, price DOUBLE, vol BIGINT, people BIGINT, place STRING, g GRAPH, at BIGINT) TIME at;
PREFIX : <http://example.org/>;
CREATE SUBSCRIPTION crowd ON stock AS price > 10 AND crowded();
CREATE SUBSCRIPTION bound ON stock AS near(place, ?m) AND ?m > 3 AND vol = 1;
CREATE SUBSCRIPTION sale ON stock AS GRAPH { _:H a :Sale ; :price ?p . FILTER (?p < 400) } AND price > 10;
CREATE SUBSCRIPTION joined ON stock AS GRAPH { _:H a :Sale ; :price ?p } AND near(place, ?m) AND ?p = 60 * ?m;
CREATE SUBSCRIPTION up ON stock WITH (owner = 'me') AS
    SELECT x.name AS n, y.price AS p
    FROM stock AS x NEXT { $2.name = $1.name AND $2.price > $1.price AND crowded() } stock AS y PUBLISH rises;
CREATE SUBSCRIPTION high AS SELECT u.n AS n FROM FILTER {p > 25} (rises) AS u;
CREATE SUBSCRIPTION plain ON stock AS vol = 2;
"""
GRAPH = "@prefix : <http://example.org/> . _:H a :Sale ; :price 300 ."
EVENTS: list[dict[str, Any]] = [
    {"name": "A", "price": 20.0, "vol": 1, "people": 20, "place": "Bronx", "g": GRAPH, "at": 1},
    {"name": "B", "price": 5.0, "vol": 2, "people": 20, "place": "X", "at": 2},
    {"name": "A", "price": 30.0, "vol": 2, "people": 30, "place": "Yonkers", "at": 3},
]
FOUND = [
    (0, "bound", '{"m":5}'),
    (0, "crowd", None),
    (0, "joined", '{"m":5,"p":300}'),
    (0, "sale", '{"p":300}'),
    (1, "plain", None),
    (2, "crowd", None),
    (2, "high", '{"n":"A"}'),
    (2, "plain", None),
    (2, "up", '{"n":"A","p":30.0}'),
]


class Calls:
    def __init__(self) -> None:
        self.crowded = 0


def book(calls: Calls | None = None) -> hg.Subscriptions:
    @hg.operator(cost=5.0)
    def crowded(event: Any) -> bool:
        if calls is not None:
            calls.crowded += 1
        return bool(event["people"] > 10)

    @hg.operator
    def near(event: Any, place: str, m: Any) -> Any:
        yield (len(place),)
        yield (3,)

    return hg.Subscriptions(operators=[crowded, near]).extend(SCRIPT)


def rows(table: Any) -> list[tuple[int, str, str | None]]:
    return [(r["event"], r["subscription"], r["output"]) for r in table.to_pylist()]


def test_every_family_matches_in_one_plan() -> None:
    assert rows(book().compile().match(EVENTS)) == FOUND


def test_batches_cut_anywhere_give_the_same_matches() -> None:
    whole = book().compile().match(EVENTS)
    with book().compile().session() as session:
        parts = [r for event in EVENTS for r in session.feed([event]).to_pylist()]
    assert parts == whole.to_pylist()


def test_an_operator_is_called_only_where_the_cheap_conditions_leave_it_open() -> None:
    calls = Calls()
    only = book(calls)
    for name in ("high", "up"):
        only.remove(name)
    only.compile().match(EVENTS)
    assert calls.crowded == 2  # the event with price 5 is decided without it


def test_labels_of_a_sequence_travel_into_its_matches() -> None:
    found = book().compile().match(EVENTS).to_pylist()
    assert [r["labels"] for r in found if r["subscription"] == "up"] == ['{"owner":"me"}']


def test_counts_cover_all_families() -> None:
    counts = {r["subscription"]: r["count"] for r in book().compile().match(EVENTS, output="counts").to_pylist()}
    assert counts == {"bound": 1, "crowd": 2, "joined": 1, "sale": 1, "up": 1, "high": 1, "plain": 2}


def test_a_saved_plan_matches_alike_when_it_is_given_the_operators(tmp_path: Path) -> None:
    made = book()
    plan = made.compile()
    plan.save(tmp_path / "book.plan")
    again = hg.Plan.open(tmp_path / "book.plan", operators=list(made._context.registry.values()))
    assert again.match(EVENTS).equals(plan.match(EVENTS))
    assert again.fingerprint == plan.fingerprint


def test_a_failing_operator_is_an_error_of_its_own_subscription() -> None:
    @hg.operator
    def broken(event: Any) -> bool:
        raise ValueError("no camera")

    made = hg.Subscriptions(operators=[broken]).stream("s", {"x": "bigint"})
    made.add("bad", "x > 0 AND broken()").add("good", "x > 0")
    matches, errors = made.compile().match([{"x": 1}, {"x": 0}], errors="collect")
    assert rows(matches) == [(0, "good", None)]
    (error,) = errors.to_pylist()
    assert error["event"] == 0
    assert (error["subscriptions"], error["concerned"]) == (["bad"], 1)
    assert "no camera" in error["reason"]


def test_an_event_without_a_usable_graph_is_on_the_error_channel() -> None:
    made = hg.Subscriptions().extend(
        "CREATE STREAM s (g GRAPH); PREFIX : <http://e.org/>; CREATE SUBSCRIPTION q ON s AS GRAPH { _:H a :A };"
    )
    matches, errors = made.compile().match([{"g": "not turtle at all"}], errors="collect")
    assert (matches.num_rows, errors.num_rows) == (0, 1)


def test_a_late_event_is_late_for_sequences_alone() -> None:
    made = hg.Subscriptions().stream("s", {"x": "bigint", "at": "bigint"}, time="at")
    made.add("pair", "SELECT a.x AS x FROM s AS a NEXT {TRUE} s AS b").add("one", "x = 1")
    with made.compile().session() as session:
        session.feed([{"x": 5, "at": 10}])
        assert rows(session.feed([{"x": 1, "at": 3}])) == [(1, "one", None)]
        assert [r["code"] for r in session.errors().to_pylist()] == ["late"]


def test_two_sequences_that_publish_to_each_other_are_refused() -> None:
    made = hg.Subscriptions().stream("s", {"x": "bigint"})
    made.add("a", "SELECT x AS x FROM s PUBLISH one").add("b", "SELECT x AS x FROM one PUBLISH two")
    with pytest.raises(LanguageError, match="PUBLISH to each other in a circle"):
        made.replace("a", "SELECT x AS x FROM two PUBLISH one")

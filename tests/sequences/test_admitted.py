"""What `add` accepts of sequences compiles and matches; what has no meaning is refused, with its place and a hint."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.sequences.book import select

import headgate as hg

SCRIPT = """
CREATE STREAM city (name STRING, n BIGINT, x DOUBLE, cap BIGINT, bids ARRAY<BIGINT>, tags ARRAY<STRING>, doc GRAPH,
                    at BIGINT) TIME at;
CREATE STREAM loose (n BIGINT);
PREFIX : <http://example.org/>;
"""


class World:
    """A book whose operators write down the calls that are made."""

    def __init__(self, script: str = SCRIPT) -> None:
        self.calls: list[tuple[Any, ...]] = []

        @hg.operator
        def far(event: Any, one: float, other: float) -> bool:
            self.calls.append((event.get("at"), one, other))
            return abs(one - other) > 2

        @hg.operator
        def hot(event: Any, n: Any) -> bool:
            self.calls.append((event.get("at"), n))
            return bool(n > 1)

        @hg.operator
        def broken(event: Any, n: int) -> bool:
            self.calls.append((event.get("at"), n))
            if n == 1:
                raise ValueError("no answer")
            return True

        self.book = hg.Subscriptions([far, hot, broken])
        if script:
            self.book.extend(script)

    def match(self, text: str, *rows: dict[str, Any], stream: str = "city") -> list[tuple[int, dict[str, Any]]]:
        """The matches, and that an explanation can be given of them."""
        self.book.add("q", text)
        plan = self.book.compile()
        matches, errors = plan.match({stream: rows}, errors="collect")
        self.errors = [(e["event"], e["subscriptions"], e["reason"]) for e in errors.to_pylist()]
        self.calls, calls = [], self.calls
        assert str(plan.explain("q"))
        if not self.errors:
            assert str(plan.explain("q", {stream: list(rows)}))
        self.calls = calls
        return [(m["event"], json.loads(m["output"])) for m in matches.to_pylist()]

    def refused(self, text: str, **options: Any) -> str:
        with pytest.raises((hg.LanguageError, hg.LanguageErrors)) as raised:
            self.book.add("q", text, **options)
        assert "q" not in self.book
        self.book.compile()
        return str(raised.value)


def cities(*ns: int, **more: list[Any]) -> list[dict[str, Any]]:
    rows = [
        {"name": "ab"[i % 2], "n": n, "x": n / 2, "cap": 2, "at": i, "doc": f"_:H <http://example.org/p> {n} ."}
        for i, n in enumerate(ns)
    ]
    for name, values in more.items():
        for row, value in zip(rows, values, strict=True):
            row[name] = value
    return rows


PAIRS = "SELECT a.n AS a, b.n AS b FROM "


def pairs(found: list[tuple[int, dict[str, Any]]]) -> list[tuple[int, int]]:
    return sorted((row["a"], row["b"]) for _, row in found)


def test_an_operator_may_look_at_both_events() -> None:
    found = World().match(PAIRS + "city AS a NEXT {far($1.n, $2.n)} city AS b", *cities(1, 2, 5, 9))
    assert pairs(found) == [(1, 5), (2, 5), (5, 9)]


def test_an_operator_sees_the_incoming_event() -> None:
    world = World()
    world.match(PAIRS + "city AS a NEXT {hot($1.n)} city AS b", *cities(2, 1, 7))
    assert world.calls == [(1, 2), (2, 1)]


def test_graph_variables_may_be_compared_with_the_run() -> None:
    text = PAIRS + "city AS a NEXT {GRAPH {_:H :p ?p} AND ?p < $1.cap} city AS b"
    assert pairs(World().match(text, *cities(5, 3, 1))) == [(3, 1), (5, 1)]


def test_the_graphs_of_two_events_may_be_compared() -> None:
    text = PAIRS + "city AS a NEXT {GRAPH a.doc {_:H :p ?p} AND GRAPH {_:H :p ?q} AND ?q > ?p} city AS b"
    assert pairs(World().match(text, *cities(5, 3, 4, 6))) == [(3, 4), (4, 6), (5, 6)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("city AS a FOLD {hot($.n), TRUE} city AS b", [(2, 1)]),
        ("city AS a FOLD {TRUE, hot($1.n)} city AS b", [(2, 1), (2, 7)]),
        ("FILTER {hot(a.n)} (city AS a NEXT {TRUE} city AS b)", [(2, 1)]),
        ("FILTER {hot(b.n) AND a.n < b.n} (city AS a NEXT {TRUE} city AS b)", [(1, 7)]),
        ("FILTER {hot(c)} (city AS a FOLD {TRUE, TRUE, SUM($2.n) AS c} city AS b)", [(1, 7), (2, 1), (2, 7)]),
        ("city AS a NEXT {NOT hot($1.n)} city AS b", [(1, 7)]),
        ("city AS a NEXT {hot($1.n) OR $2.n > 6} city AS b", [(1, 7), (2, 1)]),
        ("city AS a NEXT {(GRAPH {_:H :p ?p} AND ?p > 6) OR hot($1.n)} city AS b", [(1, 7), (2, 1)]),
        ("city AS a NEXT {(GRAPH {_:H :p ?p} AND ?p > 6) OR $1.n > 1} city AS b", [(1, 7), (2, 1)]),
    ],
)
def test_operators_over_the_run_work_wherever_a_predicate_stands(source: str, expected: list[tuple[int, int]]) -> None:
    assert pairs(World().match(PAIRS + source, *cities(2, 1, 7))) == expected


def test_absent_may_ask_an_operator_about_the_run() -> None:
    found = World().match("SELECT a.n AS a FROM city AS a ABSENT {hot($1.n)} city AS b WITHIN 1", *cities(2, 1, 7))
    assert [row["a"] for _, row in found] == [1]


def test_variables_of_different_braces_are_different() -> None:
    text = PAIRS + "city AS a NEXT {GRAPH {_:H :p ?p} AND ?p > $1.n} FILTER {GRAPH {_:H :q ?p}} (city) AS b"
    documents = ["_:H <http://example.org/p> 1 .", "_:H <http://example.org/p> 4 ; <http://example.org/q> 9 ."]
    assert pairs(World().match(text, *cities(1, 4, doc=documents))) == [(1, 4)]


def test_a_call_is_made_once_for_an_event_and_its_arguments() -> None:
    world = World()
    source = "FILTER {hot(a.cap)} (FILTER {n < 3} (city) AS a NEXT {hot($1.cap) AND $2.n > 5} city AS b)"
    assert pairs(world.match(PAIRS + source, *cities(1, 2, 0, 9))) == [(0, 9), (1, 9), (2, 9)]
    assert world.calls == [(3, 2)]


def test_a_joint_call_shares_the_answer_of_a_static_one() -> None:
    world = World()
    world.match(PAIRS + "FILTER {n = 1} (city) AS a NEXT {hot(2) AND hot($1.cap)} city AS b", *cities(1, 5))
    assert world.calls == [(1, 2)]


def test_a_failed_call_is_a_problem_of_its_pair_and_theta_is_not_true() -> None:
    world = World()
    found = world.match(PAIRS + "city AS a NEXT {broken($1.n)} city AS b", *cities(1, 2, 3))
    assert pairs(found) == [(2, 3)]
    assert [(event, whose) for event, whose, _ in world.errors] == [(1, ["q"]), (2, ["q"])]
    assert all("no answer" in reason for *_, reason in world.errors)


def test_a_graph_that_cannot_be_read_is_a_problem_of_its_event() -> None:
    world = World()
    rows = cities(5, 3, 1)
    rows[1]["doc"] = "no graph"
    found = world.match(PAIRS + "city AS a NEXT {GRAPH {_:H :p ?p} AND ?p < $1.cap} city AS b", *rows)
    assert pairs(found) == [(3, 1), (5, 1)]
    assert [event for event, *_ in world.errors] == [1]


def test_batches_cut_anywhere_give_the_same_matches() -> None:
    world, rows = World(), cities(1, 2, 5, 9, 4)
    world.book.add("q", PAIRS + "city AS a NEXT {far($1.n, $2.n) AND GRAPH {_:H :p ?p} AND ?p > $1.cap} city AS b")
    plan = world.book.compile()
    with plan.session() as session:
        parts = [r for row in rows for r in session.feed({"city": [row]}).to_pylist()]
    assert parts == plan.match({"city": rows}).to_pylist()


# -- arrays


def test_what_collect_gives_is_compared_by_its_elements() -> None:
    text = "SELECT g FROM FILTER {g = 'b'} (city AS a FOLD {TRUE, TRUE, COLLECT($2.name) AS g} FILTER {n < 3} (city))"
    found = World().match(text, *cities(1, 5, 2))
    assert found == [(2, {"g": ["b", "a"]})]


@pytest.mark.parametrize("braces", ["{%s, TRUE, COLLECT(n) AS g}", "{TRUE, %s, COLLECT(n) AS g}"])
@pytest.mark.parametrize(
    ("predicate", "last"),
    [
        ("$.g = $2.n - 1", 2),
        ("$2.n - 1 = $.g", 2),
        ("NOT $.g > 1", 1),
        ("$.g IN (2, 7)", None),
        ("$.g IS NOT NULL", 2),
        ("ABS($.g - 9) + 1 = 9", 2),
        ("ALL($.g) < 2", 1),
        ("($.g BETWEEN 0 AND 1 OR far($2.n, $1.n))", 2),
    ],
)
def test_both_predicates_of_a_fold_may_look_at_what_it_collected(braces: str, predicate: str, last: int | None) -> None:
    """The longest run from the first event on: it ends where the predicate says so."""
    text = select("g", f"FILTER {{n = 1}} (city) FOLD {braces % predicate} city")
    found = World().match(text, *cities(1, 2, 3))
    assert max((row for row, _ in found), default=None) == last


def test_what_a_nested_pattern_collects_may_be_a_key() -> None:
    nested = "(SELECT g FROM city AS a FOLD {$2.n = $1.n + 1, TRUE, COLLECT($2.n) AS g} city)"
    found = World().match(select("b.n AS n", f"{nested} AS z NEXT {{z.g = $2.n}} city AS b"), *cities(1, 2, 1))
    assert found == [(2, {"n": 1})]


@pytest.mark.parametrize(
    ("theta", "expected"),
    [
        ("$1.bids + 1 > $2.n", [(0, 1), (1, 2)]),
        ("-$1.bids < $2.n - 3", [(1, 2)]),
        ("ABS($1.bids) = $2.n", [(0, 1), (1, 2)]),
        ("ALL($1.bids) = $2.n", []),
        ("$2.n = $1.bids", [(0, 1), (1, 2)]),
        ("$1.bids + $2.cap IS NULL", []),
        ("$1.bids / ($2.n - 1) IS NULL", [(0, 1)]),
        ("LOWER($1.tags) = $2.name", [(0, 1)]),
    ],
)
def test_a_comparison_looks_at_the_elements_of_an_array(theta: str, expected: list[tuple[int, int]]) -> None:
    rows = cities(0, 1, 2, bids=[[0, 1], [0, 2], None], tags=[["B"], ["B"], []])
    assert pairs(World().match(PAIRS + f"city AS a NEXT {{{theta}}} city AS b", *rows)) == expected


@pytest.mark.parametrize("function", ["FIRST", "LAST", "COUNT"])
def test_aggregates_that_need_no_order_take_arrays(function: str) -> None:
    found = World().match(
        select("g", f"city AS a FOLD {{TRUE, TRUE, {function}($2.bids) AS g}} city"), *cities(1, 2, bids=[[1], [2, 3]])
    )
    assert found == [(1, {"g": {"FIRST": [1], "LAST": [2, 3], "COUNT": 2}[function]})]


def test_the_first_graph_of_a_fold_is_its_text() -> None:
    rows = cities(1, 2)
    found = World().match("SELECT d FROM city AS a FOLD {TRUE, TRUE, FIRST($2.doc) AS d} city", *rows)
    assert found == [(1, {"d": rows[0]["doc"]})]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT g FROM city FOLD {TRUE, TRUE, SUM($2.bids) AS g} city", "column 42: SUM needs numbers"),
        ("SELECT g FROM city FOLD {TRUE, TRUE, AVG($2.bids) AS g} city", "column 42: AVG needs numbers"),
        ("SELECT g FROM city FOLD {TRUE, TRUE, STDDEV($2.bids) AS g} city", "column 45: STDDEV needs numbers"),
        (
            "SELECT g FROM city FOLD {TRUE, TRUE, MIN($2.bids) AS g} city",
            "column 42: MIN needs values that have an order",
        ),
        (
            "SELECT g FROM city FOLD {TRUE, TRUE, MAX($2.doc) AS g} city",
            "column 42: MAX needs values that have an order",
        ),
        ("SELECT g FROM city FOLD {TRUE, TRUE, COLLECT($2.bids) AS g} city", "column 46: there is no ARRAY of ARRAYs"),
        ("SELECT g FROM city FOLD {TRUE, TRUE, $.g + 1 AS g INIT bids} city", "column 38: g starts as ARRAY<BIGINT>"),
        ("SELECT g FROM city FOLD {TRUE, TRUE, $2.n AS g INIT 'x'} city", "column 38: g starts as STRING"),
        ("SELECT g FROM city FOLD {TRUE, TRUE, $2.bids + 1 AS g INIT 0} city", "column 38: bids is ARRAY<BIGINT>"),
        ("SELECT a.bids + 1 AS g FROM city AS a NEXT {TRUE} city", "column 8: a.bids is ARRAY<BIGINT>"),
        ("SELECT ABS(a.bids) AS g FROM city AS a NEXT {TRUE} city", "column 12: a.bids is ARRAY<BIGINT>"),
        ("SELECT LOWER(a.tags) AS g FROM city AS a NEXT {TRUE} city", "column 14: a.tags is ARRAY<STRING>"),
        ("SELECT -a.bids AS g FROM city AS a NEXT {TRUE} city", "column 9: a.bids is ARRAY<BIGINT>"),
        ("SELECT ALL(a.bids) AS g FROM city AS a NEXT {TRUE} city", "column 8: ALL(...) stands in a comparison"),
        ("SELECT g + 1 AS h FROM city FOLD {TRUE, TRUE, COLLECT(n) AS g} city", "column 8: g is ARRAY<BIGINT>"),
        ("SELECT hot(a.n) AS g FROM city AS a NEXT {TRUE} city", "column 8: an operator or GRAPH decides"),
        ("SELECT g FROM city FOLD {TRUE, TRUE, LAST(hot($2.n)) AS g} city", "column 43: an operator or GRAPH decides"),
        (
            "SELECT a.n AS n FROM FILTER {hot(a.n)} (city AS a ABSENT {n > 9} city WITHIN 2)",
            "column 30: nothing comes in when ABSENT is over",
        ),
        (
            "SELECT a.n AS n FROM city AS a NEXT {GRAPH {_:H :p ?x}} (SELECT e1.n AS n FROM city NEXT {TRUE} city)",
            "column 38: it is not clear which graph",
        ),
    ],
)
def test_what_has_no_meaning_is_refused_with_its_place(text: str, message: str) -> None:
    assert message in World().refused(text)


# -- streams that nobody declared


def test_a_sequence_selects_what_nobody_gave_a_type() -> None:
    rows = [{"n": 1, "name": "x", "at": 0}, {"n": 2, "name": [1, "y"], "at": 1}, {"n": 3, "name": {"z": 1}, "at": 2}]
    text = "SELECT a.name AS name FROM s AS a NEXT {$2.n > 1} s AS b"
    assert World("").match(text, *rows, stream="s") == [(1, {"name": "x"}), (2, {"name": [1, "y"]})]


def test_an_operator_receives_the_values_of_an_undeclared_stream() -> None:
    world = World("")
    rows = [{"n": 2, "at": 0}, {"n": 1, "at": 1}, {"n": 7, "at": 2}]
    found = world.match("SELECT a.n AS n FROM s AS a NEXT {hot($1.n)} s AS b", *rows, stream="s")
    assert found == [(1, {"n": 2})]
    assert world.calls == [(None, 2), (None, 1)]


@pytest.mark.parametrize("text", ["SELECT * FROM s NEXT {TRUE} s", "SELECT a.q AS q FROM s AS a NEXT {TRUE} s"])
def test_a_sequence_that_teaches_nothing_matches(text: str) -> None:
    assert len(World("").match(text, {"n": 1}, {"n": 2}, stream="s")) == 1


@pytest.mark.parametrize("function", ["MIN", "MAX", "FIRST", "LAST", "COLLECT", "COUNT", "SUM", "AVG", "STDDEV"])
def test_no_value_of_an_undeclared_stream_stops_an_aggregate(function: str) -> None:
    values = [1, "x", None, [1, "y"], {"z": b"1"}, True, 2.5, 10**30, float("nan"), "\udc80"]
    rows = [{"v": value} for value in values]
    World("").match(select("g", f"s FOLD {{TRUE, TRUE, {function}($2.v) AS g}} s"), *rows, stream="s")


def test_a_nested_pattern_passes_on_what_nobody_gave_a_type() -> None:
    text = "SELECT z.v AS v FROM (SELECT a.v AS v FROM s AS a NEXT {TRUE} s) AS z NEXT {TRUE} s"
    found = World("").match(text, {"v": 1}, {"v": "x"}, {"v": 3}, {"v": 4}, stream="s")
    assert found == [(2, {"v": 1}), (3, {"v": "x"})]


# -- one book


def test_two_publications_of_one_name_have_the_same_columns() -> None:
    world = World()
    world.book.add("p", "SELECT a.n AS n FROM city AS a NEXT {TRUE} city PUBLISH out")
    text = "SELECT a.n AS n, a.x AS x FROM city AS a NEXT {TRUE} city PUBLISH out"
    refusal = world.refused(text)
    assert "column 59" in refusal
    assert "publishes out with other columns than another subscription" in refusal
    world.book.remove("p").add("q", text).compile()


def test_subscriptions_that_publish_to_each_other_are_refused() -> None:
    world = World()
    world.book.add("p", "SELECT a.n AS n FROM city AS a NEXT {TRUE} city PUBLISH one")
    world.book.add("r", "SELECT a.n AS n FROM one AS a NEXT {TRUE} city PUBLISH two")
    with pytest.raises(hg.LanguageError, match="in a circle: r -> p -> r"):
        world.book.replace("p", "SELECT a.n AS n FROM two AS a NEXT {TRUE} city PUBLISH one")
    world.book.compile()


def test_a_subscription_that_publishes_to_itself_is_refused() -> None:
    world = World("")
    assert "in a circle" in world.refused("SELECT a.n AS n FROM out AS a NEXT {$2.n > 1} out PUBLISH out")


def test_streams_with_time_and_without_are_not_put_together() -> None:
    refusal = World().refused("SELECT a.n AS n FROM city AS a NEXT {TRUE} loose")
    assert "loose has no TIME, but city in the same sequence does" in refusal


def test_a_pattern_may_read_what_others_publish() -> None:
    world = World()
    world.book.add("p", "SELECT a.n AS n, a.at AS at FROM city AS a NEXT {TRUE} city PUBLISH out")
    found = world.match("SELECT a.n AS n FROM out AS a NEXT {hot($1.n)} city AS b", *cities(2, 5, 1))
    assert (2, {"n": 2}) in found


def test_a_mode_that_needs_a_declaration_is_refused_without_one() -> None:
    refusal = World("").refused("SELECT a.n AS n FROM s AS a NEXT {$2.n > 1} s", missing="total")
    assert "column 22: missing = 'total' needs to know the stream s" in refusal


def test_events_of_a_stream_without_time_make_none_of_a_stream_with_time_late() -> None:
    world = World()
    world.book.add("q", PAIRS + "city AS a NEXT {TRUE} city AS b").add("f", "n > 0", on="loose")
    first, second = cities(1, 2)
    with world.book.compile().session() as session:
        session.feed({"city": [first], "loose": [{"n": 1}] * 9})
        found = session.feed({"city": [second]}).to_pylist()
        assert [m["subscription"] for m in found] == ["q"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 9223372036854775808 AS big FROM city",
        "SELECT total FROM city FOLD {TRUE, SUM(9223372036854775808) AS total} city",
        "SELECT last FROM city FOLD {TRUE, LAST(9223372036854775808) AS last} city",
        "SELECT a FROM city FOLD {TRUE, 9223372036854775808 AS a INIT 0} city",
    ],
)
def test_a_number_beyond_64_bits_is_refused_as_a_value(text: str) -> None:
    assert "9223372036854775808 is beyond BIGINT" in World().refused(text)


def test_a_number_beyond_64_bits_may_be_compared_with() -> None:
    text = "SELECT a.n AS n FROM city AS a NEXT {$1.n + $2.n < 9223372036854775808} city"
    assert World().match(text, *cities(1, 2)) == [(1, {"n": 1})]


def test_a_window_longer_than_64_bits_of_ticks_is_refused() -> None:
    refusal = World().refused("SELECT a.n AS n FROM city AS a ABSENT {TRUE} city WITHIN 9223372036854775808")
    assert "column 58: no time is as long as 9223372036854775808 ticks" in refusal


def test_a_book_goes_on_when_a_publisher_pauses_and_when_it_comes_back() -> None:
    book = World().book.add("p", "SELECT a.n AS n FROM city AS a NEXT {TRUE} city PUBLISH out")
    book.add("q", "SELECT a.n AS n FROM out AS a NEXT {TRUE} city").add("r", "SELECT n FROM city")

    def names() -> set[str]:
        found: list[str] = book.compile().match({"city": cities(1, 2, 3)})["subscription"].to_pylist()
        return set(found)

    assert names() == {"p", "q", "r"}
    book.pause("p")
    assert names() == {"r"}
    book.resume("p")
    assert names() == {"p", "q", "r"}

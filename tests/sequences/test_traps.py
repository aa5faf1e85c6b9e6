"""The six traps of docs/semantics.md, section 5. Each match is (t0, t1, output); the reference evaluator is asked as well."""

from __future__ import annotations

from tests.sequences.book import (
    STOCK,
    by_engine,
    by_reference,
    columns_of,
    events_of,
    match,
    select,
    session_of,
    spines_of,
)

from headgate.schema import Schema
from headgate.sequences.algebra import right_filter_into_theta, simplify
from headgate.sequences.analysis import warnings_of

LONG = Schema.of("long", {"v": "bigint", "s": "bigint", "e": "bigint"}, ("s", "e"))


def stock(*events: tuple[str, float, int]) -> list[tuple[str, float, int, int]]:
    return [(name, float(price), 100, at) for name, price, at in events]


def test_trap_1_simultaneous_events_are_decided_by_epoch() -> None:
    rows = stock(("A", 1, 1), ("B", 5, 2), ("A", 2, 2), ("A", 3, 3))
    found = match("SELECT e2.price AS p FROM FILTER {name = 'A'} (stock) NEXT {$2.name = $1.name} stock", rows)
    # B at epoch 2 would let the run stay; A in the same epoch takes it, so it does not see A at 3.
    assert found == [(1, 2, "p=2.0"), (2, 3, "p=3.0")]


def test_trap_1_all_events_of_the_first_epoch_that_fits_are_taken() -> None:
    rows = stock(("A", 1, 1), ("A", 2, 2), ("A", 3, 2), ("A", 4, 3))
    found = match("SELECT e1.price AS p, e2.price AS q FROM stock NEXT {$2.name = $1.name} stock", rows)
    assert found == [(1, 2, "p=1.0, q=2.0"), (1, 2, "p=1.0, q=3.0"), (2, 3, "p=2.0, q=4.0"), (2, 3, "p=3.0, q=4.0")]


def test_trap_1_runs_that_two_simultaneous_events_lead_to_are_one() -> None:
    rows = stock(("A", 1, 1), ("A", 2, 2), ("A", 3, 2), ("A", 4, 3))
    found = match(
        "SELECT e2.price AS q, n FROM FILTER {price = 1} (stock) FOLD {TRUE, TRUE, COUNT(*) AS n} stock", rows
    )
    assert found == [(1, 2, "q=2.0, n=2"), (1, 2, "q=3.0, n=2"), (1, 3, "q=4.0, n=3")]


def test_trap_2_an_event_that_overlaps_the_run_is_invisible_to_it() -> None:
    rows = [(1, 1, 5), (2, 3, 6), (3, 6, 7)]
    assert match("SELECT e1.v AS a, e2.v AS b FROM long NEXT {TRUE} long", rows, schema=LONG) == [(1, 7, "a=1, b=3")]


def test_trap_2_an_event_that_overlaps_the_run_does_not_kill_it() -> None:
    rows = [(1, 1, 5), (0, 3, 6), (3, 6, 7)]
    found = match("SELECT e2.v AS b FROM FILTER {e2.v > 0} (FILTER {v = 1} (long) NEXT {TRUE} long)", rows, schema=LONG)
    assert found == [(1, 7, "b=3")]


def test_trap_3_runs_that_no_event_can_satisfy_any_more_are_collected() -> None:
    spines = spines_of({"s": "SELECT * FROM stock NEXT {DUR <= 5 AND $2.name = $1.name} stock"}, STOCK)
    session = session_of(spines)
    rows = [(f"n{i}", 1.0, 1, i) for i in range(20_000)]
    for start in range(0, 20_000, 1000):
        session.feed([columns_of(STOCK, rows[start : start + 1000], start)])
    assert session.stats()["levels"][0]["runs"] < 10_000
    assert session.stats()["levels"][0]["expired"] > 10_000


def test_trap_3_a_bound_of_a_later_step_collects_earlier_runs() -> None:
    text = "SELECT * FROM FILTER {DUR <= 5} (stock NEXT {$2.name = $1.name} stock NEXT {$2.name = $1.name} stock)"
    level = session_of(spines_of({"s": text}, STOCK)).index.levels[0]
    assert [state.bound for state in level.compiled.states] == [5, 5]


def test_trap_3_unbounded_state_is_warned_of() -> None:
    free = spines_of({"s": "SELECT * FROM stock NEXT {$2.name = $1.name} stock"}, STOCK)["s"]
    assert warnings_of(free) == ["e2 is awaited without an upper bound on DUR: runs may wait for ever"]
    bound = spines_of({"s": "SELECT * FROM stock NEXT {$2.name = $1.name AND DUR < 9} stock"}, STOCK)["s"]
    assert warnings_of(bound) == []


def test_trap_3_dur_equal_to_a_constant_is_warned_of() -> None:
    spine = spines_of({"s": "SELECT * FROM FILTER {DUR = 9} (stock NEXT {TRUE} stock)"}, STOCK)["s"]
    assert warnings_of(spine) == ["DUR = 9 holds only if an event comes at that very tick: use >= or <="]


def test_trap_4_the_sequence_is_not_associative() -> None:
    rows = stock(("A", 1, 1), ("B", 2, 2), ("C", 3, 3), ("B", 4, 4), ("C", 5, 5))
    a, b, c = (f"FILTER {{name = '{n}'}} (stock)" for n in "ABC")
    left = match(select("DUR AS d", f"{a} NEXT {b} NEXT {c}"), rows)
    right = match(select("DUR AS d", f"{a} NEXT {{e1_price > 2}} ({b} NEXT {c})"), rows)
    assert left == [(1, 3, "d=3")]
    assert right == [(1, 5, "d=5")]


def test_trap_4_a_composite_right_operand_has_the_interval_of_its_own_run() -> None:
    rows = stock(("B", 1, 1), ("A", 1, 2), ("C", 1, 3), ("B", 1, 4), ("C", 1, 5))
    a, b, c = (f"FILTER {{name = '{n}'}} (stock)" for n in "ABC")
    # The pair (B at 1, C at 3) began before A, so A cannot see it.
    assert match(select("DUR AS d", f"{a} NEXT ({b} NEXT {c})"), rows) == [(2, 5, "d=4")]


def test_trap_5_next_emits_once_for_each_open_left_event() -> None:
    rows = stock(("A", 1, 1), ("A", 2, 2), ("B", 3, 3), ("B", 4, 4))
    found = match("SELECT e1.price AS p, e2.price AS q FROM FILTER {name = 'A'} (stock) NEXT {name = 'B'} stock", rows)
    assert found == [(1, 3, "p=1.0, q=3.0"), (2, 3, "p=2.0, q=3.0")]


def test_trap_5_fold_emits_every_prefix_and_never_s1_alone() -> None:
    rows = stock(("A", 1, 1), ("A", 2, 2), ("A", 3, 3))
    found = match("SELECT n FROM FILTER {price = 1} (stock) FOLD {TRUE, TRUE, COUNT(*) AS n} stock", rows)
    assert found == [(1, 2, "n=2"), (1, 3, "n=3")]


def test_trap_6_a_filter_around_a_sequence_kills_where_theta_skips() -> None:
    rows = stock(("A", 1, 1), ("A", 5, 2), ("A", 2, 3))
    first = "FILTER {price = 1} (stock)"
    kills = match(select("e2.price AS p", f"FILTER {{e2.price < 3}} ({first} NEXT {{TRUE}} stock)"), rows)
    skips = match(select("e2.price AS p", f"{first} NEXT {{price < 3}} stock"), rows)
    assert kills == []
    assert skips == [(1, 3, "p=2.0")]


def test_trap_6_a_filter_over_the_right_operand_may_join_theta() -> None:
    rows = stock(("A", 1, 1), ("A", 5, 2), ("A", 2, 3))
    spines = spines_of(
        {"s": "SELECT e2.price AS p FROM FILTER {price = 1} (stock) NEXT FILTER {price < 3} (stock)"}, STOCK
    )
    moved = {"s": right_filter_into_theta(spines["s"], "null")}
    assert moved["s"].steps[0].theta != spines["s"].steps[0].theta
    events = {"stock": events_of(STOCK, rows)}
    assert by_reference(moved, events) == by_reference(spines, events) == {"s": [(1, 3, "p=2.0")]}


def test_trap_6_dur_over_the_right_operand_is_its_own_even_after_the_rewrite() -> None:
    rows = [(1, 1, 1), (2, 2, 9), (3, 10, 10)]
    spines = spines_of({"s": "SELECT e2.v AS b FROM FILTER {v = 1} (long) NEXT FILTER {DUR < 3} (long)"}, LONG)
    spines["s"] = simplify(spines["s"])
    assert by_engine(spines, [[columns_of(LONG, rows)]]) == {"s": [(1, 10, "b=3")]}

from __future__ import annotations

import pytest

from headgate.covering.cover import cover

RISE = "SELECT * FROM FILTER {{{}}} (stock) NEXT {{{}}} stock"
FALL = "SELECT * FROM stock FOLD {{$2.name = $1.name, {}, COUNT(*) AS n}} stock"


def covered(inner: str, outer: str) -> bool:
    found = cover(inner, [outer])
    assert found.covered is not False, "sequences have no witness"
    return bool(found)


def test_a_sequence_covers_its_equal_whatever_it_selects() -> None:
    assert cover(RISE.format("vol > 5", "TRUE"), [RISE.format("vol > 5", "TRUE")]).method == "same"
    one = "SELECT e1.price FROM stock NEXT {$2.price > $1.price} stock"
    assert cover(one, [one.replace("e1.price FROM", "e2.price AS p FROM")]).method == "sequence"


def test_a_filter_on_the_start_may_be_weaker_in_the_coverer() -> None:
    theta = "$2.name = $1.name"
    assert covered(RISE.format("vol > 10", theta), RISE.format("vol > 5", theta))
    assert not covered(RISE.format("vol > 5", theta), RISE.format("vol > 10", theta))
    assert covered(RISE.format("vol > 10", theta), "SELECT * FROM stock NEXT {$2.name = $1.name} stock")


def test_a_weaker_theta_covers_nothing_because_it_moves_at_another_event() -> None:
    assert not covered(RISE.format("TRUE", "$2.price > 10"), RISE.format("TRUE", "$2.price > 5"))
    assert covered(RISE.format("TRUE", "$2.price > 10"), RISE.format("TRUE", "NOT $2.price <= 10"))


def test_references_to_different_events_are_told_apart() -> None:
    assert not covered(RISE.format("TRUE", "$2.price > 10"), RISE.format("TRUE", "$1.price > 10"))
    assert covered(RISE.format("TRUE", "$2.price > $1.price"), RISE.format("TRUE", "$1.price < $2.price"))


def test_the_keep_of_a_fold_may_be_weaker_in_the_coverer() -> None:
    assert covered(FALL.format("$2.vol > 10"), FALL.format("$2.vol > 5"))
    assert not covered(FALL.format("$2.vol > 5"), FALL.format("$2.vol > 10"))
    assert not covered(FALL.format("$2.vol > 10"), FALL.format("$2.vol > 5").replace("COUNT(*) AS n", "SUM(vol) AS n"))


def test_the_theta_of_an_absence_may_be_stronger_in_the_coverer() -> None:
    absent = "SELECT * FROM stock ABSENT {{$2.vol > {}}} stock WITHIN 10"
    assert covered(absent.format(5), absent.format(10))
    assert not covered(absent.format(10), absent.format(5))
    assert not covered(absent.format(5), absent.format(10).replace("WITHIN 10", "WITHIN 20"))


def test_a_filter_around_the_whole_may_be_weaker_in_the_coverer() -> None:
    around = "SELECT * FROM FILTER {{{}}} (stock NEXT stock)"
    assert covered(around.format("DUR < 10"), around.format("DUR < 20"))
    assert covered(around.format("DUR < 10"), "SELECT * FROM stock NEXT stock")


@pytest.mark.parametrize(
    "outer",
    [
        "SELECT * FROM stock NEXT news",
        "SELECT * FROM news NEXT stock",
        "SELECT * FROM stock AS s NEXT stock",
        "SELECT * FROM stock NEXT stock NEXT stock",
        "SELECT * FROM stock FOLD {TRUE} stock",
        "SELECT * FROM stock NEXT FILTER {vol > 1} (stock)",
        "vol > 1",
    ],
)
def test_another_automaton_covers_nothing(outer: str) -> None:
    assert not covered("SELECT * FROM stock NEXT stock", outer)


def test_unions_and_nested_patterns_are_compared_part_by_part() -> None:
    union = "SELECT * FROM (FILTER {{a > {}}} (x) UNION y) NEXT z"
    assert covered(union.format(5), union.format(3))
    nested = "SELECT * FROM (SELECT a FROM FILTER {{a > {}}} (x)) NEXT z"
    assert covered(nested.format(5), nested.format(3))
    assert not covered(nested.format(5), nested.format(3).replace("SELECT a", "SELECT b"))


def test_what_publishes_is_never_covered() -> None:
    inner = "SELECT * FROM FILTER {a > 5} (x) NEXT z PUBLISH out"
    assert not covered(inner, "SELECT * FROM FILTER {a > 3} (x) NEXT z")
    assert not covered(inner, inner)

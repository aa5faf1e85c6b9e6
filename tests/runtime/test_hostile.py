"""Whatever an operator or an event does, it is a problem of the pairs that met it, and of nobody else."""

from __future__ import annotations

import sys
from typing import Any

import orjson
import pytest

import headgate as hg
from headgate.results import MOST_NAMED


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def big(event: Any, x: Any) -> Any:
    return [(2**70,)]


def surrogate(event: Any, x: Any) -> Any:
    return [("\ud800",)]


def leaves(event: Any, x: Any) -> Any:
    sys.exit(3)


def unspeakable(event: Any, x: Any) -> Any:
    raise Unspeakable


def surrogate_reason(event: Any, x: Any) -> Any:
    raise ValueError("\ud800\0")


def lazy(event: Any, x: Any) -> Any:
    yield (1,)
    raise GeneratorExit


def rude(event: Any, x: Any) -> Any:
    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError

    return Rude()


HOSTILE = [big, surrogate, leaves, unspeakable, surrogate_reason, lazy, rude]


@pytest.mark.parametrize("how", [{}, {"concurrency": "threads"}, {"pure": True}], ids=["inline", "threads", "pure"])
@pytest.mark.parametrize("foreign", HOSTILE, ids=lambda f: f.__name__)
def test_a_hostile_operator_is_a_problem_of_its_own_subscription(foreign: Any, how: dict[str, Any]) -> None:
    def fine(event: Any, x: Any) -> Any:
        return [(event["x"],)]

    book = hg.Subscriptions(operators=[hg.operator(foreign, **how), hg.operator(fine)]).stream("s", {"x": "bigint"})
    book.add("theirs", f"x > 0 AND {foreign.__name__}(?v)").add("plain", "x > 0").add("mine", "fine(?v) AND ?v > 0")
    matches, errors = book.compile().match([{"x": 1}, {"x": 0}], errors="collect")
    assert [(m["event"], m["subscription"]) for m in matches.to_pylist()] == [(0, "mine"), (0, "plain")]
    (error,) = errors.to_pylist()
    assert (error["event"], error["subscriptions"]) == (0, ["theirs"])
    assert error["code"] in ("operator.raised", "operator.return")
    assert foreign.__name__ in error["reason"]


def test_one_failed_call_is_one_problem_however_many_subscriptions_asked() -> None:
    def broken(event: Any) -> bool:
        raise ValueError("no camera")

    book = hg.Subscriptions(operators=[hg.operator(broken)]).stream("s", {"x": "bigint"})
    for i in range(500):
        book.add(f"s{i:03}", f"x > -{i + 1} AND broken()")
    book.compile()
    book.add("later", "broken()")
    _, errors = book.compile().match([{"x": 1}], errors="collect")
    (error,) = errors.to_pylist()
    assert (error["concerned"], len(error["subscriptions"])) == (501, MOST_NAMED)
    with pytest.raises(hg.EventError, match="subscription s000, s001, s002 and 498 more: broken raised ValueError"):
        book.compile().match([{"x": 1}])


GRAPHS = """PREFIX : <http://x/>;
CREATE STREAM s (g GRAPH, x BIGINT);
CREATE SUBSCRIPTION any AS GRAPH { _:H :p ?v };
CREATE SUBSCRIPTION plain AS x = 1;
"""
LONG = "9" * 400


def test_an_integer_beyond_64_bits_in_a_graph_is_given_as_a_text() -> None:
    plan = hg.Subscriptions.parse(GRAPHS).compile()
    event = {"g": "_:H <http://x/p> 1180591620717411303424 .", "x": 1}
    matches = plan.match([event]).to_pylist()
    assert [m["subscription"] for m in matches] == ["any", "plain"]
    assert orjson.loads(matches[0]["output"]) == {"v": "1180591620717411303424"}


def test_arithmetic_on_an_integer_that_no_double_holds_harms_nobody_else() -> None:
    book = hg.Subscriptions.parse(GRAPHS + "CREATE SUBSCRIPTION half AS GRAPH { _:H :p ?v } AND ?v*0.5 > 1;")
    matches, errors = book.compile().match([{"g": f"_:H <http://x/p> {LONG} .", "x": 1}], errors="collect")
    assert [m["subscription"] for m in matches.to_pylist()] == ["any", "plain"]
    assert [e["subscriptions"] for e in errors.to_pylist()] in ([], [["half"]])


def test_an_instant_that_no_datetime_holds_is_a_problem_of_whoever_asks_with_it() -> None:
    def sees(event: Any, at: Any) -> bool:
        return True

    book = hg.Subscriptions(operators=[hg.operator(sees)]).stream("s", {"at": "timestamp", "x": "bigint"})
    book.add("asks", "sees(at)").add("plain", "x = 1")
    matches, errors = book.compile().match([{"at": 2**62, "x": 1}], errors="collect")
    assert [m["subscription"] for m in matches.to_pylist()] == ["plain"]
    assert [e["event"] for e in errors.to_pylist()] == [0]

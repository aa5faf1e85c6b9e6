from __future__ import annotations

import json
from typing import Any

import pytest
from benchmarks.papers.covering_network import Network, found_probability, loss_probability
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.covering.boxes import Union
from headgate.covering.decision import Procedure
from headgate.covering.parse_boxes import Source, checked, read_union, schema_of, union_of
from headgate.covering.routing import LOCAL, Router, Subscribe, Unsubscribe
from headgate.errors import UnknownName, UsageError

SCHEMA = {"x": "double", "y": "double"}


def boxes(text: str) -> Union:
    (body,), schema = checked([Source(text)], schema_of(SCHEMA))
    return union_of(body, "null", schema)


def intervals() -> st.SearchStrategy[str]:
    number = st.integers(0, 9)
    return st.builds(
        lambda a, b, c, d: f"x BETWEEN {min(a, b)} AND {max(a, b)} AND y BETWEEN {min(c, d)} AND {max(c, d)}",
        number, number, number, number,
    )  # fmt: skip


def test_a_covered_subscription_is_not_passed_on() -> None:
    network = Network.chain(4)
    network.subscribe("wide", boxes("x > 0"), 1)
    assert network.traffic.subscriptions == 3
    network.subscribe("narrow", boxes("x > 5"), 1)
    assert network.traffic.subscriptions == 3
    assert network.publish({"x": 7.0}, 4) == {"wide", "narrow"}
    assert network.traffic.events == 3


def test_covering_starts_where_paths_meet() -> None:
    network = Network.chain(4)
    network.subscribe("wide", boxes("x > 0"), 3)
    network.subscribe("narrow", boxes("x > 5"), 1)
    assert network.brokers[2].told(3) == ["narrow"]
    assert network.brokers[3].told(4) == ["wide"]


def test_an_unsubscription_promotes_across_brokers() -> None:
    network = Network.chain(5)
    network.subscribe("wide", boxes("x > 0"), 1)
    network.subscribe("narrow", boxes("x > 5"), 1)
    network.unsubscribe("wide")
    assert network.brokers[4].told(5) == ["narrow"]
    assert network.publish({"x": 7.0}, 5) == {"narrow"}
    assert network.publish({"x": 3.0}, 5) == set()
    network.unsubscribe("narrow")
    assert network.stored() == 0


def test_the_heir_is_told_before_the_coverer_is_taken_back() -> None:
    router = Router(["b"])
    router.subscribe("wide", boxes("x > 0"))
    router.subscribe("narrow", boxes("x > 5"))
    assert router.unsubscribe("wide") == [Subscribe("b", "narrow", boxes("x > 5")), Unsubscribe("b", "wide")]


def test_demotion_takes_back_what_a_newcomer_covers() -> None:
    router = Router(["b"], demote="pairwise")
    router.subscribe("narrow", boxes("x > 5"))
    messages = router.subscribe("wide", boxes("x > 0"))
    assert messages == [Subscribe("b", "wide", boxes("x > 0")), Unsubscribe("b", "narrow")]


def test_an_event_does_not_return_where_it_came_from() -> None:
    router = Router(["a", "b"])
    router.subscribe("here", boxes("x > 0"))
    router.subscribe("there", boxes("x > 0"), "a")
    assert list(router.route(["here", "there"], "a")) == [LOCAL]
    assert list(router.route(["here", "there"], "b")) == [LOCAL, "a"]


def test_a_neighbour_that_joins_late_is_told_all_and_one_that_leaves_is_forgotten() -> None:
    router = Router(["a"])
    router.subscribe("wide", boxes("x > 0"), "a")
    router.subscribe("narrow", boxes("x > 5"))
    assert [m.name for m in router.connect("b")] == ["wide"]
    assert router.disconnect("a") == [Subscribe("b", "narrow", boxes("x > 5")), Unsubscribe("b", "wide")]
    assert router.neighbours == ["b"]


def test_subscriptions_on_different_streams_do_not_cover_each_other() -> None:
    router = Router(["b"])
    router.subscribe("wide", boxes("x > 0"), stream="stock")
    assert [m.name for m in router.subscribe("narrow", boxes("x > 5"), stream="news")] == ["narrow"]
    assert [m.name for m in router.subscribe("other", boxes("x > 5"), stream="stock")] == []
    assert router.withheld("b") == {"other": frozenset(["wide"])}


def test_a_changed_subscription_is_told_in_its_new_form_and_never_taken_back() -> None:
    router = Router(["b"])
    router.subscribe("s", boxes("x > 0"))
    router.subscribe("inner", boxes("x > 5"))
    assert router.subscribe("s", boxes("y > 0")) == [
        Subscribe("b", "inner", boxes("x > 5")),
        Subscribe("b", "s", boxes("y > 0")),
    ]


def test_a_subscription_that_becomes_covered_is_taken_back_after_all_else() -> None:
    router = Router(["b"])
    router.subscribe("wide", boxes("x > 0"))
    router.subscribe("s", boxes("y > 0"))
    assert router.subscribe("s", boxes("x > 5")) == [Unsubscribe("b", "s")]
    assert router.withheld("b") == {"s": frozenset(["wide"])}


def test_a_message_that_comes_late_or_twice_does_nothing() -> None:
    router = Router(["a", "b"])
    router.subscribe("s", boxes("x > 0"), "a")
    assert router.subscribe("s", boxes("x > 0"), "a") == [Subscribe("b", "s", boxes("x > 0"))]
    assert router.unsubscribe("s", "b") == []
    assert router.unsubscribe("s", "a") == [Unsubscribe("b", "s")]
    assert router.unsubscribe("s", "a") == []


def test_a_neighbour_that_lost_sight_is_brought_into_line() -> None:
    router = Router(["b"])
    router.subscribe("wide", boxes("x > 0"))
    router.subscribe("narrow", boxes("x > 5"))
    assert router.reconcile("b", ["narrow", "old", "wide"]) == [
        Subscribe("b", "wide", boxes("x > 0")),
        Unsubscribe("b", "narrow"),
        Unsubscribe("b", "old"),
    ]


def test_a_router_is_rebuilt_from_its_stored_state() -> None:
    texts = {"wide": "x > 0", "narrow": "x > 5", "far": "y > 2", "near": "y > 7"}
    router = Router(["a", "b"])
    for name, source in (("wide", LOCAL), ("narrow", LOCAL), ("far", "a"), ("near", "b")):
        router.subscribe(name, boxes(texts[name]), source, stream="stock")
    state = json.loads(json.dumps(router.state()))
    again, messages = Router.rebuilt(state, lambda name: boxes(texts[str(name)]))
    assert messages == []
    assert again.state() == router.state()
    assert again.unsubscribe("wide") == router.unsubscribe("wide")


def test_what_was_withheld_and_is_not_covered_any_more_is_told_when_the_router_is_rebuilt() -> None:
    router = Router(["b"])
    router.subscribe("wide", boxes("x > 0"))
    router.subscribe("narrow", boxes("x > 5"))
    texts = {"wide": "x > 0 AND y > 0", "narrow": "x > 5"}
    again, messages = Router.rebuilt(router.state(), lambda name: boxes(texts[str(name)]))
    assert messages == [Subscribe("b", "narrow", boxes("x > 5"))]
    assert again.told("b") == ["wide", "narrow"]


def test_boxes_read_with_different_types_do_not_cover_each_other() -> None:
    router = Router(["b"])
    for name, kind in (("one", "double"), ("two", "bigint")):
        router.subscribe(name, read_union("x > 0", "null", schema_of({"x": kind})))
    assert router.told("b") == ["one", "two"]


def test_a_filter_too_wide_for_boxes_is_told_and_covers_nothing() -> None:
    wide = " AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(20))
    assert read_union(wide, "null", schema_of(None)) is None
    router = Router(["b"])
    router.subscribe("wide", None)
    assert [m.name for m in router.subscribe("s", boxes("x = 1 AND y = 2"))] == ["s"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_everyone_gets_what_matches_whatever_is_covered(data: st.DataObject) -> None:
    parents = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=6))
    links = [(i + 1, parent % (i + 1)) for i, parent in enumerate(parents)]
    brokers = range(len(links) + 1)
    demote = data.draw(st.sampled_from(["none", "pairwise", "group"]))
    mode: Any = data.draw(st.sampled_from([None, Procedure("pairwise"), Procedure(budget=5.0)]))
    network = Network(links, mode, demote=demote)
    alive: dict[int, Union] = {}
    for i in range(data.draw(st.integers(1, 12))):
        if alive and data.draw(st.integers(0, 3)) == 0:
            name = data.draw(st.sampled_from(sorted(alive)))
            network.unsubscribe(name)
            del alive[name]
        alive[i] = boxes(data.draw(intervals()))
        network.subscribe(i, alive[i], data.draw(st.sampled_from(brokers)))
        if data.draw(st.integers(0, 3)) == 0:
            network.restart(data.draw(st.sampled_from(brokers)))
    for x, y in data.draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=5)):
        event = {"x": float(x), "y": float(y)}
        everywhere = Network([(0, 1)], None)
        for name, union in alive.items():
            everywhere.subscribe(name, union, 0)
        assert network.publish(event, data.draw(st.sampled_from(brokers))) == everywhere.publish(event, 0)


def test_the_loss_formula_of_the_paper() -> None:
    assert found_probability(1, 0.3, 0.5, 1) == 0.3
    assert found_probability(3, 0.5, 1.0, 1) == pytest.approx(1 - 0.5**3), "nothing is lost if every guess is a witness"
    assert found_probability(3, 0.5, 0.5, 1) == pytest.approx(0.5 + 0.5 * 0.25 + 0.5 * 0.0625)
    assert loss_probability(10, 0.1, 0.01, 1000) < 1e-3 < loss_probability(10, 0.1, 0.01, 10)


def test_a_network_is_a_tree() -> None:
    with pytest.raises(UsageError, match="must form one tree"):
        Network([(1, 2), (2, 3), (3, 1)])
    with pytest.raises(UsageError, match="must form one tree"):
        Network([(1, 2), (3, 4)])
    with pytest.raises(UsageError, match="at least one link"):
        Network([])


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownName, match="no subscription nobody"):
        Network.chain(2).unsubscribe("nobody")
    with pytest.raises(UsageError, match="is a neighbour already"):
        Router(["a"]).connect("a")
    with pytest.raises(UnknownName, match="no neighbour z"):
        Router(["a"]).disconnect("z")
    with pytest.raises(UnknownName, match="no neighbour z"):
        Router(["a"]).subscribe("s", boxes("x > 0"), "z")

"""Strangers on a stream that nobody declared: each has ideas of his own about what an attribute is.

Whatever the others think, each gets what a book of his own would give him, and no event is lost (docs/semantics.md,
section 8).
"""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

import headgate as hg
from headgate.events.json_lines import read_json_lines

TEXTS = {
    "on": "state = 'on'",
    "inside": "state.status = 'x'",
    "deep": "state.status.code > 3",
    "above": "state > 5",
    "below": "NOT (state > 5)",
    "not on": "state <> 'on'",
    "not equal": "NOT (state = 'on')",
    "members": "state IN ('on', 7, TRUE)",
    "others": "state NOT IN ('off', 7)",
    "range": "state BETWEEN 1 AND 3",
    "both": "state >= 1 AND state <= 3",
    "like": "state LIKE 'o%'",
    "unlike": "NOT state LIKE 'o%'",
    "flag": "state",
    "no flag": "NOT state",
    "missing": "state IS NULL",
    "lower": "LOWER(state) = 'on'",
    "computed": "state * 2 + 1 > 14",
    "of two": "state = other",
    "order of two": "state < other",
    "time": "state > TIMESTAMP '2026-01-01T00:00:00Z'",
    "every": "ALL(state) = 'on'",
    "contradiction": "state = 'on' AND state > 5",
    "told apart": "state = other AND state = 'x'",
}
MODES = ["null", "strict", "default"]
VALUES: list[Any] = [
    "on", "On", "off", "x", 7, 2, 7.5, 2**53 + 1, True, False, None, {"status": "x"}, {"status": {"code": 4}},
    {"status": [1, "x"]}, [], ["on", "off"], ["on"], [0, 9], [2, "a", None], [[1], [7, ["on"]]],
]  # fmt: skip
EVENTS: list[dict[str, Any]] = [
    {},
    *({"state": value} for value in VALUES),
    *({"state": value, "other": other} for value in ("x", 7, [7, "x"], {"x": 1}) for other in ("x", 8, ["x", 9], None)),
]


def book(texts: dict[str, str], missing: str = "null") -> hg.Subscriptions:
    made = hg.Subscriptions()
    for name, text in texts.items():
        made.add(name, text, missing=missing)
    return made


def matched(plan: hg.Plan, events: Any) -> dict[str, list[int]]:
    """The events of each subscription; none may be on the error channel."""
    matches, errors = plan.match(events, errors="collect")
    assert errors.to_pylist() == []
    found: dict[str, list[int]] = {}
    for row in matches.to_pylist():
        found.setdefault(row["subscription"], []).append(row["event"])
    return found


@pytest.mark.parametrize("missing", MODES)
def test_each_gets_what_a_book_of_his_own_gives_him(missing: str) -> None:
    together = matched(book(TEXTS, missing).compile(), EVENTS)
    for name, text in TEXTS.items():
        alone = matched(book({name: text}, missing).compile(), EVENTS)
        assert together.get(name, []) == alone.get(name, []), text


def values_of(name: str) -> list[Any]:
    found = matched(book(TEXTS).compile(), EVENTS).get(name, [])
    return [EVENTS[i].get("state") for i in found if "other" not in EVENTS[i]]


def test_a_comparison_asks_for_the_kind_of_its_constant() -> None:
    assert values_of("on") == ["on", ["on", "off"], ["on"], [[1], [7, ["on"]]]]
    assert values_of("above") == [7, 7.5, 2**53 + 1, [0, 9], [[1], [7, ["on"]]]]
    assert values_of("inside") == [{"status": "x"}, {"status": [1, "x"]}]


def test_values_of_different_kinds_are_different_and_have_no_order() -> None:
    assert values_of("not on") == [v for v in VALUES if v not in ("on", None, [], ["on"])]
    assert values_of("below") == [2, []]
    assert values_of("no flag") == [False, []]


def test_one_element_is_asked_by_one_condition() -> None:
    assert values_of("range") == [2, [2, "a", None], [[1], [7, ["on"]]]]
    assert values_of("both") == [2, [0, 9], [2, "a", None], [[1], [7, ["on"]]]]


def test_large_whole_numbers_are_compared_exactly() -> None:
    texts = {op: f"n {op} {2**53 + 1}" for op in ("=", "<>", "<", "<=", ">", ">=")}
    numbers = [2**53, 2**53 + 1, 2**53 + 2, 2**70, -(2**70), 1.5]
    plan = book(texts).compile()
    found = matched(plan, [{"n": n} for n in numbers])
    assert {op: [numbers[i] for i in found[op]] for op in texts} == {
        "=": [2**53 + 1],
        "<>": [2**53, 2**53 + 2, 2**70, -(2**70), 1.5],
        "<": [2**53, -(2**70), 1.5],
        "<=": [2**53, 2**53 + 1, -(2**70), 1.5],
        ">": [2**53 + 2, 2**70],
        ">=": [2**53 + 1, 2**53 + 2, 2**70],
    }


def test_json_gives_what_objects_give() -> None:
    lines = "\n".join(map(json.dumps, EVENTS)).encode()
    plan = book(TEXTS).compile()
    read = read_json_lines(io.BytesIO(lines), plan.schemas["events"], plan.needs("events"))
    (decoded,) = read
    assert not decoded.rejected
    assert matched(plan, decoded.columns) == matched(plan, EVENTS)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["on", "off", None]),
        pa.array(["on", "off", "on"]).dictionary_encode(),
        pa.array([7, 2, 2**53 + 1]),
        pa.array([7.5, None, 2.0]),
        pa.array([True, False, None]),
        pa.array([["on", None], [], None], pa.list_(pa.string())),
        pa.array([[[1], [7]], [[2]], None], pa.list_(pa.list_(pa.int64()))),
        pa.array([{"status": "x"}, {"status": "y"}, None]),
        pa.array([datetime(2026, 2, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC), None]),
        pa.array([b"on", b"", None]),
    ],
    ids=lambda column: str(column.type)[:20],
)
def test_a_table_gives_what_its_rows_give(column: Any) -> None:
    plan = book(TEXTS).compile()
    table = pa.table({"state": column})
    assert matched(plan, table) == matched(plan, table.to_pylist())


ITEMS: list[Any] = [
    [{"price": 3, "kind": "x"}, {"price": 7, "kind": "y"}],
    [{"kind": "x"}, {"price": None, "kind": None}],
    [],
    None,
    [{"price": 9, "kind": "x"}],
]


@pytest.mark.parametrize("given", [list, pa.Table.from_pylist], ids=["objects", "table"])
def test_a_path_through_an_array_of_objects_finds_what_is_in_each(given: Any) -> None:
    plan = book({"dear": "items.price > 5", "y": "items.kind = 'y'", "none": "NOT (items.kind = 'y')"}).compile()
    assert matched(plan, given([{"items": items} for items in ITEMS])) == {"dear": [0, 4], "y": [0], "none": [2, 4]}


def test_paths_go_through_arrays_at_every_level() -> None:
    plan = book({"q": "a.b.c = 5", "big": f"a.b.c > {2**64}"}).compile()
    events = [{"a": [{"b": [{"c": 4}, {"c": [5]}]}, 7]}, {"a": {"b": [[{"c": 2**65}]]}}, {"a": "b"}]
    assert matched(plan, events) == {"q": [0], "big": [1]}
    lines = [json.dumps(event).encode() for event in events]
    (decoded,) = read_json_lines(lines, plan.schemas["events"], plan.needs("events"))
    assert matched(plan, decoded.columns) == {"q": [0], "big": [1]}


def test_a_declared_path_does_not_go_through_an_array() -> None:
    made = hg.Subscriptions().stream("s", {"items.price": "double"}).add("q", "items.price > 5")
    assert len(made.compile().match([{"items": [{"price": 7}]}], errors="collect")[1]) == 1


def test_adding_replacing_and_removing_one_changes_the_matches_of_no_other() -> None:
    made = book({"on": TEXTS["on"], "above": TEXTS["above"]})
    before = matched(made.compile(), EVENTS)
    made.add("new", "state.status = 'x'")
    assert {k: v for k, v in matched(made.compile(), EVENTS).items() if k != "new"} == before
    made.replace("new", "state AND state = other")
    assert {k: v for k, v in matched(made.compile(), EVENTS).items() if k != "new"} == before
    made.remove("new")
    assert matched(made.compile(), EVENTS) == before


def test_what_one_assumes_of_a_type_refuses_no_other() -> None:
    made = book({"mine": "a = b AND a = 'x'"})
    made.add("yours", "a > 5")
    events = [{"a": "x", "b": "x"}, {"a": 6, "b": 6}]
    assert matched(made.compile(), events) == {"mine": [0], "yours": [1]}


def test_a_saved_plan_knows_arrays_too(tmp_path: Any) -> None:
    plan = book(TEXTS).compile()
    plan.save(tmp_path / "plan")
    assert matched(hg.Plan.open(tmp_path / "plan"), EVENTS) == matched(plan, EVENTS)


def test_operators_receive_the_value_itself() -> None:
    seen: list[Any] = []

    @hg.operator
    def look(event: Any, value: Any) -> bool:
        seen.append(value)
        return True

    made = hg.Subscriptions(operators=[look]).add("a", "look(state)").add("b", "state > 5")
    values = ["on", 7, {"status": "x"}, [1, "x"], datetime(2026, 1, 1, tzinfo=UTC)]
    made.compile().match([{"state": value} for value in values])
    assert sorted(map(repr, seen)) == sorted(map(repr, values))


def test_a_declared_attribute_may_be_any() -> None:
    made = hg.Subscriptions()
    made.extend("CREATE STREAM s (state ANY, n BIGINT);")
    made.add("on", "state = 'on' AND n > 1", on="s").add("high", "state > 5", on="s").add("same", "state = n", on="s")
    events = [{"state": "on", "n": 2}, {"state": 7, "n": 7}, {"state": [3, {}], "n": 3}]
    assert matched(made.compile(), events) == {"on": [0], "high": [1], "same": [1, 2]}
    _, errors = made.compile().match([{"state": "on", "n": "two"}], errors="collect")
    assert len(errors) == 1


# -- sequences

SEQUENCES = {
    "texts": "SELECT b.v AS v FROM u AS a NEXT {$2.state = 'on' AND $2.v > $1.v} u AS b",
    "numbers": "SELECT b.v AS v FROM FILTER {state > 5} (u) AS a NEXT {$2.state > $1.state} u AS b",
    "inside": "SELECT b.v AS v FROM FILTER {state.status = 'x'} (u) AS a NEXT {TRUE} u AS b",
    "same": "SELECT b.v AS v FROM u AS a NEXT {$2.state = $1.state} u AS b",
    "fold": "SELECT total AS v FROM u AS a FOLD {$2.state > 0, $2.v > $.v, SUM($2.v) AS total} u AS b",
}
STEPS = [
    {"state": s, "v": v}
    for v, s in enumerate(["on", 7, "on", 9, {"status": "x"}, [7, "on"], True, 9.0, None, "on", [], 10])
]


def outputs(texts: dict[str, str]) -> dict[str, list[Any]]:
    matches, errors = book(texts).compile().match({"u": STEPS}, errors="collect")
    assert errors.to_pylist() == []
    found: dict[str, list[Any]] = {}
    for row in matches.to_pylist():
        found.setdefault(row["subscription"], []).append((row["event"], json.loads(row["output"])["v"]))
    return found


def test_each_sequence_gives_what_it_gives_alone() -> None:
    together = outputs(SEQUENCES)
    for name, text in SEQUENCES.items():
        assert together.get(name, []) == outputs({name: text}).get(name, []), text
    assert sorted(together["same"]) == [(2, 2), (5, 5), (5, 5), (7, 7), (9, 9)]
    assert sorted(together["numbers"]) == [(3, 3), (7, 7), (11, 11), (11, 11)]


@pytest.mark.parametrize("text", ["-(n) >= 2", "ABS(n) >= 2", "0 - n >= 2"])
def test_the_least_whole_number_has_no_opposite(text: str) -> None:
    for missing, matched in (("null", 0), ("default", 1)):
        book = hg.Subscriptions().add("q", f"NOT ({text})", on="u", missing=missing)
        assert book.compile().match({"u": [{"n": -(2**63)}]}).num_rows == matched

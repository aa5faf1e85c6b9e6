"""GRAPH patterns under Spark: what `plan.match` finds in process, with the bindings and the errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pj
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

import headgate as hg
from headgate.events import decode
from headgate.graphs.engine import GraphEngine
from headgate.runtime.batches import EVENT, BatchMatcher
from headgate.spark import match, split

pytestmark = pytest.mark.spark

FOLDER = Path(__file__).parents[2] / "examples" / "graphs"
Rows = set[tuple[str, Any, str, str | None]]


def expected(plan: hg.Plan, stream: str, events: Sequence[dict[str, Any]]) -> tuple[Rows, set[tuple[str, str]]]:
    decoded = decode([{k: v for k, v in e.items() if k != "id"} for e in events], plan.schemas[stream])
    columns = replace(decoded.columns, identity=pa.array([str(e["id"]) for e in events]))
    table, errors = plan.match({stream: columns}, errors="collect")
    rows = {(r["id"], events[r["event"]]["id"], r["subscription"], r["output"]) for r in table.to_pylist()}
    return rows, {(events[e["event"]]["id"], e["code"]) for e in errors.to_pylist()}


def auction(count: int) -> list[dict[str, Any]]:
    kinds = ["Desktop", "Computer", "Book", "Unheard"]
    head = "@prefix : <http://example.org/auction#> . @prefix units: <http://example.org/units#> . "
    head += "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . "
    made: list[dict[str, Any]] = []
    for i in range(count):
        text = (
            f"{head}_:H a :Selling ; :target _:t ; :price _:m . _:t a :{kinds[i % 4]} . "
            f"_:m a :MoneyValue ; :currency units:dollar ; rdf:value {i * 7 % 500}.00 ."
        )
        made.append({"id": f"e{i}", "event": [text, text, None, text, "no graph at all"][i % 5]})
    return made


def test_patterns_over_rdf_match_as_in_process(spark: SparkSession) -> None:
    subs = hg.Subscriptions.load(FOLDER / "auction.hg")
    events = auction(60)
    matches, errors = expected(subs.compile(), "auction", events)
    assert {name for _, _, name, _ in matches} >= {"cheap_computer", "bargain"}
    assert len(errors) == 12
    df = spark.createDataFrame([(e["id"], e["event"]) for e in events], "id string, event string").repartition(3)
    found, bad = split(match(df, subs, on="auction", event_id="id"))
    assert {(r["id"], r["event"], r["subscription"], r["output"]) for r in found.collect()} == matches
    assert {(r["event"], r["code"]) for r in bad.collect()} == errors


def test_patterns_over_plain_columns_match_as_in_process(spark: SparkSession) -> None:
    subs = hg.Subscriptions.load(FOLDER / "offers.hg")
    lines = (FOLDER / "offers.jsonl").read_text("utf-8").splitlines()
    df = spark.createDataFrame([(i, line) for i, line in enumerate(lines)], "id bigint, body string")
    plan = subs.compile()
    table = plan.match(pj.read_json(FOLDER / "offers.jsonl"))
    wanted = {(r["event"], r["subscription"], r["output"]) for r in table.to_pylist()}
    assert wanted
    found = match(df, subs, on="offers", event_id="id", json="body", errors="raise")
    assert {(r["event"], r["subscription"], r["output"]) for r in found.collect()} == wanted


def test_a_book_in_segments_matches_as_one(spark: SparkSession) -> None:
    subs = hg.Subscriptions.load(FOLDER / "auction.hg")
    subs.compile()
    subs.add("late", "GRAPH { _:H :target ?t . ?t a :Book }", on="auction")
    plan = subs.compile()
    assert len(plan.segments) == 2
    events = auction(20)
    matches, errors = expected(plan, "auction", events)
    df = spark.createDataFrame([(e["id"], e["event"]) for e in events], "id string, event string")
    for book in (plan, subs):
        found, bad = split(match(df, book, on="auction", event_id="id"))
        assert {(r["id"], r["event"], r["subscription"], r["output"]) for r in found.collect()} == matches
        assert [(r["event"], r["code"]) for r in bad.orderBy(fn.col("event")).collect()] == sorted(errors)


def test_a_graph_is_read_once_for_all_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    subs = hg.Subscriptions.load(FOLDER / "auction.hg")
    plans = [subs.part([name]) for name in subs]
    segments = tuple(s for p in plans for s in p.segments)
    whole = hg.Plan(plans[0].catalogue, segments, (None,) * len(segments), plans[0].context)
    read: list[str] = []
    original = GraphEngine._graph

    def counted(self: GraphEngine, text: str) -> Any:
        read.append(text)
        return original(self, text)

    monkeypatch.setattr(GraphEngine, "_graph", counted)
    matcher = BatchMatcher("auction", whole)
    events = auction(10)
    table = pa.table({EVENT: [e["id"] for e in events], "event": [e["event"] for e in events]})
    batch = matcher.decode(table)
    assert len(matcher.matches(batch)) > 0
    assert sorted(read) == sorted(e["event"] for e in events if e["event"] is not None)
    assert [(p.event, p.code) for p in batch.problems.listed()] == [(4, "rdf"), (9, "rdf")]

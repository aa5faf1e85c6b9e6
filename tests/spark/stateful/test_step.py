"""Sequences on Spark, on a batch and on a stream cut at random: the same matches as in process."""

from __future__ import annotations

import json
import math
import os
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from tests.runtime.stateful.pipeline import Batch, Match, book_of, in_process
from tests.sequences.book import OPERATORS
from tests.sequences.patterns import COLUMNS as COLUMN_NAMES
from tests.sequences.patterns import SCHEMAS, books, events

import headgate as hg
from headgate.spark import match

pytestmark = pytest.mark.spark

COLUMNS = "id string, a bigint, x double, k string, s bigint, e bigint, l array<bigint>, doc string"
SENTINEL = 1000
END = (None, None, None, SENTINEL, SENTINEL, None, None)
KEYED = {
    "by text": "SELECT e1.x AS x, e2.a AS a FROM S NEXT {$2.k = $1.k} T",
    "by number": "SELECT n, e1.k AS k FROM S FOLD {$2.a = $.a AND DUR <= 6, TRUE, COUNT(*) AS n} S",
    "mixed numbers": "SELECT e2.k AS k FROM S NEXT {$2.x = $1.a} T",
    "constant": "SELECT e2.e AS e FROM FILTER {k = 'p'} (S) NEXT {k = 'p' AND a >= $1.a} S",
    "silence": "SELECT e1.k AS k FROM S ABSENT {$2.k = $1.k} T WITHIN 3",
    "producer": "SELECT e1.k AS k, e2.x AS x FROM S NEXT {$2.k = $1.k} S PUBLISH kk",
    "consumer": "SELECT e1.x AS x, e2.a AS a FROM kk NEXT {$2.k = $1.k} T",
    "other key": "SELECT e2.k AS k FROM kk NEXT {$2.x >= $1.x} kk",
    "about both": "SELECT e1.a AS a, e2.a AS b FROM S NEXT {$2.k = $1.k AND near($1.x, $2.x)} T",
    "graph and run": "SELECT e1.a AS a FROM S NEXT {GRAPH doc {_:H <http://example.org/p> ?p} AND ?p > $1.a} T",
    "called": "SELECT e2.a AS a FROM FILTER {is_even('x')} (S) NEXT {$2.k = $1.k AND NOT is_even('x')} T",
}


@hg.operator
def is_even(event: Mapping[str, Any], name: str) -> bool:
    value = event.get(name) or 0
    return math.isfinite(value) and int(2 * value) % 2 == 0


def renamed(case: int, texts: Mapping[str, str]) -> dict[str, str]:
    """The book of one case under names of its own, so that many fit into one, and without the operator that fails."""
    unbroken = {n: t.replace("fragile(", "high(") for n, t in texts.items()}
    return {f"case {case} {n}": re.sub(r"\bP(\d)\b", rf"P{case}_\1", t) for n, t in unbroken.items()}


def rows(given: Sequence[tuple[str, Any]]) -> list[dict[str, Any]]:
    return [dict(zip(("id", *COLUMN_NAMES), (i, *r), strict=True)) for i, r in given]


def found(df: DataFrame) -> set[Match]:
    got = [(r["id"], r["subscription"], r["event"], r["output"]) for r in df.collect()]
    assert len(got) == len(set(got)), "a match came twice"
    return set(got)


def lines(folder: Path, parts: Sequence[Sequence[tuple[str, Any]]]) -> str:
    folder.mkdir(parents=True)
    for n, part in enumerate(parts):
        file = folder / f"{n:04}.json"
        file.write_text("\n".join(json.dumps(r) for r in rows(part)), "utf-8")
        os.utime(file, (n, n))  # Spark reads files in the order of their times
    return str(folder)


def cut(given: Sequence[tuple[str, Any]], pieces: int, delay: int, rng: random.Random) -> list[list[tuple[str, Any]]]:
    """In an order that the watermark allows, in pieces of random size; the end comes last."""
    shuffled = sorted(given, key=lambda g: g[1][4] + rng.uniform(0, delay))
    at = sorted(rng.randrange(len(shuffled) + 1) for _ in range(pieces - 1))
    return [*(shuffled[a:b] for a, b in zip([0, *at], [*at, len(shuffled)], strict=True)), [("end", END)]]


@settings(
    max_examples=1,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    database=None,
)
@given(
    cases=st.lists(books(), min_size=36, max_size=36),
    s=st.lists(events(20), min_size=2, max_size=2),
    t=events(20),
    seed=st.integers(0, 10**6),
)
def test_random_books_match_on_a_batch_and_on_a_stream_as_in_process(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, cases: Any, s: Any, t: Any, seed: int
) -> None:
    assume(seed)  # the first example is the simplest of all, and says nothing
    rng = random.Random(seed)
    texts = {n: text for case, one in enumerate(cases) for n, text in renamed(case, one).items()}
    subs = book_of({**texts, **KEYED}, SCHEMAS, operators=[is_even, *OPERATORS])
    whole: Batch = {
        "S": [(f"s{i}", r) for i, r in enumerate(sorted((r for part in s for r in part), key=lambda r: r[4]))],
        "T": [(f"t{i}", r) for i, r in enumerate(t)],
    }
    ended = {n: [*given, ("end", END)] for n, given in whole.items()}
    batch = {n: spark.createDataFrame([tuple(r.values()) for r in rows(g)], COLUMNS) for n, g in ended.items()}
    assert found(match(batch, subs, event_id="id", errors="raise")) == in_process(subs, ended, SENTINEL + 1)
    folder = tmp_path_factory.mktemp("streams")
    delay = 3
    frames = {
        n: spark.readStream.schema(COLUMNS)
        .option("maxFilesPerTrigger", 1)
        .json(lines(folder / n, cut(given, 4, delay, rng)))
        for n, given in whole.items()
    }
    result = match(frames, subs, event_id="id", errors="raise", watermark=delay, buckets=4)
    query = (
        result.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert found(spark.read.parquet(str(folder / "out"))) == in_process(subs, ended, SENTINEL - delay)

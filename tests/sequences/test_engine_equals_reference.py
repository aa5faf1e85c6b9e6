"""The engine gives what the definitions give, on random streams, patterns, batches and settings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.sequences.book import by_engine, by_reference, columns_of, events_of, spines_of
from tests.sequences.patterns import SCHEMAS, S, T, books, events

from headgate.sequences.automaton import Options

_options = st.builds(
    Options, st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.sampled_from([True, True, False])
)
_modes = st.sampled_from(["null", "null", "null", "strict", "default", "total"])


def cut(rows: list[tuple[Any, ...]], times: list[int]) -> list[list[tuple[Any, ...]]]:
    """The rows in pieces, each ending with the epochs up to one of the times."""
    bounds = [*sorted(times), 10**6]
    return [[r for r in rows if low < r[4] <= high] for low, high in zip([-(10**6), *bounds], bounds, strict=False)]


def check(texts: dict[str, str], s: Any, t: Any, times: list[int], missing: str, options: Options) -> None:
    for name, text in texts.items():
        note(f"{name}: {text}")
    spines = spines_of(texts, *SCHEMAS)
    expected = by_reference(spines, {"S": events_of(S, s), "T": events_of(T, t)}, missing)
    batches = []
    first = {"S": 0, "T": 0}
    for part_s, part_t in zip(cut(s, times), cut(t, times), strict=True):
        batches.append([columns_of(S, part_s, first["S"]), columns_of(T, part_t, first["T"])])
        first["S"] += len(part_s)
        first["T"] += len(part_t)
    assert by_engine(spines, batches, missing, options, SCHEMAS) == expected


CASES = {
    "texts": books(),
    "s": events(),
    "t": events(),
    "times": st.lists(st.integers(0, 8), max_size=2),
    "missing": _modes,
    "options": _options,
}


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(**CASES)
def test_the_engine_equals_the_reference_evaluator(
    texts: dict[str, str], s: Any, t: Any, times: list[int], missing: str, options: Options
) -> None:
    check(texts, s, t, times, missing, options)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(**{**CASES, "texts": books(depth=4)})
def test_the_engine_equals_the_reference_evaluator_at_length(
    texts: dict[str, str], s: Any, t: Any, times: list[int], missing: str, options: Options
) -> None:
    check(texts, s, t, times, missing, options)

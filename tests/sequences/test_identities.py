"""The numbers of events: stable, the same however the ids are cut or stored, and different for different ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headgate.columns import Columns
from headgate.sequences.identities import identities

TEXTS = [
    "",
    "a",
    "b",
    "a\0",
    "\0",
    "\0\0",
    "12345678",
    "123456789",
    "1234567",
    "event-0000000001",
    "event-0000000002",
    "é",
]


def numbers(ids: Any, stream: str = "s") -> list[int]:
    columns = Columns(stream, len(ids), {}, identity=ids)
    return [int(n) for n in identities(columns, np.arange(len(ids)))]


def test_different_ids_and_streams_have_different_numbers() -> None:
    made = numbers(pa.array(TEXTS)) + numbers(pa.array(TEXTS), "t")
    assert len(set(made)) == 2 * len(TEXTS)


def test_numbers_never_change() -> None:
    assert numbers(pa.array(["a", "event-0000000001"])) == [770876663955390544, 7949616522081754051]


@given(st.lists(st.text(max_size=20), max_size=8), st.integers(0, 8))
def test_a_number_depends_on_the_text_alone(texts: list[str], cut: int) -> None:
    whole = numbers(pa.array(texts, pa.string()))
    assert whole == numbers(pa.array(["x", *texts], pa.string())[1:])
    assert whole == numbers(pa.array(texts, pa.large_string()))
    assert whole == numbers(pa.array(texts[:cut], pa.string())) + numbers(pa.array(texts[cut:], pa.string()))
    assert len(set(whole)) == len(set(texts))


def test_without_ids_rows_are_told_apart() -> None:
    made = identities(Columns("s", 1000, {}), np.arange(1000))
    assert len(set(made.tolist())) == 1000

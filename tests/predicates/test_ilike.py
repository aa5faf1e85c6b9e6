"""ILIKE ignores case by code points: one stands for one, wherever it stands in its word, and an escape is itself."""

from __future__ import annotations

import pytest

import headgate as hg
from headgate.oracle import values
from headgate.predicates.likes import like_test

CASES = [
    ("ΟΔΟΣ", "οδος", None, True),
    ("οδος", "ΟΔΟΣ", None, True),
    ("ΟΔΟΣΑ", "%ΔΟΣ%", None, True),
    ("οδοσα", "%ΔΟΣ%", None, True),
    ("οδος", "%σ", None, True),  # noqa: RUF001 - Greek is meant
    ("Σ", "ς", None, True),
    ("İ", "_", None, True),
    ("İx", "_X", None, True),
    ("İ", "İ", None, True),
    ("İ", "i", None, False),
    ("straße", "STRAẞE", None, True),
    ("strasse", "straße", None, False),
    ("x1%", "X_x%", "x", True),
    ("xabc%", "x%X%", "X", True),
    ("xabc", "x%X%", "X", False),
    ("X%", "xx%", "x", True),
    ("X%", "xxx%", "x", True),
    ("XA", "xxx%", "x", False),
]


@pytest.mark.parametrize(("text", "pattern", "escape", "holds"), CASES)
def test_ilike_ignores_case_by_code_points(text: str, pattern: str, escape: str | None, holds: bool) -> None:
    written = f"t ILIKE '{pattern}'" + (f" ESCAPE '{escape}'" if escape else "")
    plan = hg.Subscriptions().stream("s", {"t": "string"}).add("indexed", written).compile()
    assert (plan.match([{"t": text}]).num_rows == 1) is holds
    assert like_test(pattern, escape, fold=True)(text) is holds
    assert values.like(text, pattern, escape, fold=True) is holds

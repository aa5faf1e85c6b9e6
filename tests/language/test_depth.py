"""Depth has a limit everywhere: what is nested beyond it is refused with its place, however deep."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import headgate as hg
from headgate.errors import LimitExceeded

NESTED: dict[str, Callable[[int], str]] = {
    "path": lambda n: ".".join(["a"] * n) + " = 1",
    "conditions in parentheses": lambda n: "(" * n + "a = 1" + ")" * n,
    "expressions in parentheses": lambda n: "(" * n + "a" + ")" * n + " = 1",
    "NOT": lambda n: "NOT " * n + "a = 1",
    "NOT and parentheses": lambda n: "NOT (" * n + "a = 1" + ")" * n,
    "minus": lambda n: "a < " + "- " * n + "1",
    "sum": lambda n: "a < " + "+".join(["b"] * n),
    "function": lambda n: "LOWER(" * n + "t" + ")" * n + " = 'x'",
    "AND in OR": lambda n: "(a = 1 AND (b = 2 OR " * (n // 2) + "c = 1" + "))" * (n // 2),
    "FILTER": lambda n: "SELECT * FROM " + "FILTER {TRUE} (" * n + "s" + ")" * n,  # noqa: S608 - not SQL
    "NEXT": lambda n: "SELECT * FROM s" + " NEXT {TRUE} s" * n,  # noqa: S608 - not SQL
    "GRAPH": lambda n: "GRAPH { _:H <p:p> ?v . FILTER (" + "(" * n + "?v > 1" + ")" * n + ") }",
}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("levels", [300, 3_000, 100_000])
def test_what_is_nested_too_deep_is_refused_with_its_place(kind: str, levels: int) -> None:
    with pytest.raises(LimitExceeded) as refused:
        hg.Subscriptions().add("q", NESTED[kind](levels), on="s")
    assert refused.value.place is not None


@pytest.mark.parametrize("kind", [k for k in NESTED if k not in ("FILTER", "NEXT", "GRAPH")])
def test_what_is_within_the_limit_is_matched(kind: str) -> None:
    levels = 64 if kind == "path" else 90
    plan = hg.Subscriptions().add("q", NESTED[kind](levels), on="s").compile()
    plan.match({"s": [{"a": 1, "b": 2, "c": 3, "t": "x"}]}, errors="collect")


@pytest.mark.parametrize("text", ["CREATE ONTOLOGY o FROM 'a\0b.ttl'", "CREATE STREAM `a\0b` (x BIGINT)"])
def test_a_nul_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(hg.HeadgateError, match="the character NUL has no place in a text"):
        hg.Subscriptions().extend(text)


def test_a_path_with_a_nul_names_no_file() -> None:
    with pytest.raises(hg.PlanError, match="cannot open the plan"):
        hg.Plan.open("a\0b")

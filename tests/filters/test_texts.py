from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.filters.atoms_strategy import LIKES

from headgate.filters import texts
from headgate.filters.texts import TextLiterals, _RegexSet
from headgate.language import ast
from headgate.language.ast import Node
from headgate.oracle import values
from headgate.predicates.likes import like_shape, like_test

A = ast.Attribute(("a",))
LETTERS = st.sampled_from("abAB%_!\n\x00éİΣς😀ß.*") | st.characters(codec="utf-8")
WORDS = st.text("ab", max_size=4) | st.text(LETTERS, max_size=6)
KINDS = st.sampled_from(["CONTAINS", "STARTS WITH", "ENDS WITH"])
PIECES = [
    "a",
    "b",
    "é",
    ".",
    "a*",
    "(ab)+",
    "[^a]",
    "|",
    r"\b",
    "^",
    "$",
    r"\n",
    "(?i)",
    "(?s)",
    "(?m)",
    r"\x00",
    "😀",
    r"\pL",
]
REGEXES = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
ESCAPES = st.sampled_from([None, "!", "a", "A", "%", "İ"])


def like(pattern: str, escape: str | None = None, fold: bool = False) -> Node:
    behind = () if escape is None else (ast.Literal(escape),)
    return ast.Test("ILIKE" if fold else "LIKE", (A, ast.Literal(pattern), *behind))


def forward(kind: str, part: str | None) -> Node:
    return ast.Test(kind, (A, ast.Literal(part)))


def reverse(kind: str, whole: str | None) -> Node:
    return ast.Test(kind, (ast.Literal(whole), A))


def matches(pattern: str) -> Node:
    return ast.Test("MATCHES", (A, ast.Literal(pattern)))


TESTS: st.SearchStrategy[Node] = st.one_of(
    st.builds(forward, KINDS, WORDS),
    st.builds(reverse, KINDS, WORDS),
    st.builds(like, LIKES | WORDS, ESCAPES, st.booleans()),
    st.builds(matches, REGEXES),
)


def is_true(test: Node, value: str) -> bool:
    assert isinstance(test, ast.Test)
    return values.holds(test.name, *(o.value if isinstance(o, ast.Literal) else value for o in test.operands))


def hits(compiled: TextLiterals, words: Sequence[str]) -> list[list[int]]:
    offsets, tests = compiled.hits(pa.array(words, pa.string()))
    assert (offsets.dtype, tests.dtype) == (np.dtype(np.int64), np.dtype(np.int32))
    return [tests[a:b].tolist() for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


def by_values(tests: Sequence[Node], words: Sequence[str]) -> list[list[int]]:
    return [[i for i, test in enumerate(tests) if is_true(test, word)] for word in words]


@settings(max_examples=1_000, deadline=None)
@given(st.lists(TESTS, max_size=12), st.lists(WORDS, max_size=8))
def test_the_hits_are_the_tests_that_are_true(tests: list[Node], words: list[str]) -> None:
    assert hits(TextLiterals.build(tests), words) == by_values(tests, words)


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.builds(reverse, KINDS, st.text("abé", max_size=12)), max_size=20), st.lists(st.text("abé", max_size=6))
)
def test_a_value_is_found_in_the_constants_that_hold_it(tests: list[Node], words: list[str]) -> None:
    assert hits(TextLiterals.build(tests), words) == by_values(tests, words)


@settings(max_examples=500, deadline=None)
@given(LIKES | WORDS, ESCAPES, st.booleans(), st.lists(WORDS, max_size=5))
def test_one_like_pattern_is_tested_as_it_is_defined(
    pattern: str, escape: str | None, fold: bool, words: list[str]
) -> None:
    test = like_test(pattern, escape, fold)
    assert [test(word) for word in words] == [values.like(word, pattern, escape, fold) for word in words]


@settings(deadline=None)
@given(st.lists(TESTS, max_size=5), st.lists(WORDS, max_size=5))
def test_a_pickle_gives_the_same_hits_before_and_after_it_was_used(tests: list[Node], words: list[str]) -> None:
    compiled = TextLiterals.build(tests)
    fresh = pickle.loads(pickle.dumps(compiled))  # noqa: S301 - made one line above
    assert hits(fresh, words) == hits(compiled, words)
    used = pickle.dumps(compiled)
    assert hits(pickle.loads(used), words) == hits(compiled, words)  # noqa: S301 - made one line above


@pytest.mark.parametrize("memory", [1 << 13, 1 << 15, 1 << 17])
def test_a_set_that_does_not_fit_in_memory_is_split(memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_SET_MEMORY", memory)
    tests = [matches(f"{a}.*{b}[0-9]+$") for a in "abcde" for b in "vwxyz"]
    words = ["a v1", "abcde vwxyz12", "e v", "z a", "", "ab xyz77" * 20]
    assert hits(TextLiterals.build(tests), words) == by_values(tests, words)


class _Exhausted:
    """A set as it is when RE2 has no memory left: not even the empty expression is found."""

    def Match(self, text: bytes) -> None:  # noqa: N802 - RE2's own name
        return None


def test_a_search_that_runs_out_of_memory_is_not_taken_for_one_without_hits() -> None:
    regexes = _RegexSet([(b"a", 7), (b"b", 8), (b"a|b", 9)])
    regexes._set = _Exhausted()
    assert sorted(regexes.found(b"xa")) == [7, 9]
    alone = _RegexSet([(b"a", 7)])
    alone._set = _Exhausted()
    assert (alone.found(b"xa"), alone.found(b"xb")) == ([7], [])


@pytest.mark.parametrize(
    ("pattern", "escape", "kind", "literal"),
    [
        ("ab", None, "EQUALS", "ab"),
        ("", None, "EQUALS", ""),
        ("ab%", None, "STARTS", "ab"),
        ("%%ab", None, "ENDS", "ab"),
        ("%a!%b%%", "!", "CONTAINS", "a%b"),
        ("%", None, "ENDS", ""),
        ("a%bcd", None, "PIECES", "bcd"),
        ("%a%bc%", None, "PIECES", "bc"),
        ("ab_c", None, "REGEX", "ab"),
        ("_%", None, "REGEX", ""),
    ],
)
def test_a_like_pattern_takes_the_cheapest_look_up(pattern: str, escape: str | None, kind: str, literal: str) -> None:
    shape = like_shape(pattern, escape, False)
    assert (shape.kind, shape.literal) == (kind, literal)


def test_a_like_pattern_of_many_runs_takes_no_longer_than_others() -> None:
    pattern, word = "%a" * 30 + "%b", "a" * 5_000
    assert hits(TextLiterals.build([like(pattern)]), [word, word + "b"]) == [[], [0]]
    assert like_test(pattern, None, False)(word) is False


def test_the_empty_text_is_in_every_text() -> None:
    tests = [forward(kind, "") for kind in ("CONTAINS", "STARTS WITH", "ENDS WITH")]
    assert hits(TextLiterals.build(tests), ["", "a"]) == [[0, 1, 2], [0, 1, 2]]


def test_a_test_against_null_is_never_true() -> None:
    tests = [forward("CONTAINS", None), reverse("ENDS WITH", None), ast.Test("LIKE", (A, ast.Literal(None)))]
    assert hits(TextLiterals.build(tests), ["", "a"]) == [[], []]


def test_half_of_a_surrogate_pair_is_in_no_text() -> None:
    tests = [forward("CONTAINS", "\ud83d"), like("%\ud83d_"), reverse("CONTAINS", "\ud83da")]
    assert hits(TextLiterals.build(tests), ["😀", "a"]) == [[], [2]]
    assert like_test("_\ud83d", None, False)("😀") is False


def test_tests_that_ask_the_same_share_one_pattern() -> None:
    compiled = TextLiterals.build([forward("STARTS WITH", "a"), like("a%"), like("a%%", "!")])
    assert compiled.tests == [[0, 1, 2]]


def test_no_tests_have_no_hits() -> None:
    assert hits(TextLiterals.build([]), ["a"]) == [[]]

"""The error tree: one root, a stable code each, and texts that a person can act on."""

from __future__ import annotations

import pytest

from headgate import errors
from headgate.errors import HeadgateError, LanguageError, LanguageErrors, Place, SyntaxProblem, TypeProblem

CODES = {
    "HeadgateError": "error",
    "LanguageError": "language",
    "SyntaxProblem": "syntax",
    "TypeProblem": "type",
    "BindingProblem": "binding",
    "LimitExceeded": "limit",
    "UnknownName": "unknown",
    "DuplicateName": "duplicate",
    "LanguageErrors": "language",
    "SchemaError": "schema",
    "EventError": "event",
    "PlanError": "plan",
    "UsageError": "usage",
    "EnvironmentProblem": "environment",
}


def test_every_error_is_in_the_tree_and_has_its_code() -> None:
    found = {
        name: kind.code
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, HeadgateError)
    }
    assert found == CODES


@pytest.mark.parametrize("name", [n for n in CODES if n != "LanguageErrors"])
def test_an_error_shows_its_message_and_its_hint(name: str) -> None:
    kind = getattr(errors, name)
    assert str(kind("it broke", "mend it")) == "it broke\n  hint: mend it"
    assert str(kind("it broke")) == "it broke"


def test_a_language_error_draws_its_place() -> None:
    problem = TypeProblem("no", "yes", place=Place(3, 5, 2, "    xx y"))
    assert str(problem) == "line 3, column 5: no\n      xx y\n      ^^\n  hint: yes"


def test_a_caret_never_leaves_its_line() -> None:
    assert Place(1, 4, 99, "abcdef").caret() == "abcdef\n   ^^^"
    assert Place(1, 7, 99, "abcdef").caret() == "abcdef\n      ^"


def test_several_language_errors_are_shown_one_after_the_other() -> None:
    problems: list[LanguageError] = [SyntaxProblem("one"), TypeProblem("two", "mend")]
    together = LanguageErrors(problems)
    assert str(together) == "one\n\ntwo\n  hint: mend"
    assert together.errors == problems

"""Scripts of CREATE statements, run on a book one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.errors import LanguageError, LanguageErrors, SchemaError, TypeProblem, UsageError
from headgate.language import ast
from headgate.language.parser import parse_statement
from headgate.language.tokens import Tokens
from headgate.predicates.modes import MODES
from headgate.subscriptions.draft import check_names


@dataclass(frozen=True, slots=True)
class Options:
    """What WITH says of a subscription."""

    missing: str = "null"
    labels: dict[str, str] = field(default_factory=dict)


def statement_of(tokens: Tokens) -> ast.Statement:
    """A statement, with TRUE for the body of a subscription: the body is admitted by itself, by the form of its atoms."""
    check_names(tokens)
    return parse_statement(_headed(tokens))


def body_of(tokens: Tokens) -> tuple[str, Tokens]:
    """The body of a CREATE SUBSCRIPTION: its text, and its tokens with their places in the script."""
    body = tokens.part(_as(tokens) + 1, len(tokens))
    return tokens.source[body.starts[0] : body.starts[-1] + len(body.raws[-1])], body


def options_of(statement: ast.CreateSubscription) -> Options:
    missing, labels = "null", {}
    for option in statement.options:
        value = option.value.value if isinstance(option.value, ast.Literal) else None
        if option.name.lower() == "missing":
            if value not in MODES:
                raise TypeProblem(f"{value!r} is no mode", f"the modes are {', '.join(MODES)}", at=option.at + 2)
            missing = value
        elif isinstance(value, str):
            labels[option.name] = value
        else:
            raise TypeProblem(f"the label {option.name} must be a text", at=option.at + 2)
    return Options(missing, labels)


def problems_of(
    problem: LanguageError | LanguageErrors | SchemaError | UsageError, tokens: Tokens
) -> list[LanguageError]:
    """The problems of one statement, with their places."""
    if isinstance(problem, LanguageErrors):
        return problem.errors
    if not isinstance(problem, LanguageError):
        problem = TypeProblem(problem.message, problem.hint, at=0)
    return [tokens.error(problem)]


def _as(tokens: Tokens) -> int:
    """The AS that begins the body of a CREATE SUBSCRIPTION, or -1."""
    depth = 0
    if tokens.kinds[:2] == ["CREATE", "SUBSCRIPTION"]:
        for i, kind in enumerate(tokens.kinds):
            depth += (kind == "LPAR") - (kind == "RPAR")
            if kind == "AS" and depth == 0:
                return i
    return -1


def _headed(tokens: Tokens) -> Tokens:
    at = _as(tokens)
    if at < 0 or at + 1 == len(tokens):
        return tokens
    head = tokens.part(0, at + 1)
    head.kinds.append("TRUE")
    head.raws.append("TRUE")
    head.starts.append(tokens.starts[at + 1])
    return head

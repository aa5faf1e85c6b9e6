"""One error tree.

Every error says what was wrong, where, and what to do about it. `HeadgateError.code` is stable and goes into
`--json` output and the error channel; the wording may change. A language error also knows its place in the text and
can draw it with a caret, because a subscription is something people type.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a text something stands: lines and columns count from 1, `length` is the width of the caret."""

    line: int
    column: int
    length: int
    excerpt: str

    def caret(self) -> str:
        """The source line with a caret under the place; long lines are cut around it."""
        start = max(0, self.column - 61)
        shown = self.excerpt[start : start + 120]
        pad = "".join("\t" if c == "\t" else " " for c in shown[: self.column - 1 - start])
        width = max(1, min(self.length, len(shown) - len(pad)))
        return f"{shown}\n{pad}{'^' * width}"


class HeadgateError(Exception):
    """The root of the tree: catch this to catch everything Headgate raises on purpose."""

    code = "error"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class LanguageError(HeadgateError):
    """A text that is not a subscription, or not a sensible one. `at` is the index of the token it points to."""

    code = "language"

    def __init__(self, message: str, hint: str = "", *, at: int = -1, place: Place | None = None) -> None:
        super().__init__(message, hint)
        self.at = at
        self.place = place

    def __str__(self) -> str:
        if self.place is None:
            return super().__str__()
        drawn = "\n".join("  " + line for line in self.place.caret().split("\n"))
        text = f"line {self.place.line}, column {self.place.column}: {self.message}\n{drawn}"
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class SyntaxProblem(LanguageError):
    """The text does not follow the grammar."""

    code = "syntax"


class TypeProblem(LanguageError):
    """The text follows the grammar but cannot mean anything: text compared with a number, an unknown attribute."""

    code = "type"


class BindingProblem(LanguageError):
    """A `?variable` is used where nothing has bound it."""

    code = "binding"


class LimitExceeded(LanguageError):
    """A text is larger or deeper than the limits allow."""

    code = "limit"


class UnknownName(LanguageError):
    """A stream, operator, ontology or subscription that does not exist."""

    code = "unknown"


class DuplicateName(LanguageError):
    """A name that is taken already."""

    code = "duplicate"


class LanguageErrors(HeadgateError):
    """Several language errors of one script, in the order of the text."""

    code = "language"

    def __init__(self, errors: list[LanguageError]) -> None:
        super().__init__("\n\n".join(str(e) for e in errors))
        self.errors = errors


class SchemaError(HeadgateError):
    """A table, frame or stream whose columns cannot serve: a needed column is gone, a type is not supported."""

    code = "schema"


class EventError(HeadgateError):
    """An event that could not be used. `plan.match(..., errors="raise")` raises it; else it is an error row."""

    code = "event"


class PlanError(HeadgateError):
    """A plan that cannot be compiled, opened or used as asked."""

    code = "plan"


class UsageError(HeadgateError):
    """A call with arguments that make no sense together."""

    code = "usage"


class EnvironmentProblem(HeadgateError):
    """The machine lacks something: Java, an extra, a reachable server. Exit code 2 on the command line."""

    code = "environment"

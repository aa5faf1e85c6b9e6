"""Forms: what texts share that differ in their literals only.

A shape forgets names and literals; a form forgets literals alone. Type check and normal form depend on no more than the
form (and on a few literals that must be looked at one by one: regular expressions, times, escapes), so a book checks
and compiles a million texts by some thousand forms and keeps their literals in columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from headgate.language import ast
from headgate.language.ast import Hole, Node
from headgate.language.build import FORMS, value_of
from headgate.language.parser import template
from headgate.language.tokens import LIMITS, Limits, Tokens, tokenise

_LITERALS = frozenset({"INT", "FLOAT", "STRING"})
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """`body` has a `Hole(i)` where a text brings its literal number i; `signs` tells which of those are negative."""

    body: Node
    tokens: tuple[int, ...]
    """The tokens that are literals, in order."""
    kinds: tuple[str, ...]

    def literals(self, tokens: Tokens) -> tuple[Any, ...]:
        return tuple([value_of(tokens, i) for i in self.tokens])

    def fill(self, literals: tuple[Any, ...]) -> Node:
        """The body of the text with these literals."""
        return fill(self.body, lambda hole: FORMS[hole.form](literals[hole.token]))


_forms: dict[tuple[str, tuple[str, ...]], Form] = {}
_MOST = 100_000


def form_of(tokens: Tokens) -> Form:
    """The form of one text; the text must be the body of a subscription."""
    tokens.check()
    kinds, raws = tokens.kinds, tokens.raws
    made = template(tokens)
    names = tuple([raws[i] for i in made.holes if kinds[i] not in _LITERALS])
    key = (tokens.shape, names)
    found = _forms.get(key)
    if found is None:
        literals = tuple(i for i in made.holes if kinds[i] in _LITERALS)
        numbers = {token: i for i, token in enumerate(literals)}

        def name_or_hole(hole: Hole) -> Any:
            if hole.token in numbers:
                return Hole(numbers[hole.token], hole.form)
            return FORMS[hole.form](value_of(tokens, hole.token))

        found = Form(fill(made.tree, name_or_hole), literals, tuple(kinds[i] for i in literals))
        if len(_forms) >= _MOST:
            _forms.clear()
        _forms[key] = found
    return found


def form(text: str, limits: Limits = LIMITS) -> tuple[Form, tuple[Any, ...]]:
    tokens = tokenise(text, limits)
    found = form_of(tokens)
    return found, found.literals(tokens)


def fill(value: T, leaf: Callable[[Hole], Any]) -> T:
    """`value` with every hole replaced; parts without holes are kept as they are."""
    if isinstance(value, Hole):
        return leaf(value)  # type: ignore[no-any-return]  # a hole stands for a value of any type
    if isinstance(value, tuple):
        made = tuple(fill(v, leaf) for v in value)
        return made if any(a is not b for a, b in zip(made, value, strict=True)) else value  # type: ignore[return-value]  # a tuple for a tuple
    if isinstance(value, Node):
        parts = {f.name: fill(getattr(value, f.name), leaf) for f in fields(value)}
        if any(parts[name] is not getattr(value, name) for name in parts):
            return type(value)(**parts)
    return value


def value_checks(body: Node) -> bool:
    """Whether some literal of the form must be looked at in every text: regular expressions, times, escapes."""
    return any(
        isinstance(node, ast.Matches | ast.Instant | ast.Like | ast.Span)
        or (isinstance(node, ast.Arithmetic | ast.Negate))
        for node in ast.walk(body)
    )

r"""LIKE patterns, read once and tested in time linear in the text.

Most patterns are an equality, a prefix, a suffix or a part. Of the others those without `_` are pieces that must follow
each other, which a left-to-right search decides: the earliest place for each piece leaves the most room for the rest.
What has `_` between other things becomes an anchored RE2 expression. A backtracking expression, as in `oracle/values.py`,
is the plain definition but polynomial in the text, with the number of `%` as the exponent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, AnyStr

import re2


@dataclass(frozen=True, slots=True)
class LikeShape:
    """What decides a pattern. `kind` is EQUALS, STARTS, ENDS, CONTAINS, PIECES or REGEX.

    `pieces` are the texts around each `%`, two or more; of the first four kinds, the one text that is looked for.
    `literal` is the longest text that every value must contain, empty if there is none.
    """

    kind: str
    pieces: tuple[str, ...]
    literal: str
    regex: str = ""


def like_shape(pattern: str, escape: str | None, fold: bool) -> LikeShape:
    """ILIKE (`fold`) is LIKE between `folded` texts, so its shape is to be tested on those."""
    pieces, literals, regex = [""], [""], [r"(?s)\A"]
    single = False
    for literal, c in _tokens(pattern, escape):
        if literal:
            c = folded(c) if fold else c
            pieces[-1] += c
            literals[-1] += c
            regex.append(re2.escape(c))
            continue
        literals.append("")
        if c == "_":
            single = True
            regex.append(".")
        elif regex[-1] != ".*":
            pieces.append("")
            regex.append(".*")
    longest = max(literals, key=len)
    if single:
        return LikeShape("REGEX", (), longest, "".join(regex) + r"\z")
    kind = {1: "EQUALS", 2: "STARTS" if pieces[0] else "ENDS", 3: "CONTAINS"}.get(len(pieces), "PIECES")
    if sum(map(bool, pieces)) > 1:
        return LikeShape("PIECES", tuple(pieces), longest)
    return LikeShape(kind, (longest,), longest)


def _tokens(pattern: str, escape: str | None) -> Iterator[tuple[bool, str]]:
    """The characters of a LIKE pattern, each with whether it stands for itself."""
    at = 0
    while at < len(pattern):
        escaped = pattern[at] == escape and at + 1 < len(pattern)
        at += escaped
        yield escaped or pattern[at] not in "%_", pattern[at]
        at += 1


class _SimpleFolding(dict[int, str]):
    """Unicode's simple case folding: a code point for a code point, whatever stands beside it."""

    def __missing__(self, code: int) -> str:
        c = chr(code)
        self[code] = one = next((f for f in (c.casefold(), c.lower()) if len(f) == 1), c)
        return one


_FOLDING = _SimpleFolding()


def folded(text: str) -> str:
    """A text without its case, as long as before."""
    return text.lower() if text.isascii() else text.translate(_FOLDING)


def in_order(text: AnyStr, pieces: Sequence[AnyStr]) -> bool:
    """Is the text the pieces, two or more, with anything between them?"""
    first, last = pieces[0], pieces[-1]
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for piece in pieces[1:-1]:
        at = text.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True


@lru_cache(maxsize=10_000)
def regex(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options=options)


def is_unicode(text: str) -> bool:
    """False for half of a surrogate pair, which no event holds and no automaton takes."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def like_test(pattern: str, escape: str | None, fold: bool) -> Callable[[str], bool]:
    """The test of texts against one pattern."""
    if not is_unicode(pattern):
        return lambda _: False
    shape = like_shape(pattern, escape, fold)
    pieces = shape.pieces
    test: Callable[[str], bool]
    match shape.kind:
        case "REGEX":
            search = regex(shape.regex).search
            test = lambda word: search(word) is not None  # noqa: E731 - one of four alternatives side by side
        case "PIECES":
            test = lambda word: in_order(word, pieces)  # noqa: E731 - one of four alternatives side by side
        case "EQUALS":
            test = pieces[0].__eq__
        case "STARTS":
            test = lambda word: word.startswith(pieces[0])  # noqa: E731 - one of several alternatives side by side
        case "ENDS":
            test = lambda word: word.endswith(pieces[0])  # noqa: E731 - one of several alternatives side by side
        case _:
            test = lambda word: pieces[0] in word  # noqa: E731 - one of several alternatives side by side
    return (lambda word: test(folded(word))) if fold else test

"""Texts of patterns cut at their braces, without their tokens.

What stands in braces are predicates; the rest is the outline. Without its numbers and texts in quotes, the wording of a
predicate is its *frame*: a hundred thousand texts have a few outlines and some hundred frames. A frame is looked at word
by word when it is first met at a place in an outline; for other texts that have it there, only literals are read.

A text is not cut where a quote, a brace or a comment could mean something else than it seems to; its tokens decide.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from headgate.language.ast import TRUE, Node
from headgate.language.build import FORMS
from headgate.language.tokens import LIMITS, VALUES, Tokens

_LITERAL = re.compile(r"(?<=[\s(,=<>])(\d+(?:\.\d+)?|'(?:[^']|'')*')(?=[\s),]|$)")
_DOUBTFUL = re.compile(r"[`\";\0]|--")
_NUMERALS = ("INT", "FLOAT", "STRING")
_LONGEST, _LONGEST_LITERAL = 10_000, 300
"""Longer ones are measured against the limits, and against what a number can be, by their tokens."""
PIECE = 16
"""A literal is known by its piece, shifted by so much, and its number there."""


class Cut(NamedTuple):
    """The outline, and for each pair of braces the frame of what stands in it, with its literals."""

    outline: tuple[str, ...]
    frames: list[str]
    literals: list[list[str]]


def cut(text: str) -> Cut | None:
    """None if the tokens must be looked at."""
    if len(text) > _LONGEST or not text.isascii() or _DOUBTFUL.search(text):
        return None
    quoted = "'" in text
    first, *rest = text.split("{")
    outline, frames, literals = [first], [], []
    for part in rest:
        inside, closed, outside = part.partition("}")
        if not closed or "}" in outside:
            return None
        pieces = _LITERAL.split(inside)
        gaps, own = pieces[::2], pieces[1::2]
        if quoted and any("'" in gap for gap in gaps):
            return None
        if len(inside) > _LONGEST_LITERAL and max(map(len, own), default=0) > _LONGEST_LITERAL:
            return None
        kinds = ["'" if raw[0] == "'" else "." if "." in raw else "1" for raw in own]
        frames.append("\0".join(gaps + kinds))
        literals.append(own)
        outline.append(outside)
    if quoted and any("'" in outside for outside in outline):
        return None
    return Cut(tuple(outline), frames, literals)


@dataclass(frozen=True, eq=False, slots=True)
class Piece:
    """A frame at its place: how many tokens it has, its literals that stay holes (the number of each and what makes its
    value) and those that do not, and the predicates in it. `pure`: it is one predicate and nothing else; what else stands
    in braces, as the aggregates of a FOLD do, belongs to the outline."""

    frame: str
    tokens: int
    loose: tuple[tuple[int, Callable[[str], Any]], ...]
    fixed: tuple[int, ...]
    predicates: tuple[int, ...]
    pure: bool


@dataclass(frozen=True, eq=False, slots=True)
class Wording:
    """The texts with one outline: how many tokens that has, and the pieces that are known at each place."""

    tokens: int
    pieces: list[dict[str, Piece]]


@dataclass(frozen=True, slots=True)
class Worded:
    """One text."""

    wording: Wording
    pieces: list[Piece]
    literals: list[list[str]]

    @property
    def variant(self) -> tuple[object, ...]:
        """What of the pieces belongs to the outline."""
        return tuple([None if p.pure else self.key(j) for j, p in enumerate(self.pieces)])

    def key(self, j: int) -> object:
        """The same for what means the same at place j, but for the values of holes."""
        piece = self.pieces[j]
        if not piece.fixed:
            return piece
        raws = self.literals[j]
        return (piece, *[raws[i] for i in piece.fixed])


@dataclass
class Wordings:
    """Those that are known."""

    known: dict[tuple[str, ...], Wording] = field(default_factory=dict)

    def of(self, text: str) -> Worded | None:
        """None for a text that is new in some part, or that cannot be cut."""
        parts = cut(text)
        if parts is None:
            return None
        wording = self.known.get(parts.outline)
        if wording is None:
            return None
        pieces, count = [], wording.tokens
        for at, frame in zip(wording.pieces, parts.frames, strict=True):
            piece = at.get(frame)
            if piece is None:
                return None
            count += piece.tokens
            pieces.append(piece)
        if count > LIMITS.depth:
            return None
        return Worded(wording, pieces, parts.literals)

    def learn(
        self, text: str, tokens: Tokens, loose: Mapping[int, str], outline: Sequence[int], predicates: Sequence[Node]
    ) -> Worded | None:
        """A text by its tokens; None if it cannot be cut as they are. `loose` are those whose constants stay holes,
        `outline` other names and literals outside predicates."""
        parts = cut(text)
        if parts is None or "GRAPH" in tokens.kinds:
            return None
        inside = _inside(tokens)
        if len(inside) != len(parts.frames):
            return None
        braced = {t: j for j, (start, stop) in enumerate(inside) for t in range(start, stop)}
        by_piece: list[list[int]] = [[] for _ in inside]
        for k, predicate in enumerate(predicates):
            if predicate.at in braced:
                by_piece[braced[predicate.at]].append(k)
            elif predicate != TRUE:
                return None
        pieces = []
        for j, (start, stop) in enumerate(inside):
            at = [t for t in range(start, stop) if tokens.kinds[t] in _NUMERALS]
            if [tokens.raws[t] for t in at] != parts.literals[j]:
                return None
            numbers = {t: i for i, t in enumerate(at)}
            pieces.append(
                Piece(
                    parts.frames[j],
                    stop - start,
                    tuple((i, _value(tokens.kinds[t], loose[t])) for t, i in numbers.items() if t in loose),
                    tuple(i for t, i in numbers.items() if t not in loose),
                    tuple(by_piece[j]),
                    len(by_piece[j]) == 1
                    and not _several(tokens, start, stop)
                    and not any(start <= t < stop for t in outline),
                )
            )
        wording = self.known.get(parts.outline)
        if wording is None:
            wording = Wording(len(tokens) - sum(p.tokens for p in pieces), [{} for _ in pieces])
            self.known[parts.outline] = wording
        kept = [known.setdefault(p.frame, p) for known, p in zip(wording.pieces, pieces, strict=True)]
        return Worded(wording, kept, parts.literals)


def numbers_of(tokens: Tokens) -> dict[int, int]:
    """By token: what a literal in braces is known by."""
    found = {}
    for j, (start, stop) in enumerate(_inside(tokens)):
        at = [t for t in range(start, stop) if tokens.kinds[t] in _NUMERALS]
        found.update({t: j << PIECE | i for i, t in enumerate(at)})
    return found


def _inside(tokens: Tokens) -> list[tuple[int, int]]:
    """Where what stands in braces begins and ends."""
    opens = [t for t, kind in enumerate(tokens.kinds) if kind == "LBRACE"]
    closes = [t for t, kind in enumerate(tokens.kinds) if kind == "RBRACE"]
    return [(o + 1, c) for o, c in zip(opens, closes, strict=False)]


def _several(tokens: Tokens, start: int, stop: int) -> bool:
    """Whether there is a comma outside parentheses."""
    depth = 0
    for kind in tokens.kinds[start:stop]:
        depth += (kind == "LPAR") - (kind == "RPAR")
        if kind == "COMMA" and depth == 0:
            return True
    return False


def _value(kind: str, form: str) -> Callable[[str], Any]:
    read = {"INT": int, "FLOAT": float}.get(kind, VALUES[kind])
    return read if not form else partial(_formed, FORMS[form], read)


def _formed(form: Callable[[Any], Any], read: Callable[[str], Any], raw: str) -> Any:
    return form(read(raw))

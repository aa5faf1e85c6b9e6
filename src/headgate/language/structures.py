"""The boolean structure of a filter: AND, OR, NOT and parentheses around atoms, read without the grammar.

The skeleton of a text has one character for each joint and one for each atom. Texts share skeletons, so each is read once.
"""

from __future__ import annotations

from headgate.language.tokens import CODES

AND, OR, NOT, LPAR, RPAR = (CODES[kind] for kind in ("AND", "OR", "NOT", "LPAR", "RPAR"))
Structure = int | tuple[str, tuple["Structure", ...]]
"""The number of an atom, or ("and" | "or", parts), or ("not", (part,))."""
_skeletons: dict[str, Structure | None] = {}
_MOST = 200_000
_LONGEST = 256
"""What is longer is not remembered: the cache is bounded in its entries."""


class NotPlain(Exception):
    """The tokens are not a plain boolean structure; the grammar decides."""


def structure_of(skeleton: str) -> Structure | None:
    """What a skeleton means; None if it is none."""
    if skeleton in _skeletons:
        return _skeletons[skeleton]
    if len(_skeletons) >= _MOST:
        _skeletons.clear()
    try:
        structure = _Skeleton(skeleton).read()
    except NotPlain:
        structure = None
    if len(skeleton) <= _LONGEST:
        _skeletons[skeleton] = structure
    return structure


class _Skeleton:
    """AND, OR, NOT and parentheses around atoms, each a single character."""

    def __init__(self, text: str) -> None:
        self._text = text + "."
        self._at = 0
        self._atoms = 0

    def read(self) -> Structure:
        structure = self._joined(OR)
        if self._at + 1 < len(self._text):
            raise NotPlain
        return structure

    def _joined(self, joint: str) -> Structure:
        """Parts joined by OR, each of parts joined by AND; flat, as the grammar builds them."""
        name = "or" if joint == OR else "and"
        parts: list[Structure] = []
        while True:
            part = self._joined(AND) if joint == OR else self._part()
            if not isinstance(part, int) and part[0] == name:
                parts.extend(part[1])
            else:
                parts.append(part)
            if self._text[self._at] != joint:
                return parts[0] if len(parts) == 1 else (name, tuple(parts))
            self._at += 1

    def _part(self) -> Structure:
        sign = self._text[self._at]
        self._at += 1
        if sign == "a":
            self._atoms += 1
            return self._atoms - 1
        if sign == NOT:
            return ("not", (self._part(),))
        if sign == LPAR:
            inner = self._joined(OR)
            if self._text[self._at] == RPAR:
                self._at += 1
                return inner
        raise NotPlain

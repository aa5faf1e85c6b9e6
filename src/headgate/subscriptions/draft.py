"""A text on its way into a book, and what no grammar is needed to refuse in it.

A filter is cut at its joints where that does; its tokens are made only where it must be looked at word by word, or where
a problem needs a place.
"""

from __future__ import annotations

from headgate.errors import LimitExceeded, SyntaxProblem
from headgate.language.forms import Cut, cut, cut_at_joints
from headgate.language.tokens import LIMITS, Limits, Tokens, tokenise

PARTS = 64
"""How many parts the name of an attribute may have."""
_SHORT = 10_000
"""A longer text is measured against the limits token by token."""


class Draft:
    __slots__ = ("_limits", "_tokens", "text")

    def __init__(self, text: str, limits: Limits = LIMITS, tokens: Tokens | None = None) -> None:
        """`tokens` are given where the text is part of a script, so that places are those of the script."""
        self.text = text
        self._limits = limits
        self._tokens = tokens

    @property
    def tokens(self) -> Tokens:
        if self._tokens is None:
            self._tokens = tokenise(self.text, self._limits)
        return self._tokens

    @property
    def selects(self) -> bool:
        """Whether it is a sequence."""
        return self.plain_pattern or self.tokens.kinds[0] == "SELECT"

    @property
    def plain_pattern(self) -> bool:
        """A sequence that is no part of a script and keeps to the usual limits."""
        return self._tokens is None and self._limits is LIMITS and self.text[:7].upper() == "SELECT "

    def cut(self) -> Cut | None:
        """The filter, cut into its atoms; None for a sequence."""
        text = self.text
        if self._tokens is None and self._limits is LIMITS and len(text) <= _SHORT and _plain(text):
            found = cut_at_joints(text)
            if found is not None:
                return found
        tokens = self.tokens
        check_names(tokens)
        return None if tokens.kinds[0] == "SELECT" else cut(tokens)


def _plain(text: str) -> bool:
    return "\0" not in text and text.count(".") < PARTS


def check_names(tokens: Tokens) -> None:
    """Refuse NUL, which databases cannot keep, and names so long that reading an event by them would go too deep."""
    if _plain(tokens.source):
        return
    for i, (kind, raw) in enumerate(zip(tokens.kinds, tokens.raws, strict=True)):
        if "\0" in raw:
            raise tokens.error(SyntaxProblem("the character NUL has no place in a text", "leave it out", at=i))
        if raw.count(".") >= PARTS and kind not in ("STRING", "IRI", "ERROR") and len(tokens.value(i)) > PARTS:
            raise tokens.error(LimitExceeded(f"a name has more than {PARTS} parts", "shorten the path", at=i))

"""Text patterns: keywords, entities from a list, the language of a text, its tone (DEBS 2007, section 2.1.1).

Keywords and entities are found by an Aho-Corasick automaton over word boundaries, all of them in one pass. The language
is told by the rank order of character trigrams (Cavnar and Trenkle, 1994) against profiles made from sample texts; the
tone by naive Bayes with add-one smoothing over examples. Both learn from what they are given and need no download.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ahocorasick_rs import AhoCorasick, MatchKind

from headgate.errors import UsageError
from headgate.operators.registry import VAR, Operator, operator

_WORD = re.compile(r"\w+")
PROFILE = 300
"""How many trigrams a profile keeps: the number of Cavnar and Trenkle."""


class Entities:
    """Names in a list, each with its kind; found in texts whole, whatever their case."""

    def __init__(self, kinds: Mapping[str, Iterable[str]]) -> None:
        """`kinds` gives for each kind the names of its entities."""
        self._names = [(name, kind) for kind, names in kinds.items() for name in names]
        folded = [name.casefold() for name, _ in self._names]
        self._automaton = AhoCorasick(folded, matchkind=MatchKind.Standard) if folded else None

    def find(self, text: str) -> list[tuple[str, str]]:
        """(name, kind) of every entity in the text, each once."""
        if self._automaton is None:
            return []
        folded = text.casefold()
        hits = self._automaton.find_matches_as_indexes(folded, overlapping=True)
        return sorted({self._names[i] for i, a, b in hits if _whole(folded, a, b)})


def _whole(text: str, a: int, b: int) -> bool:
    """The match is not a part of a longer word."""
    before = a > 0 and _WORD.match(text[a - 1]) and _WORD.match(text[a])
    after = b < len(text) and _WORD.match(text[b - 1]) and _WORD.match(text[b])
    return not before and not after


class Languages:
    """Tells languages by the order of their most frequent trigrams."""

    def __init__(self, samples: Mapping[str, str]) -> None:
        """A text of some hundred words for each language."""
        if not samples:
            raise UsageError("no samples to tell languages by", "give a text for each language")
        self._profiles = {language: _ranks(sample) for language, sample in samples.items()}

    def tell(self, text: str) -> str | None:
        """The language whose profile is least out of place; None if the text has no letters."""
        mine = _ranks(text)
        if not mine:
            return None
        return min(self._profiles, key=lambda name: (_out_of_place(mine, self._profiles[name]), name))


def _ranks(text: str) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for word in _WORD.findall(text.casefold()):
        if not word.isdigit():
            padded = f" {word} "
            counts.update(padded[i : i + 3] for i in range(len(padded) - 2))
    ordered = sorted(counts, key=lambda g: (-counts[g], g))[:PROFILE]
    return {gram: rank for rank, gram in enumerate(ordered)}


def _out_of_place(mine: Mapping[str, int], profile: Mapping[str, int]) -> int:
    return sum(abs(rank - profile[gram]) if gram in profile else PROFILE for gram, rank in mine.items())


class Tone:
    """Naive Bayes over words: which label a text is most like."""

    def __init__(self, examples: Sequence[tuple[str, str]]) -> None:
        """(text, label) pairs."""
        if not examples:
            raise UsageError("no examples to learn the tone from", "give pairs of a text and its label")
        self._words: dict[str, Counter[str]] = {}
        self._texts: Counter[str] = Counter()
        for text, label in examples:
            self._texts[label] += 1
            self._words.setdefault(label, Counter()).update(_WORD.findall(text.casefold()))
        self._known = len({w for counts in self._words.values() for w in counts})

    def judge(self, text: str) -> tuple[str, float]:
        """The likeliest label and its probability."""
        words = _WORD.findall(text.casefold())
        logs = {label: self._log(label, words) for label in sorted(self._words)}
        best = max(logs, key=lambda label: logs[label])
        return best, 1.0 / sum(math.exp(value - logs[best]) for value in logs.values())

    def _log(self, label: str, words: list[str]) -> float:
        counts, total = self._words[label], sum(self._words[label].values())
        prior = math.log(self._texts[label] / sum(self._texts.values()))
        return prior + sum(math.log((counts[w] + 1) / (total + self._known + 1)) for w in words)


def text_operators(
    attribute: str = "text",
    entities: Entities | None = None,
    languages: Languages | None = None,
    tone: Tone | None = None,
) -> list[Operator]:
    """`has_keyword(word, ...)`; as given `mentions(name, kind)`, `language(name)`, `tone(label, sureness)`."""

    @operator(cost=0.02, needs=[attribute], pure=True, variables=[])
    def has_keyword(event: Any, *words: str) -> bool:
        """One of the words or phrases occurs, whole, in any case."""
        text = event[attribute]
        return text is not None and bool(_keywords(words).find(text))

    made = [has_keyword]
    if entities is not None:

        @operator(cost=0.05, needs=[attribute], pure=True)
        def mentions(event: Any, name: Any, kind: Any) -> Iterable[tuple[Any, ...]]:
            """The entities of the list that occur; either argument may be a variable."""
            found = entities.find(event[attribute] or "")
            return [
                tuple(value for value, asked in ((n, name), (k, kind)) if asked is VAR)
                for n, k in found
                if name in (VAR, n) and kind in (VAR, k)
            ]

        made.append(mentions)
    if languages is not None:

        @operator(cost=0.2, needs=[attribute], pure=True)
        def language(event: Any, name: Any) -> bool | Iterable[tuple[Any, ...]]:
            """The language of the text."""
            found = languages.tell(event[attribute] or "")
            return [(found,)] if name is VAR and found is not None else found == name

        made.append(language)
    if tone is not None:

        @operator(name="tone", cost=0.1, needs=[attribute], pure=True)
        def tone_of(event: Any, label: Any, sureness: Any) -> Iterable[tuple[Any, ...]]:
            """The likeliest label and its probability."""
            text = event[attribute]
            found = () if text is None else tone.judge(text)
            if not found or label not in (VAR, found[0]) or sureness not in (VAR, found[1]):
                return []
            return [tuple(v for v, asked in zip(found, (label, sureness), strict=True) if asked is VAR)]

        made.append(tone_of)
    return made


@lru_cache(maxsize=10_000)
def _keywords(words: tuple[str, ...]) -> Entities:
    return Entities({"": words})

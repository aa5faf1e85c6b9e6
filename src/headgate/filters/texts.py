"""Very many text patterns at once, over the distinct values of one attribute.

Patterns are sorted into what decides them fastest: a hash for equality, a hash by length for prefixes and suffixes, one
Aho-Corasick automaton (Aho and Corasick 1975) for CONTAINS, one RE2 set for MATCHES. A LIKE that is none of these waits
at its longest literal in the automaton and is tested where that occurs: in a set, `%a%b%` would make RE2 remember which
of all the first halves it has seen, and there are exponentially many such states. A reverse test, `'abc' CONTAINS a`,
asks a suffix array of the constants (Manber and Myers 1993).

Everything works on UTF-8: a text occurs in another exactly if its bytes do. Automata belong to a process and are built
when first asked; what is pickled is the patterns.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import re2
from ahocorasick_rs import BytesAhoCorasick

from headgate.columns import offsets_of
from headgate.language import ast
from headgate.language.ast import Node
from headgate.predicates.likes import LikeShape, folded, in_order, is_unicode, like_shape
from headgate.predicates.likes import regex as compiled_regex

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SET_MEMORY = 64 << 20
_LONGEST = 256
"""Bytes of a literal that the automaton holds: building it takes the square of a repetitive one. The rest is compared."""
_SEPARATOR = b"\xff"
"""Between constants in the suffix array: no UTF-8 text holds this byte."""


_Waiting = tuple[tuple[bytes, ...], str, int]
"""A LIKE at its longest literal: its pieces or its regular expression, and the number of the pattern."""


class _Plain:
    """Pickles its fields and not what it built from them."""

    def __getstate__(self) -> dict[str, Any]:
        assert isinstance(self, TextLiterals | _Needles | _Haystacks)
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True)
class TextLiterals(_Plain):
    """Tests of one attribute against constants, compiled. Tests that ask the same share one pattern."""

    count: int
    tests: list[list[int]]
    """For each pattern the numbers of the tests that ask it."""
    always: list[int]
    plain: _Needles
    folded: _Needles
    reverse: _Haystacks

    @classmethod
    def build(cls, tests: Sequence[Node]) -> TextLiterals:
        """From tests of one attribute against constants. A test against NULL is never TRUE."""
        patterns: dict[tuple[str, str, str | LikeShape], list[int]] = {}
        for number, test in enumerate(tests):
            placed = _placed(test)
            if placed is not None:
                patterns.setdefault(placed, []).append(number)
        groups: dict[str, dict[str, dict[bytes, Any]]] = defaultdict(lambda: defaultdict(dict))
        always = []
        for pattern, (view, kind, text) in enumerate(patterns):
            if isinstance(text, LikeShape):
                waiting = tuple(piece.encode() for piece in text.pieces), text.regex, pattern
                groups[view][kind].setdefault(text.literal.encode()[:_LONGEST], []).append(waiting)
            elif view != "reverse" and kind == "CONTAINS" and len(text) > _LONGEST:
                pieces = b"", text.encode(), b""
                groups[view]["LIKE"].setdefault(pieces[1][:_LONGEST], []).append((pieces, "", pattern))
            elif not text and view != "reverse" and kind in ("STARTS", "ENDS", "CONTAINS"):
                always.append(pattern)
            else:
                groups[view][kind][text.encode(errors="surrogatepass")] = pattern
        plain, folded = (_Needles(*(groups[view][k] for k in _KINDS)) for view in ("plain", "folded"))
        reverse = _Haystacks(*(groups["reverse"][k] for k in _KINDS[1:4]))
        return cls(len(tests), list(patterns.values()), always, plain, folded, reverse)

    def hits(self, distinct: pa.Array[Any]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The tests that are TRUE of value i, ascending, are those from offsets[i] up to offsets[i + 1]."""
        found: list[int] = []
        ends = [0]
        words = cast(list[str], distinct.to_pylist())
        for word in words:
            text = word.encode()
            found += self.always
            found += self.plain.found(text)
            found += self.reverse.found(text)
            if self.folded.any:
                found += self.folded.found(folded(word).encode())
            ends.append(len(found))
        row = np.repeat(np.arange(len(distinct)), np.diff(ends))
        return self._spread(len(distinct), row, np.array(found, np.int64))

    def _spread(
        self, rows: int, row: NDArray[np.int64], pattern: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """From the patterns of each value to its tests."""
        first, tests = self._by_pattern
        count = np.diff(first)[pattern]
        starts = offsets_of(count)
        inside = np.arange(starts[-1]) + np.repeat(first[pattern] - starts[:-1], count)
        row = np.repeat(row, count)
        keys = np.sort(row * self.count + tests[inside])
        return offsets_of(np.bincount(row, minlength=rows)), (keys % max(self.count, 1)).astype(np.int32)

    @cached_property
    def _by_pattern(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        lengths = np.array([len(t) for t in self.tests], np.int64)
        return offsets_of(lengths), np.array([n for t in self.tests for n in t], np.int64)


INDEXED = ("CONTAINS", "STARTS WITH", "ENDS WITH", "LIKE", "ILIKE", "MATCHES")
"""The tests that are looked up here; any other is computed for each distinct value."""
_PLACES = {"CONTAINS": "CONTAINS", "STARTS WITH": "STARTS", "ENDS WITH": "ENDS"}
_KINDS = ("EQUALS", "STARTS", "ENDS", "CONTAINS", "LIKE", "REGEX")


def _placed(test: Node) -> tuple[str, str, str | LikeShape] | None:
    """How a test is decided: the view of the value, the kind of look-up, the pattern. None if it is never TRUE."""
    match test:
        case ast.Test(name, (ast.Literal(whole), ast.Attribute())) if name in _PLACES:
            return None if whole is None else ("reverse", _PLACES[name], whole)
        case ast.Test(name, (ast.Attribute(), ast.Literal(part))) if name in _PLACES:
            return None if part is None or not is_unicode(part) else ("plain", _PLACES[name], part)
        case ast.Test("LIKE" | "ILIKE" as name, (ast.Attribute(), ast.Literal(pattern), *behind)):
            if pattern is None or not is_unicode(pattern):
                return None
            escape = next((e.value for e in behind if isinstance(e, ast.Literal)), None)
            fold = name == "ILIKE"
            view, shape = "folded" if fold else "plain", like_shape(pattern, escape, fold)
            if shape.kind == "REGEX" and not shape.literal:
                return view, "REGEX", shape.regex
            return (view, "LIKE", shape) if shape.kind in ("REGEX", "PIECES") else (view, shape.kind, shape.literal)
        case ast.Test("MATCHES", (ast.Attribute(), ast.Literal(pattern))):
            return None if pattern is None else ("plain", "REGEX", pattern)
    raise AssertionError(f"{test} is no test of one attribute against a constant")


@dataclass(frozen=True)
class _Needles(_Plain):
    """Patterns to be found in a value, each with its number."""

    equals: Mapping[bytes, int]
    starts: Mapping[bytes, int]
    ends: Mapping[bytes, int]
    contains: Mapping[bytes, int]
    likes: Mapping[bytes, list[_Waiting]]
    regexes: Mapping[bytes, int]

    @property
    def any(self) -> bool:
        return any(getattr(self, f.name) for f in fields(self))

    def found(self, text: bytes) -> list[int]:
        found = [self.equals[text]] if text in self.equals else []
        for length in self._lengths[0]:
            if length > len(text):
                break
            if (pattern := self.starts.get(text[:length])) is not None:
                found.append(pattern)
        for length in self._lengths[1]:
            if length > len(text):
                break
            if (pattern := self.ends.get(text[-length:])) is not None:
                found.append(pattern)
        if self._automaton is not None:
            for i in {m[0] for m in self._automaton.find_matches_as_indexes(text, overlapping=True)}:
                patterns, waiting = self._entries[i]
                found += patterns
                found += [n for pieces, regex, n in waiting if _is_like(text, pieces, regex)]
        for part in self._sets:
            found += part.found(text)
        return found

    @cached_property
    def _lengths(self) -> tuple[list[int], list[int]]:
        return sorted({len(p) for p in self.starts}), sorted({len(p) for p in self.ends})

    @cached_property
    def _automaton(self) -> BytesAhoCorasick | None:
        literals = {**self.contains, **self.likes}
        return BytesAhoCorasick(list(literals)) if literals else None

    @cached_property
    def _entries(self) -> list[tuple[list[int], list[_Waiting]]]:
        """For each literal of the automaton the pattern that it decides, and those that it makes worth testing."""
        literals = {**self.contains, **self.likes}
        return [([self.contains[t]] if t in self.contains else [], self.likes.get(t, [])) for t in literals]

    @cached_property
    def _sets(self) -> list[_RegexSet]:
        return [_RegexSet(list(self.regexes.items()))] if self.regexes else []


def _is_like(text: bytes, pieces: tuple[bytes, ...], regex: str) -> bool:
    return in_order(text, pieces) if pieces else compiled_regex(regex).search(text) is not None


class _RegexSet:
    """Regular expressions searched for together; in two halves where RE2's memory does not suffice for one set.

    The binding does not tell a text without matches from a search that ran out of memory, so every set also holds the
    empty expression: not to find that one is to have failed.
    """

    def __init__(self, patterns: list[tuple[bytes, int]]) -> None:
        self._patterns = patterns
        self._halves: tuple[_RegexSet, _RegexSet] | None = None
        self._set: Any = None
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _SET_MEMORY
        together = re2.Set.SearchSet(options)
        for pattern, _ in patterns:
            together.Add(pattern)
        together.Add(b"")
        try:
            together.Compile()
        except re2.error:
            self._split()
        else:
            self._set = together

    def found(self, text: bytes) -> list[int]:
        if self._set is not None:
            matched = self._set.Match(text)
            if matched is not None:
                return [self._patterns[i][1] for i in matched if i < len(self._patterns)]
            self._split()
        if self._halves is not None:
            return self._halves[0].found(text) + self._halves[1].found(text)
        ((pattern, number),) = self._patterns
        return [number] if compiled_regex(pattern.decode()).search(text.decode()) is not None else []

    def _split(self) -> None:
        """Of a single expression there are no halves: it is searched alone, which RE2 does in any memory."""
        self._set = None
        middle = len(self._patterns) // 2
        if middle:
            self._halves = _RegexSet(self._patterns[:middle]), _RegexSet(self._patterns[middle:])


@dataclass(frozen=True)
class _Haystacks(_Plain):
    """Constants in which a value is to be found: at their start, at their end, anywhere."""

    starts: Mapping[bytes, int]
    ends: Mapping[bytes, int]
    contains: Mapping[bytes, int]

    def found(self, text: bytes) -> list[int]:
        found: list[int] = []
        length = len(text)
        for (constants, numbers), start in ((self._sorted, text), (self._turned, text[::-1])):
            low = bisect_left(constants, start)
            found += numbers[low : bisect_right(constants, start, low, key=lambda c: c[:length])]
        if self.contains:
            found += self._around(text) if text else self.contains.values()
        return found

    def _around(self, text: bytes) -> list[int]:
        """The constants that contain a text: one run of suffixes, in order, begins with it."""
        joined, suffixes, numbers = self._suffixes
        end = len(text)
        low = bisect_left(suffixes, text, key=lambda at: joined[at : at + end])
        high = bisect_right(suffixes, text, low, key=lambda at: joined[at : at + end])
        return np.unique(numbers[low:high]).tolist() if high > low else []

    @cached_property
    def _sorted(self) -> tuple[list[bytes], list[int]]:
        constants = sorted(self.starts)
        return constants, [self.starts[c] for c in constants]

    @cached_property
    def _turned(self) -> tuple[list[bytes], list[int]]:
        constants = sorted(c[::-1] for c in self.ends)
        return constants, [self.ends[c[::-1]] for c in constants]

    @cached_property
    def _suffixes(self) -> tuple[bytes, list[int], NDArray[np.int64]]:
        """The constants joined, where their suffixes begin in order of the bytes, and the number of each one's pattern.

        Sorted by prefix doubling up to the longest constant; more order than that no look-up sees.
        """
        joined = _SEPARATOR.join(self.contains) + _SEPARATOR
        rank = np.frombuffer(joined, np.uint8).astype(np.int64)
        starts = np.flatnonzero((rank & 0xC0 != 0x80) & (rank != _SEPARATOR[0]))
        owner = np.array(list(self.contains.values()), np.int64)[np.cumsum(rank == _SEPARATOR[0])[starts]]
        reach, longest = 1, max(map(len, self.contains))
        while reach < longest:
            after = np.zeros_like(rank)
            after[:-reach] = rank[reach:] + 1
            _, rank = np.unique(rank * (len(rank) + 257) + after, return_inverse=True)
            reach *= 2
        order = np.argsort(rank[starts], kind="stable")
        return joined, starts[order].tolist(), owner[order]

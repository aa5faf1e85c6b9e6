"""The tokens of a text, and its shape.

One regular expression finds the tokens; GRAPH braces and PREFIX switch to a second one, because `<` opens an IRI there
and `;` does not end a statement. The *shape* of a text is the string of its tokens' codes with every name and literal
abstracted away: a hundred thousand subscriptions have some hundred shapes, so what depends on the shape alone (parse,
type check, normal form) is done once.

Limits are enforced here, before anything recursive sees the text: a tree of ten thousand levels would overflow the
stack much later, in places as harmless as `hash`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headgate.errors import LanguageError, LimitExceeded, Place, SyntaxProblem

RESERVED = (
    "ABSENT", "AND", "AS", "BETWEEN", "CREATE", "DROP", "DUR", "FALSE", "FILTER", "FOLD", "FROM", "GRAPH", "ILIKE",
    "IN", "IS", "LIKE", "NEXT", "NOT", "NULL", "OR", "SELECT", "TRUE", "UNION",
)  # fmt: skip
SOFT = (
    "CIDR", "CONTAINS", "DEFAULT", "ENDS", "ESCAPE", "HOM", "INIT", "MATCHES", "ON", "ONTOLOGY", "PREFIX", "PUBLISH",
    "STARTS", "STREAM", "SUBSCRIPTION", "TIME", "WITH", "WITHIN",
)  # fmt: skip
SYMBOLS = {
    "(": "LPAR", ")": "RPAR", "{": "LBRACE", "}": "RBRACE", "[": "LSQB", "]": "RSQB",
    ",": "COMMA", ".": "DOT", ";": "SEMICOLON",
    "=": "EQ", "<>": "NE", "!=": "NE", "<": "LT", "<=": "LE", ">": "GT", ">=": "GE",
    "+": "PLUS", "-": "MINUS", "*": "STAR", "/": "SLASH", "%": "PERCENT", "^^": "CARETS",
}  # fmt: skip
HOLES = ("NAME", "RUN", "INCOMING", "ITERATION", "INT", "FLOAT", "STRING", "VAR", "IRI", "PNAME", "BLANK", "LANG")
"""Kinds of tokens that a shape abstracts away."""
SCOPES = {"1": "RUN", "2": "INCOMING", ".": "ITERATION"}
"""`$1.a`, `$2.a` and `$.a`, by their second character."""
KINDS = (*HOLES, "A", "ERROR", *RESERVED, *SOFT, *dict.fromkeys(SYMBOLS.values()))
CODES = {kind: chr(0x100 + i) for i, kind in enumerate(KINDS)}
# A name before a parenthesis or a text, or behind a number, decides what the text means (LOWER(, TIMESTAMP ', 3 DAYS).
_MEANT = re.compile(
    f"{CODES['NAME']}(?=[{CODES['LPAR']}{CODES['STRING']}])|(?<=[{CODES['INT']}{CODES['FLOAT']}]){CODES['NAME']}"
)
KEYWORDS = frozenset(RESERVED) | frozenset(SOFT)

_WORD = r"(?:[^\W\d]\w*|`(?:[^`]|``)+`)"
_TOKEN = rf"""
      (?P<NAME>{_WORD}(?:\.{_WORD})*)
    | (?P<FLOAT>(?:\d+\.\d+|\.\d+|\d+\.(?!\w))(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
    | (?P<INT>\d+)
    | (?P<STRING>'(?:[^']|'')*')
    | (?P<symbol><>|!=|<=|>=|[-(){{}}\[\],.;=<>+*/%])
    | (?P<SCOPED>\$[12]?\.{_WORD}(?:\.{_WORD})*)
    | (?P<VAR>\?\w+)
    | (?P<ERROR>'[^\n]*|`[^\n]*|"[^"\n]*"?|\S)
    """
_PLAIN = re.compile(rf"(?P<skip>\s+|--[^\n]*) | {_TOKEN}", re.VERBOSE | re.DOTALL)
_RAW = re.compile(re.sub(r"\?P<\w+>", "?:", _TOKEN), re.VERBOSE | re.DOTALL)
"""The same tokens without their kinds: searched for, it leaves out what is white by itself."""
_GRAPH = re.compile(
    rf"""
      (?P<skip>\s+|\#[^\n]*|--[^\n]*)
    | (?P<BLANK>_:\w+)
    | (?P<PNAME>(?:[^\W\d][\w-]*)?:(?:\w[\w-]*(?:\.[\w-]+)*)?)
    | (?P<NAME>{_WORD}(?:\.{_WORD})*)
    | (?P<FLOAT>[+-]?(?:\d+\.\d+|\.\d+)(?:[eE][+-]?\d+)?|[+-]?\d+[eE][+-]?\d+)
    | (?P<INT>[+-]?\d+)
    | (?P<STRING>'(?:[^']|'')*'|"(?:[^"\\\n]|\\.)*")
    | (?P<LANG>@[A-Za-z]+(?:-[A-Za-z0-9]+)*)
    | (?P<IRI><(?:[A-Za-z/#.][^<>\s"{{}}|^`\\]*)?>)
    | (?P<VAR>\?\w+)
    | (?P<symbol>\^\^|<>|!=|<=|>=|[-(){{}}\[\],.;=<>+*/%])
    | (?P<ERROR>'[^\n]*|"[^\n]*|`[^\n]*|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_RESUME = re.compile(r";\s*(?:CREATE|DROP|PREFIX)\b", re.IGNORECASE)
_ESCAPE = re.compile(r'\\(?:([tbnrf"\'\\])|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))', re.DOTALL)
_ESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


@dataclass(frozen=True, slots=True)
class Limits:
    """What one statement may be. The defaults are far above honest use."""

    characters: int = 1_000_000
    tokens: int = 100_000
    depth: int = 200
    literal: int = 100_000


LIMITS = Limits()


class Tokens:
    """The tokens of one statement (without its `;`): kinds, raw texts and positions, in columns."""

    __slots__ = ("__dict__", "kinds", "limits", "raws", "source")

    def __init__(self, source: str, limits: Limits = LIMITS) -> None:
        self.source = source
        self.limits = limits
        self.kinds: list[str] = []
        self.raws: list[str] = []

    def __len__(self) -> int:
        return len(self.kinds)

    @cached_property
    def starts(self) -> list[int]:
        """Where each token begins. Looked for when it is asked for: only white space stands between raw tokens."""
        found, at = [], 0
        for raw in self.raws:
            at = self.source.index(raw, at)
            found.append(at)
            at += len(raw)
        return found

    def part(self, start: int, stop: int) -> Tokens:
        """Some of the tokens, as if they were all."""
        made = Tokens(self.source, self.limits)
        made.kinds, made.raws, made.starts = self.kinds[start:stop], self.raws[start:stop], self.starts[start:stop]
        return made

    @cached_property
    def codes(self) -> str:
        """One character a token: its kind."""
        return "".join(map(CODES.__getitem__, self.kinds))

    @cached_property
    def shape(self) -> str:
        shape = self.codes
        meant = [self.raws[m.start()].upper() for m in _MEANT.finditer(shape)]
        return shape + " " + " ".join(meant) if meant else shape

    def value(self, i: int) -> Any:
        """What the name or literal number `i` stands for."""
        return VALUES[self.kinds[i]](self.raws[i])

    def place(self, i: int) -> Place:
        """Where token `i` stands; -1 or past the end is the end of the text."""
        if 0 <= i < len(self.starts):
            return place_of(self.source, self.starts[i], len(self.raws[i].split("\n", 1)[0]))
        end = self.starts[-1] + len(self.raws[-1]) if self.starts else len(self.source.rstrip())
        return place_of(self.source, end, 1)

    def error(self, problem: LanguageError) -> LanguageError:
        """The same problem with its place drawn from this text."""
        if problem.place is None:
            problem.place = self.place(problem.at)
        return problem

    def check(self) -> None:
        """Raise for what no grammar is needed to refuse: stray characters, limits."""
        limits = self.limits
        for i, raw in enumerate(self.raws if not self.source.isascii() else ()):
            if not raw.isascii() and (half := _SURROGATE.search(raw)):
                message = f"\\u{ord(half[0]):04x} is half of a character"
                raise self.error(SyntaxProblem(message, "the text was cut, or decoded wrongly", at=i))
        if "ERROR" in self.kinds:
            i = self.kinds.index("ERROR")
            raise self.error(_stray(self.raws[i], i, "GRAPH" in self.kinds[:i]))
        long = len(self.source) > min(limits.characters, limits.literal)  # a script may be, its statements not
        if long and self.starts[-1] - self.starts[0] > limits.characters:
            raise self.error(LimitExceeded(f"the text is longer than {limits.characters:,} characters", at=0))
        if len(self.kinds) > limits.tokens:
            message = f"the text has more than {limits.tokens:,} words and signs"
            raise self.error(LimitExceeded(message, "split it into several subscriptions", at=limits.tokens))
        for i, kind in enumerate(self.kinds if long else ()):
            if kind == "STRING" and len(self.raws[i]) > limits.literal:
                raise self.error(LimitExceeded(f"a text literal is longer than {limits.literal:,} characters", at=i))
        if len(self.kinds) > limits.depth:
            self._check_depth()

    def _check_depth(self) -> None:
        """Bound the height of the tree: brackets nest, and so do signs and steps that stand in a row.

        A sign in front encloses what follows it and a sign between encloses what came before it, brackets included, so
        the height of a stretch without AND, OR and commas is at most its signs and the highest bracket in it.
        """
        limit = self.limits.depth
        outer: list[_Level] = []
        level = _Level()
        for i, kind in enumerate(self.kinds):
            if kind in _OPENING:
                outer.append(level)
                level = _Level()
            elif kind in _CLOSING and outer:
                inner, level = level.height(), outer.pop()
                level.inner = max(level.inner, inner)
            elif kind in _SIGNS:
                level.signs += _SIGNS[kind]
                level.between |= kind == "BETWEEN"
            elif kind == "AND" and level.between:
                level.between = False
            elif kind in _BREAKING:
                level.end_stretch()
                level.joins.add(kind)
            if len(outer) > limit or level.signs + level.inner > limit:
                message = f"nested more than {limit} levels deep"
                raise self.error(LimitExceeded(message, "name parts of it as subscriptions of their own", at=i))


class _Level:
    """What stands between two brackets, as far as it has been read."""

    __slots__ = ("best", "between", "inner", "joins", "signs")

    def __init__(self) -> None:
        self.signs = 0
        self.inner = 0  # the highest bracket of this stretch
        self.best = 0  # the highest stretch so far
        self.joins: set[str] = set()
        self.between = False  # the next AND belongs to a BETWEEN

    def end_stretch(self) -> None:
        self.best = max(self.best, self.signs + self.inner)
        self.signs = self.inner = 0
        self.between = False

    def height(self) -> int:
        self.end_stretch()
        return self.best + max(1, len(self.joins - {"COMMA"}))


_OPENING = frozenset({"LPAR", "LBRACE", "LSQB"})
_CLOSING = frozenset({"RPAR", "RBRACE", "RSQB"})
_SIGNS = {
    **dict.fromkeys(("NOT", "MINUS", "PLUS", "STAR", "SLASH", "PERCENT", "EQ", "NE", "LT", "LE", "GT", "GE"), 1),
    **dict.fromkeys(("BETWEEN", "IN", "LIKE", "ILIKE", "CONTAINS", "STARTS", "ENDS", "MATCHES", "IS", "UNION"), 1),
    **dict.fromkeys(("NEXT", "FOLD", "ABSENT"), 1),
    "SELECT": 2,
}
"""How many levels of the tree a word or sign makes."""
_BREAKING = frozenset({"AND", "OR", "COMMA"})


def place_of(source: str, start: int, length: int) -> Place:
    line_start = source.rfind("\n", 0, start) + 1
    line_end = source.find("\n", start)
    excerpt = source[line_start : line_end if line_end >= 0 else len(source)].rstrip("\r")
    shown = _SURROGATE.sub("\ufffd", excerpt)  # so that every error can be printed
    return Place(source.count("\n", 0, start) + 1, start - line_start + 1, max(1, length), shown)


_STRAY = {"&": "write AND", "|": "write OR", "!": "write NOT", "^": "there is no power", "~": "write MATCHES", "\\": ""}


def _stray(raw: str, at: int, graph: bool) -> LanguageError:
    if raw.startswith("'") or (raw.startswith('"') and graph):
        quote = raw[0]
        inside = "''" if quote == "'" else '\\"'
        hint = f"close it with {quote}; a quote inside is written {inside}"
        return SyntaxProblem("this text literal is never closed", hint, at=at)
    if raw.startswith('"'):
        return SyntaxProblem("text stands in single quotes", f"write '{raw.strip(chr(34))[:40]}'", at=at)
    if raw.startswith("`"):
        return SyntaxProblem("this quoted name is never closed", "close it with `", at=at)
    if raw == "$":
        return SyntaxProblem("'$' needs a name behind it", "write $1.name, $2.name or $.name", at=at)
    if raw == "?":
        return SyntaxProblem("'?' needs a name behind it", "a variable is written ?name", at=at)
    return SyntaxProblem(f"the character {raw!r} has no meaning here", _STRAY.get(raw, ""), at=at)


def statements(source: str, limits: Limits = LIMITS) -> Iterator[Tokens]:
    """The statements of a script, one `Tokens` each; empty ones are left out."""
    tokens, starts = _begun(source, limits)
    kinds, raws = tokens.kinds, tokens.raws
    braces = 0  # depth inside GRAPH braces; 0 outside
    parens = 0  # depth of parentheses inside GRAPH braces: FILTER ( ... ) there is plain
    iri_next = False
    position = 0
    end = len(source)
    while position < end:
        graph = (braces > 0 and parens == 0) or iri_next
        regex = _GRAPH if graph else _PLAIN
        for m in regex.finditer(source, position):
            kind = m.lastgroup
            position = m.end()
            if kind == "skip":
                continue
            raw = m.group()
            if kind == "symbol":
                kind = SYMBOLS[raw]
                if kind == "SEMICOLON" and (braces == 0 or _RESUME.match(source, m.start())):
                    if kinds:
                        yield tokens
                    tokens, starts = _begun(source, limits)
                    kinds, raws = tokens.kinds, tokens.raws
                    braces = parens = 0
                    iri_next = False
                    if graph:
                        break
                    continue
            elif kind == "SCOPED":
                kind = SCOPES[raw[1]]
            elif kind == "NAME":
                upper = raw.upper()
                if upper in KEYWORDS:
                    kind = upper
                elif graph and raw == "a":
                    kind = "A"
            assert kind is not None
            kinds.append(kind)
            raws.append(raw)
            starts.append(m.start())
            if braces:
                switch = False
                if kind == "LBRACE":
                    braces += 1
                elif kind == "RBRACE":
                    braces -= 1
                    switch = braces == 0
                elif kind == "LPAR":
                    # FILTER ( ... ) is an expression; a tuple (s, o, (C, p, D)) is not.
                    if parens or (len(kinds) > 1 and kinds[-2] == "FILTER"):
                        parens += 1
                        switch = parens == 1
                elif kind == "RPAR" and parens:
                    parens -= 1
                    switch = parens == 0
                if switch:
                    break
            elif kind == "LBRACE" and _opens_graph(kinds):
                braces = 1
                break
            elif kind == "PREFIX" and len(kinds) == 1:
                iri_next = True
                break
            elif iri_next and kind == "IRI":
                iri_next = False
                break
    if kinds:
        yield tokens


def _begun(source: str, limits: Limits) -> tuple[Tokens, list[int]]:
    tokens = Tokens(source, limits)
    starts: list[int] = []
    tokens.starts = starts
    return tokens, starts


def _opens_graph(kinds: list[str]) -> bool:
    """Whether the brace just read belongs to GRAPH [HOM] [column]."""
    for kind in kinds[-2:-5:-1]:
        if kind == "GRAPH":
            return True
        if kind not in ("HOM", "NAME"):
            return False
    return False


class _Kinds(dict[str, str]):
    """The kind of a token outside GRAPH braces, by its text: looked up in a text that has been seen, found in a new one."""

    most = 200_000
    longest = 64

    def __missing__(self, raw: str) -> str:
        m = _PLAIN.match(raw)
        kind = m.lastgroup if m is not None else None
        assert kind is not None
        if kind == "symbol":
            kind = SYMBOLS[raw]
        elif kind == "SCOPED":
            kind = SCOPES[raw[1]]
        elif kind == "NAME" and (upper := raw.upper()) in KEYWORDS:
            kind = upper
        if len(raw) <= self.longest:
            if len(self) >= self.most:
                self.clear()
            self[raw] = kind
        return kind


_kinds = _Kinds()


def tokenise(text: str, limits: Limits = LIMITS) -> Tokens:
    """The tokens of a text that is one statement or one body."""
    if ";" not in text and "--" not in text:
        tokens = Tokens(text, limits)
        tokens.raws = _RAW.findall(text)
        tokens.kinds = list(map(_kinds.__getitem__, tokens.raws))
        if tokens.kinds and "GRAPH" not in tokens.kinds and tokens.kinds[0] != "PREFIX":
            return tokens
    parts = list(statements(text, limits))
    if not parts:
        hint = "write a predicate, such as price < 100, or SELECT ... FROM ..."
        raise SyntaxProblem("the text is empty", hint, place=place_of(text, 0, 1))
    if len(parts) > 1:
        raise parts[1].error(SyntaxProblem("one text holds one subscription", "load a script with parse()", at=0))
    return parts[0]


# ------------------------------------------------------------------ values


def _path(raw: str) -> tuple[str, ...]:
    if "`" not in raw:
        return tuple(raw.split("."))
    return tuple(part[1:-1].replace("``", "`") if part.startswith("`") else part for part in re.findall(_WORD, raw))


def _scoped(raw: str) -> tuple[str, ...]:
    return _path(raw.partition(".")[2])


def _float(raw: str) -> float:
    value = float(raw)
    if value in (float("inf"), float("-inf")):
        raise LimitExceeded(f"{raw[:40]} is beyond the range of DOUBLE")
    return value


def _int(raw: str) -> int:
    if len(raw) > 400:
        raise LimitExceeded("a whole number may have at most 400 digits")
    return int(raw)


def _text(raw: str) -> str:
    if raw[0] == "'":
        return raw[1:-1].replace("''", "'")
    return _ESCAPE.sub(_unescape, raw[1:-1])


def _unescape(m: re.Match[str]) -> str:
    simple, short, long, unknown = m.groups()
    if simple:
        return _ESCAPED[simple]
    if unknown:
        raise SyntaxProblem(f"the escape \\{unknown} has no meaning")
    code = int(short or long, 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise SyntaxProblem(f"\\u{code:04x} is no character")
    return chr(code)


VALUES: dict[str, Callable[[str], Any]] = {
    "NAME": _path,
    "RUN": _scoped,
    "INCOMING": _scoped,
    "ITERATION": _scoped,
    "INT": _int,
    "FLOAT": _float,
    "STRING": _text,
    "VAR": lambda raw: raw[1:],
    "IRI": lambda raw: raw[1:-1],
    "PNAME": str,
    "BLANK": lambda raw: raw[2:],
    "LANG": lambda raw: raw[1:].lower(),
    **dict.fromkeys(SOFT, _path),
}

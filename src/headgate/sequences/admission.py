"""Which patterns may enter a book: those that the functions which build a plan can build, alone and with the others.

A pattern is resolved and built by itself, with those that PUBLISH what it reads. Patterns that differ in constants alone,
or that put known predicates into a known outline, are not built again. Where a pattern may be at odds with others of the
book (it PUBLISHes what they do or reads what they PUBLISH, or its streams keep time in another way) all are levelled
together, as a plan does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from headgate.errors import DuplicateName, HeadgateError, LanguageError, LanguageErrors, SyntaxProblem, TypeProblem
from headgate.language import ast
from headgate.language.ast import Path
from headgate.language.catalogue import Catalogue
from headgate.language.parser import parse_tokens
from headgate.language.tokens import Tokens
from headgate.sequences.engine import Index
from headgate.sequences.publish_levels import Levels, Subscription
from headgate.sequences.scopes import check_pattern
from headgate.sequences.shapes import Key, Known, Shapes
from headgate.sequences.spine import Spine, reads
from headgate.sequences.static import Static


@dataclass(frozen=True, slots=True)
class Standing:
    """A pattern of the book."""

    name: str
    text: str
    missing: str


@dataclass(frozen=True)
class AdmittedPattern:
    """A pattern that builds, and the attributes of undeclared streams that it speaks of."""

    spine: Spine
    mentioned: Mapping[str, Iterable[Path]]


class PatternAdmission:
    """Decides for one book. `standing` gives the patterns that are in it, paused ones too."""

    def __init__(
        self,
        catalogue: Catalogue,
        static: Callable[[Catalogue], Static],
        standing: Callable[[], Iterable[Standing]],
    ) -> None:
        self._catalogue = catalogue
        self._static = static
        self._standing = standing
        self._known = Known()
        self._built: set[Key] = set()
        """By mode: the keys of patterns that were built against the definitions as they are."""
        self._shapes: dict[str, Shapes] = {}
        """By mode, for the definitions as they are, as is what follows."""
        self._maker: Static | None = None

    def apart(self, catalogue: Catalogue) -> PatternAdmission:
        """One that decides the same over a copy of the catalogue."""
        return PatternAdmission(catalogue, self._static, self._standing)

    def forget(self) -> None:
        """A definition changed."""
        self._built.clear()
        self._changed()

    def _changed(self) -> None:
        """The catalogue is another; what was built would build again."""
        self._shapes.clear()
        self._maker = None

    def is_known(self, text: str, missing: str) -> bool:
        """Whether a text is made of parts that were built; no token of it is looked at."""
        keys = self._known.keys(text.strip(), missing)
        return keys is not None and self._built.issuperset(keys)

    def admit(self, tokens: Tokens, missing: str, name: str | None = None) -> None:
        """Takes up a pattern under a name, in the place of one that had it; its problems are raised."""
        try:
            keys = self._known.learn(_text(tokens), tokens, missing)
        except LanguageError:
            keys = []  # the check of the whole says what is wrong, and where
        if keys and self._built.issuperset(keys):
            return
        admitted = self._admitted(tokens, missing, name)
        for stream, paths in admitted.mentioned.items():
            self._catalogue.mention(stream, paths)
            self._changed()
        publish = admitted.spine.publish
        if publish is not None:
            self._catalogue.streams[publish] = admitted.spine.schema
            self._catalogue.published[publish] = publish
            self.forget()
        else:
            self._built.update(keys)

    def _admitted(self, tokens: Tokens, missing: str, name: str | None) -> AdmittedPattern:
        pattern = parse_tokens(tokens)
        if not isinstance(pattern, ast.Pattern):
            raise tokens.error(SyntaxProblem("a subscription is a predicate, or SELECT ... FROM ...", at=0))
        scoped = check_pattern(pattern, self._catalogue)
        if scoped.spine is None:
            raise _placed(scoped.problems, tokens)
        undeclared = next((n for n in ast.walk(pattern) if isinstance(n, ast.Stream) and self._open(n.name)), None)
        if missing == "total" and undeclared is not None:
            message = f"missing = 'total' needs to know the stream {undeclared.name}"
            raise tokens.error(TypeProblem(message, "declare it with CREATE STREAM", at=undeclared.at))
        publish, known = scoped.spine.publish, self._catalogue.streams
        if publish is not None and publish in known and publish not in self._catalogue.published:
            hint = "PUBLISH under a name of its own"
            raise tokens.error(DuplicateName(f"there is a stream {publish} already", hint, at=_publish(tokens)))
        trial = self._catalogue
        if scoped.mentioned or publish is not None:
            trial = self._catalogue.copy()
        for stream, paths in scoped.mentioned.items():
            trial.mention(stream, paths)
        if publish is not None:
            trial.streams[publish] = scoped.spine.schema
            trial.published[publish] = publish
        try:
            made = Subscription(name or "", self._shapes_over(trial, missing).spine(_text(tokens)), missing)
            self._build(made, trial)
        except LanguageErrors as several:
            raise _placed(several.errors, tokens) from None
        except LanguageError as problem:
            raise tokens.error(problem) from None
        except HeadgateError as problem:
            at = _publish(tokens) if publish is not None else pattern.source.at
            raise tokens.error(TypeProblem(problem.message, problem.hint, at=max(at, 0))) from None
        return AdmittedPattern(made.spine, scoped.mentioned)

    def _shapes_over(self, catalogue: Catalogue, missing: str) -> Shapes:
        if catalogue is not self._catalogue:
            return Shapes(catalogue, missing)
        if missing not in self._shapes:
            self._shapes[missing] = Shapes(catalogue, missing)
        return self._shapes[missing]

    def _static_over(self, catalogue: Catalogue) -> Static:
        if catalogue is not self._catalogue:
            return self._static(catalogue)
        if self._maker is None:
            self._maker = self._static(catalogue)
        return self._maker

    def _open(self, stream: str) -> bool:
        """Whether nobody declared a stream."""
        known = self._catalogue.streams.get(stream)
        return known is None or not known.declared

    def _build(self, made: Subscription, catalogue: Catalogue) -> None:
        read = reads(made.spine)
        publish = made.spine.publish
        published = read & catalogue.published.keys()
        again = publish in self._catalogue.published or publish in read
        beside: list[Subscription] = []
        if published or again:
            standing = [s for s in self._standing() if s.name != made.name]
            beside = _resolved(standing, catalogue)
        if again:
            Levels([*beside, made])
        Index(
            [made, *_publishers(made, beside)],
            static=self._static_over(catalogue),
            streams={s: catalogue.streams[s] for s in read if s in catalogue.streams and s not in published},
        )


def _resolved(standing: Iterable[Standing], catalogue: Catalogue) -> list[Subscription]:
    """The patterns of the book as they mean it under a catalogue; a text that this breaks is raised."""
    shapes: dict[str, Shapes] = {}
    found = []
    for s in standing:
        try:
            spine = shapes.setdefault(s.missing, Shapes(catalogue, s.missing)).spine(s.text)
        except (LanguageError, LanguageErrors) as problem:
            first = problem.errors[0] if isinstance(problem, LanguageErrors) else problem
            message = f"subscription {s.name} could not be read any more: {first.message}"
            raise DuplicateName(message, "PUBLISH under another name", at=-1) from None
        found.append(Subscription(s.name, spine, s.missing))
    return found


def _publishers(made: Subscription, beside: Iterable[Subscription]) -> list[Subscription]:
    """Those whose output a pattern reads, directly or through others."""
    makers: dict[str, list[Subscription]] = {}
    for other in beside:
        if other.spine.publish is not None:
            makers.setdefault(other.spine.publish, []).append(other)
    found: dict[str, Subscription] = {}
    waiting = [made]
    while waiting:
        for stream in reads(waiting.pop().spine):
            for maker in makers.get(stream, ()):
                if maker.name not in found:
                    found[maker.name] = maker
                    waiting.append(maker)
    return list(found.values())


def _text(tokens: Tokens) -> str:
    """The pattern alone, where it is part of a script."""
    return tokens.source[tokens.starts[0] : tokens.starts[-1] + len(tokens.raws[-1])]


def _publish(tokens: Tokens) -> int:
    return tokens.kinds.index("PUBLISH") if "PUBLISH" in tokens.kinds else 0


def _placed(problems: list[LanguageError], tokens: Tokens) -> LanguageError | LanguageErrors:
    made = [tokens.error(p) for p in problems]
    return made[0] if len(made) == 1 else LanguageErrors(made)

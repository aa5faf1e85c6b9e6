"""The book: the standing subscriptions, and what they may refer to.

A book holds texts, not trees: a subscription is its text, its stream, its mode and its labels, and what is needed for a
check or a compile is made again from the text by its form. Adding is checking; a bad subscription is refused with a
caret and changes nothing. `compile` is incremental: a new plan shares the segments of the last one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from headgate.covering.cover import Cover
from headgate.errors import (
    DuplicateName,
    LanguageError,
    LanguageErrors,
    SchemaError,
    SyntaxProblem,
    TypeProblem,
    UnknownName,
    UsageError,
)
from headgate.events import decode
from headgate.graphs.rdf import SUFFIXES
from headgate.language import ast
from headgate.language.catalogue import Catalogue, OntologyText, nearest
from headgate.language.forms import Form, cut
from headgate.language.parser import parse_statement, parse_tokens
from headgate.language.tokens import LIMITS, Limits, Tokens, statements, tokenise
from headgate.plan import Entry, Plan
from headgate.plan.analysis import Finding, analyse
from headgate.plan.compile_context import CompileContext, Signatures
from headgate.plan.covered import cover_of
from headgate.plan.merge import Merge, due
from headgate.plan.segment import collector_paused
from headgate.predicates.check import Checked, check_filter
from headgate.predicates.declared import declared
from headgate.predicates.normal import MODES
from headgate.schema import Schema, Type
from headgate.sequences.scopes import check_pattern
from headgate.sequences.shapes import Forms, Key

ANONYMOUS = "events"
"""The stream of a subscription that names none, in a book that declares none."""


class Subscriptions:
    """A book. Not safe for use by several threads at once; plans made from it are."""

    def __init__(self, operators: Iterable[Any] = (), *, limits: Limits = LIMITS) -> None:
        self._context = CompileContext(operators)
        self._catalogue = Catalogue(operators=Signatures(self._context.registry))
        self._limits = limits
        self._folder = FilePath()
        self._entries: dict[str, Entry] = {}
        self._checked: dict[tuple[Form, str], bool] = {}
        self._patterns = Forms()
        self._sound: set[Key] = set()
        """The keys of patterns that were checked against the definitions as they are."""
        self._plan: Plan | None = None
        self._changed: dict[str, None] = {}
        self._merge: Merge | None = None
        self._cover = False

    # -- definitions

    def stream(
        self, name: str, attributes: Mapping[str, str] | Schema, time: str | tuple[str, str] | None = None
    ) -> Subscriptions:
        """Declare a stream. A declared stream has exactly these attributes; a use of another is an error."""
        schema = attributes if isinstance(attributes, Schema) else Schema.of(name, attributes, time or ())
        self._declare(replace(schema, stream=name, declared=True))
        return self

    def _declare(self, schema: Schema, at: int = -1) -> None:
        known = self._catalogue.streams.get(schema.stream)
        if known is not None and known.declared:
            raise DuplicateName(f"stream {schema.stream} is declared already", "drop it first", at=at)
        if any(e.stream == schema.stream for e in self._entries.values()):
            hint = "declare a stream before the first subscription on it"
            raise DuplicateName(f"stream {schema.stream} is in use without a declaration", hint, at=at)
        self._catalogue.streams[schema.stream] = schema
        self._sound.clear()

    @property
    def streams(self) -> Mapping[str, Schema]:
        return self._catalogue.streams

    @property
    def published(self) -> Collection[str]:
        """The streams that subscriptions PUBLISH."""
        return self._catalogue.published.keys()

    # -- the life of a subscription

    def add(
        self,
        name: str,
        text: str,
        on: str | None = None,
        missing: str = "null",
        labels: Mapping[str, str] | None = None,
    ) -> Subscriptions:
        """Add a subscription; LanguageError says what is wrong with it and where."""
        given: Any
        for what, given in (("name", name), ("text", text)):
            if not isinstance(given, str) or not given:
                raise UsageError(f"the {what} of a subscription cannot be {given!r}", f"give a {what} in a str")
        if name in self._entries:
            raise DuplicateName(f"there is a subscription {name} already", "use replace to change it")
        self._put(name, tokenise(text, self._limits), text, on, missing, labels)
        return self

    def replace(self, name: str, text: str, **changes: Any) -> Subscriptions:
        """A new text, and where given a new stream, mode or labels, for a subscription that exists; paused, it stays so."""
        old = self._entry(name)
        given = {"on": old.stream, "missing": old.missing, "labels": old.labels, **changes}
        self._put(name, tokenise(text, self._limits), text, **given)
        return self.pause(name) if old.paused else self

    def remove(self, name: str) -> Subscriptions:
        self._entry(name)
        del self._entries[name]
        self._changed[name] = None
        return self

    def pause(self, name: str) -> Subscriptions:
        """It stays in the book and matches nothing."""
        self._entries[name] = replace(self._entry(name), paused=True)
        self._changed[name] = None
        return self

    def resume(self, name: str) -> Subscriptions:
        self._entries[name] = replace(self._entry(name), paused=False)
        self._changed[name] = None
        return self

    def _entry(self, name: str) -> Entry:
        found = self._entries.get(name)
        if found is None:
            raise UnknownName(
                f"there is no subscription {name}", nearest(name, self._entries, "list the book to see all")
            )
        return found

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __getitem__(self, name: str) -> Entry:
        return self._entry(name)

    # -- checking

    def _put(
        self,
        name: str,
        tokens: Tokens,
        text: str,
        on: str | None,
        missing: str,
        labels: Mapping[str, str] | None,
        at: int = 0,
    ) -> None:
        if missing not in MODES:
            raise UsageError(f"missing = {missing!r} is no mode", f"the modes are {', '.join(MODES)}")
        stream = on or self._only_stream(tokens)
        problems, learned = self._check(tokens, stream, missing)
        if problems:
            raise problems[0] if len(problems) == 1 else LanguageErrors(problems)
        if learned:
            self._catalogue.learn(stream, learned)
        self._entries[name] = Entry(text, stream, missing, dict(labels) if labels else None)
        self._changed[name] = None

    def _only_stream(self, tokens: Tokens) -> str:
        declared = [s.stream for s in self._catalogue.streams.values() if s.declared]
        if len(declared) > 1 and tokens.kinds[0] != "SELECT":
            raise tokens.error(UnknownName("which stream?", f"say ON one of {', '.join(declared)}", at=0))
        return declared[0] if declared else ANONYMOUS

    def _check(
        self, tokens: Tokens, stream: str, missing: str
    ) -> tuple[list[LanguageError], dict[ast.Path, Type | None]]:
        """The problems of a text. An atom whose form was checked on this stream before is not checked again."""
        if tokens.kinds[0] == "SELECT":
            return self._check_sequence(tokens), {}
        made = cut(tokens)
        try:
            schema = self._catalogue.stream(stream)
        except LanguageError as problem:
            return [tokens.error(problem)], {}
        if missing == "total" and not schema.declared:
            message, hint = f"missing = 'total' needs to know the stream {stream}", "declare it with CREATE STREAM"
            return [tokens.error(TypeProblem(message, hint, at=0))], {}
        checked = self._checked
        new = [p for p in made.pieces if p.form.particular or p.form.late or (p.form, stream) not in checked]
        if not new:
            return [], {}
        found: Checked = check_filter(made.body(), schema, self._catalogue)
        if not found.problems:
            checked.update({(p.form, stream): True for p in new})
        return [tokens.error(p) for p in found.problems], found.learned

    def _check_sequence(self, tokens: Tokens) -> list[LanguageError]:
        """The problems of a pattern. What it PUBLISHes, and teaches of undeclared streams, is kept if there are none.

        A pattern that differs from a checked one in constants alone is not checked again.
        """
        try:
            keys = self._patterns.keys(tokens)
        except LanguageError:
            keys = None  # the check of the whole says what is wrong, and where
        if keys is not None and self._sound.issuperset(keys):
            return []
        pattern = parse_tokens(tokens)
        if not isinstance(pattern, ast.Pattern):
            return [tokens.error(SyntaxProblem("a subscription is a predicate, or SELECT ... FROM ...", at=0))]
        scoped = check_pattern(pattern, self._catalogue)
        if scoped.problems or scoped.spine is None:
            return [tokens.error(p) for p in scoped.problems]
        made, known = scoped.spine.publish, self._catalogue.streams
        if made is not None and made in known and made not in self._catalogue.published:
            hint = "PUBLISH under a name of its own"
            return [tokens.error(DuplicateName(f"there is a stream {made} already", hint, at=pattern.at))]
        for stream, learned in scoped.learned.items():
            self._catalogue.learn(stream, learned)
        if made is not None:
            known[made] = scoped.spine.schema
            self._catalogue.published[made] = made
        elif keys is not None:
            self._sound.update(keys)
        return []

    # -- scripts and tables

    @classmethod
    def parse(cls, script: str, operators: Iterable[Any] = (), *, limits: Limits = LIMITS) -> Subscriptions:
        """A book from a script of CREATE statements. All mistakes of the script are raised together."""
        book = cls(operators, limits=limits)
        book.extend(script)
        return book

    @classmethod
    def load(cls, path: str | FilePath, operators: Iterable[Any] = ()) -> Subscriptions:
        try:
            script = FilePath(path).read_text("utf-8-sig")
        except OSError as e:
            raise UsageError(f"cannot read {path}: {e.strerror}") from None
        except UnicodeDecodeError:
            raise UsageError(f"{path} is not UTF-8 text") from None
        book = cls(operators)
        book._folder = FilePath(path).parent
        return book.extend(script)

    def extend(self, script: str) -> Subscriptions:
        """Run the statements of a script on this book; those with mistakes are left out, and all mistakes raised."""
        problems: list[LanguageError] = []
        for tokens in statements(script, self._limits):
            try:
                self._run(parse_statement(_headed(tokens)), tokens)
            except LanguageErrors as several:
                problems += several.errors
            except LanguageError as problem:
                problems.append(tokens.error(problem))
            except (SchemaError, UsageError) as problem:
                problems.append(tokens.error(TypeProblem(problem.message, problem.hint, at=0)))
        if problems:
            raise LanguageErrors(problems)
        return self

    def _run(self, statement: ast.Statement, tokens: Tokens) -> None:
        match statement:
            case ast.CreateStream():
                self._declare(declared(statement), at=statement.at)
                if statement.graph is not None:
                    self._catalogue.templates[statement.name] = statement.graph
            case ast.Prefix(name, iri):
                self._catalogue.prefixes[name] = iri
                self._sound.clear()
            case ast.CreateOntology(name, source):
                self._catalogue.ontologies[name] = self._read_ontology(source, statement.at)
            case ast.CreateSubscription():
                self._create(statement, tokens)
            case ast.Drop(kind, name):
                self._drop(kind, name, statement.at)

    def _read_ontology(self, source: str, at: int) -> OntologyText:
        """The text of an ontology; a relative path is looked up beside the script it stands in."""
        path = self._folder / source
        try:
            return OntologyText(source, SUFFIXES.get(path.suffix.lower()), path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as e:
            raise UnknownName(
                f"the ontology {source} cannot be read: {e}", "give a path beside the script", at=at
            ) from None

    def _create(self, statement: ast.CreateSubscription, tokens: Tokens) -> None:
        if statement.name in self._entries:
            raise DuplicateName(
                f"there is a subscription {statement.name} already", "choose another name", at=statement.at
            )
        if statement.stream is not None:
            self._catalogue.stream(statement.stream, at=statement.at + 2)
        missing, labels = "null", {}
        for option in statement.options:
            value = option.value.value if isinstance(option.value, ast.Literal) else None
            if option.name.lower() == "missing":
                if value not in MODES:
                    raise TypeProblem(f"{value!r} is no mode", f"the modes are {', '.join(MODES)}", at=option.at + 2)
                missing = value
            elif isinstance(value, str):
                labels[option.name] = value
            else:
                raise TypeProblem(f"the label {option.name} must be a text", at=option.at + 2)
        body = _body(tokens)
        text = tokens.source[body.starts[0] : body.starts[-1] + len(body.raws[-1])]
        self._put(statement.name, body, text, statement.stream, missing, labels)

    def _drop(self, kind: str, name: str, at: int) -> None:
        if kind == "SUBSCRIPTION":
            if name not in self._entries:
                raise UnknownName(f"there is no subscription {name}", nearest(name, self._entries, ""), at=at)
            self.remove(name)
            return
        known = self._catalogue.streams if kind == "STREAM" else self._catalogue.ontologies
        if name not in known:
            raise UnknownName(f"there is no {kind.lower()} {name}", nearest(name, known, ""), at=at)
        user = next((n for n, e in self._entries.items() if kind == "STREAM" and e.stream == name), None)
        if user is not None:
            raise DuplicateName(
                f"stream {name} is in use by subscription {user}", "drop its subscriptions first", at=at
            )
        del known[name]
        self._sound.clear()
        if kind == "STREAM":
            # It may come back with other types: what was checked and compiled for it no longer says anything.
            self._checked = {key: True for key in self._checked if key[1] != name}
            self._plan = None

    @classmethod
    def from_table(
        cls,
        table: Any,
        id: str = "id",
        text: str = "text",
        on: str | None = None,
        missing: str = "null",
        **options: Any,
    ) -> Subscriptions:
        """A book from a table of subscriptions: Arrow, pandas or Spark, one row each."""
        book = cls(**options)
        book.add_table(table, id, text, on, missing)
        return book

    def add_table(
        self, table: Any, id: str = "id", text: str = "text", on: str | None = None, missing: str = "null"
    ) -> Subscriptions:
        """Add every row of a table; those with mistakes are left out, and all mistakes raised with the id of their row."""
        names, texts = _two_columns(table, id, text)
        problems: list[LanguageError] = []
        with collector_paused():
            for name, body in zip(names, texts, strict=True):
                if name is None or body is None:
                    raise UsageError(
                        f"a subscription has no {'id' if name is None else 'text'}", "every row needs both"
                    )
                try:
                    self.add(str(name), body, on=on, missing=missing)
                except LanguageErrors as several:
                    problems += [_of(str(name), problem) for problem in several.errors]
                except LanguageError as problem:
                    problems.append(_of(str(name), problem))
        if problems:
            raise LanguageErrors(problems)
        return self

    # -- analysing

    def analyse(self) -> list[Finding]:
        """What is odd about the book: contradictions, tautologies, subscriptions that mean the same or that others cover,
        and sequences whose state has no bound."""
        return analyse(self._entries, self._catalogue)

    def covered(self, name: str) -> Cover:
        """Whether the other subscriptions on its stream cover this one, and which of them do it together."""
        self._entry(name)
        return cover_of(name, self._entries, self._catalogue.streams)

    # -- compiling

    def compile(self, sample: Mapping[str, Any] | None = None, *, cover: bool | None = None) -> Plan:
        """The plan of the book as it is now; it shares with the last plan what has not changed.

        `sample`, events by stream, tells how selective conditions are; the book is then compiled as a whole. With
        `cover`, filters that others cover are tested only where one of those matched (`Plan.gates`); it is off unless
        asked for, as it rarely pays, and stays as it was last set.
        """
        if cover is not None and cover != self._cover:
            self._cover, self._plan, self._merge = cover, None, None
        if sample is not None:
            self._plan, self._merge = self._sampled(sample), None
        elif self._merge is not None and self._merge.done:
            self._merge.changed.update(self._changed)
            self._plan, self._merge = self._merge.plan(self._entries, self._catalogue, self._context), None
        else:
            self._plan = Plan.of(
                self._entries, self._catalogue, self._context, self._plan, list(self._changed), cover=self._cover
            )
            if self._merge is not None:
                self._merge.changed.update(self._changed)
            elif due(self._plan):
                self._merge = Merge(self._entries, self._catalogue, cover=self._cover)
        self._changed.clear()
        return self._plan

    def settle(self) -> Plan:
        """Wait for a merge that is under way, and compile."""
        if self._merge is not None:
            self._merge.wait()
        return self.compile()

    def _sampled(self, sample: Mapping[str, Any]) -> Plan:
        samples = {}
        for stream, events in sample.items():
            samples[stream] = decode(events, self._catalogue.stream(stream)).columns
        return Plan.of(self._entries, self._catalogue, self._context, None, [], samples, cover=self._cover)

    def part(self, names: Iterable[str]) -> Plan:
        """A plan of some of the subscriptions alone, with the streams of the whole book: a shard of a large one."""
        return Plan.of({name: self._entry(name) for name in names}, self._catalogue, self._context, None, [])


def _as(tokens: Tokens) -> int:
    """The AS that begins the body of a CREATE SUBSCRIPTION, or -1."""
    depth = 0
    if tokens.kinds[:2] == ["CREATE", "SUBSCRIPTION"]:
        for i, kind in enumerate(tokens.kinds):
            depth += (kind == "LPAR") - (kind == "RPAR")
            if kind == "AS" and depth == 0:
                return i
    return -1


def _headed(tokens: Tokens) -> Tokens:
    """The statement with TRUE for its body: the body is cut and checked by itself, by the form of its atoms."""
    at = _as(tokens)
    if at < 0 or at + 1 == len(tokens):
        return tokens
    head = tokens.part(0, at + 1)
    head.kinds.append("TRUE")
    head.raws.append("TRUE")
    head.starts.append(tokens.starts[at + 1])
    return head


def _body(tokens: Tokens) -> Tokens:
    return tokens.part(_as(tokens) + 1, len(tokens))


def _of(name: str, problem: LanguageError) -> LanguageError:
    """The problem, with the subscription it is in: a table has no lines to point to."""
    message = problem.message if name in problem.message else f"subscription {name}: {problem.message}"
    return type(problem)(message, problem.hint, at=problem.at, place=problem.place)


def _two_columns(table: Any, id: str, text: str) -> tuple[list[Any], list[Any]]:
    if hasattr(table, "toArrow"):  # a Spark DataFrame
        table = table.select(id, text).toArrow()
    names = list(getattr(table, "column_names", None) or table.columns)
    for wanted in (id, text):
        if wanted not in names:
            raise SchemaError(f"the table has no column {wanted}", f"it has {', '.join(map(str, names))}")
    if hasattr(table, "to_pylist"):
        return table.column(id).to_pylist(), table.column(text).to_pylist()
    return table[id].tolist(), table[text].tolist()

"""The book: the standing subscriptions, and what they may refer to.

A book holds texts, not trees: a subscription is its text, its stream, its mode, its labels and its family, and what is
needed for a compile is made again from the text by its form. Adding is building; what cannot be built is refused with
a caret and changes nothing. `compile` is incremental: a new plan shares the segments of the last one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from headgate.covering.cover import Cover
from headgate.errors import DuplicateName, LanguageError, LanguageErrors, SchemaError, UnknownName, UsageError
from headgate.events import decode
from headgate.language import ast
from headgate.language.catalogue import Catalogue, nearest
from headgate.language.tokens import LIMITS, Limits, Tokens, statements
from headgate.operators import Registry
from headgate.plan import Entry, Plan
from headgate.plan.analysis import Finding, analyse
from headgate.plan.compile_context import CompileContext, Signatures
from headgate.plan.covered import cover_of
from headgate.plan.deltas import beside, due
from headgate.plan.merge import Merge
from headgate.plan.segment import Family, collector_paused
from headgate.predicates.modes import MODES
from headgate.schema import Schema
from headgate.subscriptions.admission import Admission
from headgate.subscriptions.definitions import Definitions
from headgate.subscriptions.draft import Draft
from headgate.subscriptions.journal import Journal
from headgate.subscriptions.script import body_of, options_of, problems_of, statement_of
from headgate.subscriptions.table import of_row, rows_of

ANONYMOUS = "events"
"""The stream of a subscription that names none, in a book that declares none."""


class Subscriptions:
    """A book. Not safe for use by several threads at once; plans made from it are."""

    def __init__(self, operators: Iterable[Any] = (), *, limits: Limits = LIMITS) -> None:
        self._context = CompileContext(operators)
        self._catalogue = Catalogue(operators=Signatures(self._context.registry))
        self._limits = limits
        self._entries: dict[str, Entry] = {}
        self._admission = Admission(self._catalogue, self._context, self._entries)
        self.definitions = Definitions(self._catalogue, self._entries, self._admission)
        """What subscriptions may refer to."""
        self._plan: Plan | None = None
        self._changed: dict[str, None] = {}
        self._merge: Merge | None = None
        self._cover = False
        self._journal: Journal | None = None

    # -- definitions

    def stream(
        self, name: str, attributes: Mapping[str, str] | Schema, time: str | tuple[str, str] | None = None
    ) -> Subscriptions:
        """Declare a stream. A declared stream has exactly these attributes; a use of another is an error."""
        schema = attributes if isinstance(attributes, Schema) else Schema.of(name, attributes, time or ())
        self.definitions.declare(replace(schema, stream=name, declared=True))
        return self

    @property
    def streams(self) -> Mapping[str, Schema]:
        return self._catalogue.streams

    @property
    def catalogue(self) -> Catalogue:
        """All that texts may refer to; for reading."""
        return self._catalogue

    @property
    def operators(self) -> Registry:
        return self._context.registry

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
        value: Any
        for what, value in (("name", name), ("text", text)):
            if not isinstance(value, str) or not value:
                raise UsageError(f"the {what} of a subscription cannot be {value!r}", f"give a {what} in a str")
        if "\0" in name:
            raise UsageError(f"the name {name!r} holds NUL", "leave it out")
        if name in self._entries:
            raise DuplicateName(f"there is a subscription {name} already", "use replace to change it")
        self._put(name, Draft(text, self._limits), on, missing, labels)
        return self

    def check(self, text: str, on: str | None = None, missing: str = "null") -> Family:
        """The family that a text would have in this book; raises what `add` would raise, and changes nothing."""
        return self._admit(Draft(text, self._limits), on, missing, self._admission.apart())[1]

    def replace(self, name: str, text: str, **changes: Any) -> Subscriptions:
        """A new text, and where given a new stream, mode or labels, for a subscription that exists; paused, it stays so."""
        old = self._entry(name)
        given = {"on": old.stream, "missing": old.missing, "labels": old.labels, **changes}
        self._put(name, Draft(text, self._limits), **given)
        return self.pause(name) if old.paused else self

    def remove(self, name: str) -> Subscriptions:
        self._entry(name)
        self._set(name, None)
        return self

    def pause(self, name: str) -> Subscriptions:
        """It stays in the book and matches nothing."""
        self._set(name, replace(self._entry(name), paused=True))
        return self

    def resume(self, name: str) -> Subscriptions:
        self._set(name, replace(self._entry(name), paused=False))
        return self

    def _set(self, name: str, entry: Entry | None) -> None:
        if self._journal is not None:
            self._journal.note(name, self._entries.get(name))
        if entry is None:
            del self._entries[name]
        else:
            self._entries[name] = entry
        self._changed[name] = None

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

    def _put(self, name: str, draft: Draft, on: str | None, missing: str, labels: Mapping[str, str] | None) -> None:
        stream, family = self._admit(draft, on, missing, self._admission, name)
        self._set(name, Entry(draft.text, stream, missing, dict(labels) if labels else None, family=family))

    def _admit(
        self, draft: Draft, on: str | None, missing: str, admission: Admission, name: str | None = None
    ) -> tuple[str, Family]:
        if missing not in MODES:
            raise UsageError(f"missing = {missing!r} is no mode", f"the modes are {', '.join(MODES)}")
        stream = on or self._only_stream(draft)
        return stream, admission.admit(draft, stream, missing, name)

    def _only_stream(self, draft: Draft) -> str:
        declared = [s.stream for s in self._catalogue.streams.values() if s.declared]
        if len(declared) > 1 and not draft.selects:
            raise draft.tokens.error(UnknownName("which stream?", f"say ON one of {', '.join(declared)}", at=0))
        return declared[0] if declared else ANONYMOUS

    # -- changes as a whole

    def restore_stream(
        self, name: str, schema: Schema | None, template: ast.Graph | None = None, *, published: bool = False
    ) -> None:
        """Put a stream as it was, or take it away; it was accepted once, and nobody asks again."""
        known = self._catalogue.streams.get(name)
        self.definitions.restore_stream(name, schema, template, published=published)
        if known is not None and (schema is None or known.declared):
            self._forget_plan()

    def order(self, names: Iterable[str]) -> None:
        """Put the subscriptions into this order."""
        for name in names:
            self._entries[name] = self._entries.pop(name)

    def record(self) -> Journal:
        """Note down what changes from now on, until `forget_record`."""
        self._journal = Journal(self._catalogue)
        return self._journal

    def forget_record(self) -> None:
        self._journal = None

    def take_back(self) -> bool:
        """Undo what changed since `record`; False if something is gone whose place in the book nobody knows any more."""
        journal, self._journal = self._journal, None
        assert journal is not None
        gone = any(old is not None and name not in self._entries for name, old in journal.entries.items())
        if gone:
            return False
        self.definitions.take_back(journal.catalogue)
        for name, old in journal.entries.items():
            if old is not None or name in self._entries:
                self._set(name, old)
        return True

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
        book.definitions.folder = FilePath(path).parent
        return book.extend(script)

    def extend(self, script: str) -> Subscriptions:
        """Run the statements of a script on this book; those with mistakes are left out, and all mistakes raised."""
        problems: list[LanguageError] = []
        for tokens in statements(script, self._limits):
            try:
                self._run(statement_of(tokens), tokens)
            except (LanguageError, LanguageErrors, SchemaError, UsageError) as problem:
                problems += problems_of(problem, tokens)
        if problems:
            raise LanguageErrors(problems)
        return self

    def _run(self, statement: ast.Statement, tokens: Tokens) -> None:
        match statement:
            case ast.CreateStream():
                self.definitions.create_stream(statement)
            case ast.Prefix(name, iri):
                self.definitions.prefix(name, iri, statement.at)
            case ast.CreateOntology(name, source):
                self.definitions.create_ontology(name, source, statement.at)
            case ast.CreateSubscription():
                self._create(statement, tokens)
            case ast.Drop("SUBSCRIPTION", name):
                if name not in self._entries:
                    hint = nearest(name, self._entries, "")
                    raise UnknownName(f"there is no subscription {name}", hint, at=statement.at)
                self.remove(name)
            case ast.Drop(kind, name):
                self.definitions.drop(kind, name, statement.at)
                if kind == "STREAM":
                    self._forget_plan()

    def _forget_plan(self) -> None:
        """What was dropped may come back as something else: what was compiled for it no longer says anything."""
        self._plan = self._merge = None

    def _create(self, statement: ast.CreateSubscription, tokens: Tokens) -> None:
        if statement.name in self._entries:
            raise DuplicateName(
                f"there is a subscription {statement.name} already", "choose another name", at=statement.at
            )
        if statement.stream is not None:
            self._catalogue.stream(statement.stream, at=statement.at + 2)
        options, (text, body) = options_of(statement), body_of(tokens)
        draft = Draft(text, self._limits, body)
        self._put(statement.name, draft, statement.stream, options.missing, options.labels)

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
        problems: list[LanguageError] = []
        with collector_paused():
            for name, body in rows_of(table, id, text):
                try:
                    self.add(name, body, on=on, missing=missing)
                except LanguageErrors as several:
                    problems += [of_row(name, problem) for problem in several.errors]
                except LanguageError as problem:
                    problems.append(of_row(name, problem))
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
        if sample is None:
            return self._newest(sequences=True)
        self._plan, self._merge = self._sampled(sample), None
        self._changed.clear()
        return self._plan

    def compile_stateless(self) -> Plan:
        """As `compile`, but sequences are compiled by whoever runs them: Spark does so group by group."""
        return self._newest(sequences=False)

    def _newest(self, *, sequences: bool) -> Plan:
        if self._merge is not None and self._merge.done:
            self._merge.changed.update(self._changed)
            merged = self._merge.plan(self._entries, self._catalogue, self._context, sequences=sequences)
            self._plan, self._merge = merged, None
        else:
            names = list(self._changed)
            given = (self._entries, self._catalogue, self._context, self._plan, names)
            self._plan = Plan.of(*given, cover=self._cover, sequences=sequences)
            if self._merge is not None:
                self._merge.changed.update(self._changed)
            elif due(len(self._plan.segments[0]), beside(self._plan.segments, self._plan.dead)):
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

"""Admission: a text enters a book only if it builds.

A text is parsed, resolved and typed, and then built alone by the very functions that build a plan: filters down to the
keys of their rows, late formulas with their calls and GRAPH patterns. What fails there is refused with its place. No
other check says what may be subscribed to, so `check`, `compile`, the store and the broker cannot disagree.

Building is shared by form: texts that differ in constants have the same forms, and a form that was built on a stream
builds again. A million texts have some hundred forms. Literals that can be wrong by themselves (regular expressions,
times, constants to compute with, RDF constants) are looked at in every text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from headgate.errors import (
    HeadgateError,
    LanguageError,
    LanguageErrors,
    LimitExceeded,
    TypeProblem,
)
from headgate.filters.compile import build_alone
from headgate.filters.rows import ATTRIBUTES
from headgate.graphs.pattern import compile_pattern
from headgate.language import ast
from headgate.language.ast import Node, Path
from headgate.language.catalogue import Catalogue
from headgate.language.forms import Cut, Form
from headgate.language.structures import Structure
from headgate.language.tokens import Tokens
from headgate.match.residual import compile_late
from headgate.plan.compile_context import CompileContext
from headgate.plan.segment import Entry, Family
from headgate.predicates.check import check_filter, literals_fit
from headgate.predicates.modes import attributes_of
from headgate.schema import Schema
from headgate.sequences.admission import PatternAdmission, Standing
from headgate.subscriptions.draft import Draft

_NO_FORMS: frozenset[Form] = frozenset()
_Late = tuple[str, str, Structure, tuple[Form, ...]]


class Admission:
    """Decides for one book. What it has built is forgotten when a definition changes that it was built against."""

    def __init__(self, catalogue: Catalogue, context: CompileContext, entries: Mapping[str, Entry]) -> None:
        self._catalogue = catalogue
        self._context = context
        self._entries = entries
        self._forms: dict[tuple[str, str], set[Form]] = {}
        """By stream and mode: the forms of which every text is right."""
        self._built: dict[tuple[str, str], set[Form]] = {}
        """By stream and mode: the forms that were built; of some, literals are still looked at in every text."""
        self._late: dict[_Late, bool] = {}
        """Late formulas that were built, and whether they have typed RDF constants, which may be wrong in another text."""
        self._attributes: dict[str, set[Path]] = {}
        """By stream: what the filters of the book speak of."""
        self._patterns = PatternAdmission(catalogue, partial(context.static, alone=True), self._standing)

    def _standing(self) -> Iterator[Standing]:
        return (Standing(n, e.text, e.missing) for n, e in self._entries.items() if e.family is Family.SEQUENCE)

    def apart(self) -> Admission:
        """One that decides the same and keeps nothing: for a text that is only looked at."""
        made = Admission(self._catalogue.copy(), self._context, self._entries)
        made._patterns = self._patterns.apart(made._catalogue)
        made._attributes = {stream: set(paths) for stream, paths in self._attributes.items()}
        return made

    def forget(self, stream: str | None = None, *, in_use: bool = False) -> None:
        """A definition changed: of a stream, or of what GRAPH patterns refer to. The attributes of a stream count on
        while it is `in_use`."""
        self._patterns.forget()
        self._late.clear()
        if stream is not None:
            self._forms = {key: forms for key, forms in self._forms.items() if key[0] != stream}
            self._built = {key: forms for key, forms in self._built.items() if key[0] != stream}
            if not in_use:
                self._attributes.pop(stream, None)

    def admit(self, draft: Draft, stream: str, missing: str, name: str | None = None) -> Family:
        """The family of a text that builds; the attributes that it names are noted. Its problems are raised.
        With a name it takes the place of the subscription that has it."""
        if draft.plain_pattern and self._patterns.is_known(draft.text, missing):
            return Family.SEQUENCE
        found = draft.cut()
        if found is None:
            self._patterns.admit(draft.tokens, missing, name)
            return Family.SEQUENCE
        built = self._forms.get((stream, missing), ())
        new = [piece.form for piece in found.pieces if piece[0] not in built]
        if not new:
            return Family.FILTER
        if all(form.settled for form in new) and self._late_key(found, stream, missing) in self._late:
            return Family.LATE
        before = self._catalogue.streams.get(stream)
        if before is not None and before.declared and self._built.get((stream, missing), _NO_FORMS).issuperset(new):
            atoms = (piece.form.fill(piece.literals) for piece in found.pieces if piece.form not in built)
            if literals_fit(atoms, before, self._catalogue):
                return Family.FILTER
        try:
            return self._admit_filter(found, new, stream, missing)
        except Exception as problem:  # noqa: BLE001 - whatever cannot be built is refused
            if before is None:
                self._catalogue.streams.pop(stream, None)
            else:
                self._catalogue.streams[stream] = before
            raise _placed(problem, draft.tokens) from None

    def _admit_filter(self, found: Cut, new: Sequence[Form], stream: str, missing: str) -> Family:
        schema = self._catalogue.stream(stream)
        if missing == "total" and not schema.declared:
            message, hint = f"missing = 'total' needs to know the stream {stream}", "declare it with CREATE STREAM"
            raise TypeProblem(message, hint, at=0)
        body = found.body()
        problems = check_filter(body, schema, self._catalogue)
        if problems:
            raise LanguageErrors(problems)
        if not schema.declared:
            self._catalogue.mention(stream, attributes_of(body))
        schema = self._catalogue.stream(stream)
        if any(form.late for form in new):
            self._build_late(found, body, schema, missing)
            return Family.LATE
        built = self._built.setdefault((stream, missing), set())
        if not built.issuperset(new):
            attributes = self._attributes_with(body, stream)
            build_alone(found, missing, schema)
            self._attributes[stream] = attributes
            built.update(new)
            self._forms.setdefault((stream, missing), set()).update(form for form in new if form.settled)
        return Family.FILTER

    def _late_key(self, found: Cut, stream: str, missing: str) -> _Late:
        return stream, missing, found.structure, tuple(piece.form for piece in found.pieces)

    def _build_late(self, found: Cut, body: Node, schema: Schema, missing: str) -> None:
        key = self._late_key(found, schema.stream, missing)
        typed = self._late.get(key)
        if typed is False:
            return
        graphs = self._context.graphs(schema.stream, self._catalogue)
        patterns = [node for node in ast.walk(body) if isinstance(node, ast.Graph)]
        if typed:
            for pattern in patterns:
                compile_pattern(pattern, graphs.prefixes)
            return
        attributes = self._attributes_with(body, schema.stream)
        compile_late([(body, missing)], schema, self._context.engine, graphs)
        self._attributes[schema.stream] = attributes
        terms = (node for pattern in patterns for node in ast.walk(pattern) if isinstance(node, ast.Term))
        self._late[key] = any(term.datatype is not None for term in terms)

    def _attributes_with(self, body: Node, stream: str) -> set[Path]:
        """What the filters of a stream speak of together with a new one: an index tells so many apart and no more."""
        known = self._attributes.get(stream, set())
        new = [n for n in ast.walk(body) if isinstance(n, ast.Attribute) and n.path not in known]
        together = known.union(n.path for n in new) if new else known
        if len(together) > ATTRIBUTES:
            message = f"the subscriptions on {stream} speak of more than {ATTRIBUTES:,} attributes"
            raise LimitExceeded(message, "use another stream", at=new[-1].at)
        return together


def _placed(problem: Exception, tokens: Tokens) -> HeadgateError:
    """A problem as a user sees it: of this text, with its place."""
    match problem:
        case LanguageErrors(errors=[only]):
            return tokens.error(only)
        case LanguageErrors(errors=errors):
            return LanguageErrors([tokens.error(e) for e in errors])
        case LanguageError():
            return tokens.error(problem)
        case HeadgateError():
            return tokens.error(LanguageError(problem.message, problem.hint, at=0))
    message = f"this cannot be built: {type(problem).__name__}: {problem}"
    return tokens.error(LanguageError(message, "say it in another way, and report this", at=0))

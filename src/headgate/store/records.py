"""The definitions of a book as records: a kind, a name, and a body of JSON that says everything.

A record is put back into a book as it was, without the question whether it may be: it was accepted once. What a record
needs from outside (the module of an operator, the readers of RDF) may be gone; then putting it back raises.

A new kind of definition is an entry in `KINDS` and no new table. A Headgate that does not know a kind sets its records
aside and keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headgate.errors import EnvironmentProblem, SchemaError
from headgate.language import ast
from headgate.language.catalogue import OntologyText
from headgate.language.parser import parse_statement
from headgate.language.printer import print_node
from headgate.language.tokens import tokenise
from headgate.operators import operator_pickling
from headgate.plan import Entry
from headgate.plan.segment import Family
from headgate.store import schemas
from headgate.subscriptions import Subscriptions
from headgate.subscriptions.journal import ONTOLOGY, PREFIX, STREAM

OPERATOR, SUBSCRIPTION = "operator", "subscription"
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """One step of the book. `body` is what is defined or subscribed from now on; None if it is gone."""

    version: int
    kind: str
    name: str
    body: Body | None


@dataclass(frozen=True, slots=True)
class Kind:
    body: Callable[[Subscriptions, str], Body | None]
    """The body of what a book has by a name; None if it has nothing."""
    restore: Callable[[Subscriptions, str, Body | None], None]


def _operator_body(book: Subscriptions, name: str) -> Body:
    return {"reference": operator_pickling.reference_of(book.operators[name])}


def _restore_operator(book: Subscriptions, name: str, body: Body | None) -> None:
    """One that was given by hand, or that an installed package brings, wins over the one that the store names."""
    if body is None or name in book.operators:
        return
    if not body["reference"]:
        hint = "open the store with operators=[...], or put the operator into a module"
        raise EnvironmentProblem(f"operator {name} was defined in a program, and no module has it", hint)
    book.operators.add(operator_pickling.fetch(name, body["reference"]))


def _prefix_body(book: Subscriptions, name: str) -> Body | None:
    iri = book.catalogue.prefixes.get(name)
    return None if iri is None else {"iri": iri}


def _restore_prefix(book: Subscriptions, name: str, body: Body | None) -> None:
    book.definitions.restore_prefix(name, None if body is None else str(body["iri"]))


def _ontology_body(book: Subscriptions, name: str) -> Body | None:
    found = book.catalogue.ontologies.get(name)
    return None if found is None else {"source": found.source, "format": found.format, "text": found.text}


def _restore_ontology(book: Subscriptions, name: str, body: Body | None) -> None:
    text = None if body is None else OntologyText(body["source"], body["format"], body["text"])
    book.definitions.restore_ontology(name, text)


def _stream_body(book: Subscriptions, name: str) -> Body | None:
    known = book.catalogue
    schema = known.streams.get(name)
    if schema is None:
        return None
    template = known.templates.get(name)
    return {
        **schemas.pack(schema),
        **({"published": True} if name in known.published else {}),
        **({"template": print_node(template)} if template is not None else {}),
    }


def _restore_stream(book: Subscriptions, name: str, body: Body | None) -> None:
    if body is None:
        book.restore_stream(name, None)
        return
    template = _template(body["template"]) if "template" in body else None
    book.restore_stream(name, schemas.unpack(name, body), template, published=body.get("published", False))


def _template(text: str) -> ast.Graph:
    statement = parse_statement(tokenise(f"CREATE STREAM s (a STRING) AS {text}"))
    if not isinstance(statement, ast.CreateStream) or statement.graph is None:
        raise SchemaError("the template of a stream is no GRAPH")
    return statement.graph


def _subscription_body(book: Subscriptions, name: str) -> Body | None:
    return entry_body(book[name]) if name in book else None


def entry_body(entry: Entry) -> Body:
    return {
        "text": entry.text,
        "on": entry.stream,
        "missing": entry.missing,
        **({"labels": dict(entry.labels)} if entry.labels else {}),
        **({"paused": True} if entry.paused else {}),
    }


def _restore_subscription(book: Subscriptions, name: str, body: Body | None) -> None:
    if body is None:
        if name in book:
            book.remove(name)
        return
    put = book.replace if name in book else book.add
    put(name, body["text"], on=body["on"], missing=body["missing"], labels=body.get("labels"))
    paused = body.get("paused", False)
    if paused != book[name].paused:
        (book.pause if paused else book.resume)(name)


KINDS: Mapping[str, Kind] = {
    OPERATOR: Kind(_operator_body, _restore_operator),
    PREFIX: Kind(_prefix_body, _restore_prefix),
    ONTOLOGY: Kind(_ontology_body, _restore_ontology),
    STREAM: Kind(_stream_body, _restore_stream),
    SUBSCRIPTION: Kind(_subscription_body, _restore_subscription),
}
"""In the order in which they are put back: what others refer to comes first."""


def all_of(book: Subscriptions) -> Iterator[Change]:
    """Everything in a book, in the order in which it can be put into another."""
    known = book.catalogue
    names: dict[str, Iterable[str]]
    names = {PREFIX: known.prefixes, ONTOLOGY: known.ontologies, STREAM: known.streams, SUBSCRIPTION: book}
    for kind, some in names.items():
        for name in some:
            yield Change(0, kind, name, KINDS[kind].body(book, name))


def operators_of(book: Subscriptions, names: tuple[str, ...]) -> Iterator[str]:
    """The operators that some subscriptions of a book call."""
    for name in names:
        if name not in book or book[name].family is Family.FILTER:
            continue
        tokens = tokenise(book[name].text)
        for word, following in zip(tokens.raws, tokens.kinds[1:], strict=False):
            if following == "LPAR" and word in book.operators:
                yield word

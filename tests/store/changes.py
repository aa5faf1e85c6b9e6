"""Random changes of a book, of every kind of definition; and a process that makes them on a store until it is killed.

A change is data, and what is proposed depends on the random numbers and on the book alone: the process that writes and
the one that checks go the same way, one over a store, one over a book in memory.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.store.operators_for_tests import is_even

from headgate.errors import HeadgateError
from headgate.store import Store
from headgate.store import book as store_book
from headgate.subscriptions import Subscriptions

STREAMS = ("s", "t", "open.one", "other")
GRAPHS = ("doc", "papers")
PUBLISHED = ("p1", "p2")
ATTRIBUTES = ("a", "b", "c.d", "`odd name`")
TTL = "@prefix : <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . :C{} rdfs:subClassOf :B ."


def everything(book: Subscriptions) -> dict[str, object]:
    """All that a book says, in its order."""
    known = book.catalogue
    return {
        "streams": known.streams,
        "prefixes": known.prefixes,
        "ontologies": known.ontologies,
        "templates": known.templates,
        "published": known.published,
        "subscriptions": [(name, book[name]) for name in book],
    }


@dataclass(frozen=True)
class Change:
    method: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]

    def make(self, target: Store | Subscriptions) -> bool:
        """Whether it is accepted."""
        try:
            getattr(target, self.method)(*self.arguments, **self.named)
        except HeadgateError:
            return False
        return True


class Proposals:
    """One change after the other, for a book as it is then."""

    def __init__(self, seed: str, folder: Path) -> None:
        self._random = random.Random(seed)
        self._folder = folder

    def next(self, book: Subscriptions) -> Change:
        kinds: list[tuple[int, Callable[[Subscriptions], Change]]] = [
            (8, self._add),
            (3, self._replace),
            (2, lambda b: self._of_one(b, "pause")),
            (2, lambda b: self._of_one(b, "resume")),
            (3, lambda b: self._of_one(b, "remove")),
            (3, self._declare),
            (2, self._template),
            (2, self._prefix),
            (1, self._ontology),
            (2, self._drop),
        ]
        weights, makers = zip(*kinds, strict=True)
        make: Callable[[Subscriptions], Change] = self._random.choices(makers, weights)[0]
        return make(book)

    def _add(self, book: Subscriptions) -> Change:
        labels = self._random.choice([None, {"owner": f"o{self._random.randrange(3)}"}])
        missing = self._random.choice(["null", "null", "null", "strict", "default", "total"])
        name = f"q{self._random.randrange(12)}"
        text, stream = self._text()
        return Change("add", (name, text), {"on": stream, "missing": missing, "labels": labels})

    def _replace(self, book: Subscriptions) -> Change:
        text, stream = self._text()
        return Change("replace", (self._one(book), text), {"on": stream})

    def _of_one(self, book: Subscriptions, method: str) -> Change:
        return Change(method, (self._one(book),), {})

    def _one(self, book: Subscriptions) -> str:
        return str(self._random.choice([*book] or ["nobody"]))

    def _text(self) -> tuple[str, str]:
        """A text, and a stream that it may fit."""
        r = self._random
        a, b, n = r.choice(ATTRIBUTES), r.choice(ATTRIBUTES), r.randrange(5)
        x, y = r.choice(["s", "t", *PUBLISHED]), r.choice(["s", "t", *PUBLISHED])
        publish = r.choice(["", f" PUBLISH {r.choice(PUBLISHED)}"])
        if r.random() < 0.15:
            return f"GRAPH {{ _:H a p{n % 2}:B ; p0:v ?v . FILTER (?v > {n}) }}", r.choice(GRAPHS)
        if r.random() < 0.25:
            pattern = f"FROM {x} AS e NEXT {{$2.a = {n}}} {y} AS f{publish}"
            return f"SELECT e.a AS a, e.at AS at {pattern}", r.choice(STREAMS)
        text = r.choice(
            [
                f"{a} = {n}",
                f"{a} < {n} AND {b} LIKE 'x%'",
                f"{a} = {b}",
                f"{a} IS NULL",
                "TRUE",
                f"is_even({a}) AND {b} > {n}",
            ]
        )
        return text, r.choice(STREAMS)

    def _declare(self, book: Subscriptions) -> Change:
        r = self._random
        kinds = {a: r.choice(["bigint", "double", "string", "array<string>"]) for a in ATTRIBUTES if r.random() < 0.7}
        kinds = {**kinds, "at": "bigint", "a": "bigint"}
        return Change("stream", (r.choice(STREAMS), kinds), {"time": r.choice(["at", "at", None])})

    def _template(self, book: Subscriptions) -> Change:
        name = self._random.choice(GRAPHS)
        columns, graph = self._random.choice(
            [
                (
                    "kind STRING DEFAULT 'C1', v BIGINT NOT NULL, at TIMESTAMP",
                    " TIME at AS GRAPH { _:H a kind ; p0:v v }",
                ),
                ("body GRAPH, a DOUBLE", ""),
            ]
        )
        return Change("extend", (f"CREATE STREAM {name} ({columns}){graph}",), {})

    def _prefix(self, book: Subscriptions) -> Change:
        name, iri = self._random.choice(("", "p0", "p0", "p1")), self._random.choice(("http://e.org/", "http://f.org/"))
        return Change("extend", (f"PREFIX {name}: <{iri}>",), {})

    def _ontology(self, book: Subscriptions) -> Change:
        number = self._random.randrange(3)
        path = self._folder / f"o{number}.ttl"
        path.write_text(TTL.format(number))
        return Change("extend", (f"CREATE ONTOLOGY o{self._random.randrange(2)} FROM '{path}'",), {})

    def _drop(self, book: Subscriptions) -> Change:
        kind = self._random.choice(("STREAM", "STREAM", "ONTOLOGY", "SUBSCRIPTION"))
        names = {
            "STREAM": [*STREAMS, *GRAPHS, *PUBLISHED],
            "ONTOLOGY": ["o0", "o1"],
            "SUBSCRIPTION": [self._one(book)],
        }[kind]
        return Change("extend", (f"DROP {kind} `{self._random.choice(names)}`",), {})


class Twin:
    """The book in memory that a store is compared with."""

    def __init__(self) -> None:
        self.book = Subscriptions([is_even])

    def advance(self, proposals: Proposals) -> None:
        """Make the next change that is accepted."""
        while not proposals.next(self.book).make(self.book):
            pass


def write(url: str, seed: str, folder: str, told: Connection) -> None:
    """A process: change the store at random, and tell of every change after it was acknowledged, until killed."""
    # A short log, so that it is compacted on the way.
    store_book.COMPACT_EVERY = 15
    store = Store(url, [is_even])
    proposals = Proposals(seed, Path(folder))
    while True:
        if proposals.next(store.look()).make(store):
            told.send(store.version)

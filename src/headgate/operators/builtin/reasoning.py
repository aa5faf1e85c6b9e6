"""Reasoning: rules over facts of the event, and class membership in a hierarchy (DEBS 2007, section 2.1.3).

`derivable` hands the event's facts and a rule base to clingo, an answer-set solver whose input contains Datalog, and
asks for an atom in every answer set. `is_a` asks a hierarchy of classes that is closed once: one given in Python, or
that of an ontology (`OntologyClasses`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from headgate.errors import EnvironmentProblem, UsageError
from headgate.graphs.ontology import Ontology
from headgate.operators.registry import VAR, Operator, operator

_NAME = re.compile(r"[a-z_][A-Za-z0-9_]*\Z")
Fact = tuple[Any, ...]
"""(predicate, argument, ...): arguments are whole numbers or texts."""


class Rules:
    """A rule base in clingo's language. Facts of an event are added for each question, and forgotten after it."""

    def __init__(self, rules: str) -> None:
        self._rules = rules
        self._checked = False

    def derive(self, facts: Iterable[Fact], predicate: str, arity: int) -> list[tuple[Any, ...]]:
        """The arguments of every atom of the predicate that holds in all answer sets."""
        clingo = _clingo()
        messages: list[str] = []
        control = clingo.Control(
            ["--enum-mode=cautious", "0"], logger=lambda _, text: messages.append(text), message_limit=5
        )
        try:
            control.add("base", [], self._rules + "\n" + "\n".join(map(_fact, facts)))
            control.ground([("base", [])])
        except RuntimeError as problem:
            raise UsageError(f"the rules cannot be used: {' '.join(messages).strip() or problem}") from None
        certain: list[Any] = []
        with control.solve(yield_=True) as solutions:
            for model in solutions:
                certain = list(model.symbols(atoms=True))
            if solutions.get().unsatisfiable:
                return []
        return [
            tuple(_plain(a) for a in atom.arguments)
            for atom in certain
            if atom.name == predicate and len(atom.arguments) == arity
        ]


def _clingo() -> Any:
    try:
        import clingo
    except ImportError:
        raise EnvironmentProblem("rules need clingo", "install headgate[operators]") from None
    return clingo


def _fact(fact: Fact) -> str:
    name, *arguments = fact
    if not isinstance(name, str) or not _NAME.match(name):
        raise UsageError(f"{name!r} is no name of a predicate", "names begin with a small letter")
    return f"{name}({', '.join(map(_term, arguments))})." if arguments else f"{name}."


def _term(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    raise UsageError(f"a fact cannot hold {value!r}", "rules know whole numbers, texts and truth values")


def _plain(symbol: Any) -> Any:
    kinds = _clingo().SymbolType
    if symbol.type == kinds.Number:
        return symbol.number
    return symbol.string if symbol.type == kinds.String else str(symbol)


class Hierarchy:
    """Classes and their direct parents, several allowed; a ring is refused."""

    def __init__(self, parents: Mapping[str, Iterable[str]]) -> None:
        self._parents = {name: tuple(above) for name, above in parents.items()}

    @cached_property
    def _above(self) -> dict[str, frozenset[str]]:
        closed: dict[str, frozenset[str]] = {}
        going: set[str] = set()

        def close(name: str) -> frozenset[str]:
            if name in closed:
                return closed[name]
            if name in going:
                raise UsageError(f"the class {name} is above itself", "take one of the parents away")
            going.add(name)
            closed[name] = frozenset({name}).union(*(close(p) for p in self._parents.get(name, ())))
            return closed[name]

        for name in list(self._parents):
            close(name)
        return closed

    def classes(self, name: str) -> frozenset[str]:
        """The class itself and all above it."""
        return self._above.get(name, frozenset({name}))


class OntologyClasses:
    """The classes of an RDFS or OWL ontology, by their names behind `base`; others by their whole IRI."""

    def __init__(self, ontology: Ontology, base: str = "") -> None:
        self._ontology = ontology
        self._base = base

    def classes(self, name: str) -> frozenset[str]:
        """The class itself and all above it."""
        return frozenset(
            iri[1:-1].removeprefix(self._base) for iri in self._ontology.classes.ancestors(f"<{self._base}{name}>")
        )


def rule_operators(
    rules: Rules, facts: Callable[[Any], Iterable[Fact]], needs: Iterable[str] | None = None
) -> list[Operator]:
    """`derivable(predicate, ...)`: holds if the rules derive such an atom from the event's facts."""

    @operator(cost=3.0, needs=needs)
    def derivable(event: Any, predicate: str, *arguments: Any) -> Iterable[tuple[Any, ...]]:
        """A variable is bound to what stands in its place in each derived atom."""
        found = rules.derive(facts(event), predicate, len(arguments))
        return [
            tuple(value for value, asked in zip(atom, arguments, strict=True) if asked is VAR)
            for atom in found
            if all(
                asked is VAR or (type(asked) is type(v) and asked == v)
                for asked, v in zip(arguments, atom, strict=True)
            )
        ]

    return [derivable]


def class_operators(hierarchy: Hierarchy | OntologyClasses, attribute: str) -> list[Operator]:
    """`is_a(class)`: the event's attribute names that class or one below it."""

    @operator(cost=0.01, needs=[attribute], pure=True)
    def is_a(event: Any, name: Any) -> bool | Iterable[tuple[str]]:
        """A variable is bound to every class that the event belongs to."""
        own = event[attribute]
        found = frozenset() if own is None else hierarchy.classes(own)
        return [(c,) for c in sorted(found)] if name is VAR else name in found

    return [is_a]

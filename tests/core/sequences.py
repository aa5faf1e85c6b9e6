"""Texts of sequences: NEXT, FOLD with aggregates and recurrences, ABSENT, FILTER, UNION, inner patterns, PUBLISH."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from tests.core.conditions import NUMBERS, Name, Scope, attributes, number, predicate, text
from tests.core.values import TYPES

from headgate.schema import Kind

_AGGREGATES = ["SUM", "AVG", "MIN", "MAX", "FIRST", "LAST", "STDDEV", "COUNT", "COLLECT"]


@dataclass
class Drawn:
    """A sequence under construction: its text, the aliases bound so far, and what its FOLDs have named."""

    text: str
    aliases: list[str]
    names: list[Name] = field(default_factory=list)
    steps: int = 1

    def after(self, late: bool) -> Scope:
        """What a FILTER around it, and SELECT, may name."""
        known = attributes(["", *(f"{alias}." for alias in self.aliases)])
        return Scope((*known, *self.names), duration=True, late=late)


def select(random: Random, streams: Sequence[str], publish: str | None, depth: int = 2) -> str:
    made = sequence(random, streams, depth)
    shown = " ".join(("SELECT", _items(random, made), "FROM", made.text))
    return f"{shown} PUBLISH {publish}" if publish else shown


def _items(random: Random, made: Drawn) -> str:
    if random.randrange(3) == 0:
        return "*"
    scope = made.after(late=False)
    items = []
    for i in range(random.randrange(1, 4)):
        choice = random.randrange(6)
        if choice < 3:
            item = random.choice(scope.names).text
        elif choice == 3:
            item = number(random, scope)
        else:
            item = text(random, scope) if choice == 4 else predicate(random, scope, 0)
        alias = random.choice(["n", "x", "name"]) if i == 0 else f"c{i}"
        items.append(f"{item} AS {alias}" if random.randrange(30) else item)
    return ", ".join(items)


def source(random: Random, streams: Sequence[str], depth: int) -> str:
    choice = random.randrange(10)
    if choice < 5 or depth <= 0:
        return random.choice(streams)
    if choice < 8:
        inside = Scope(attributes(), duration=True)
        return f"FILTER {{{predicate(random, inside, 1)}}} ({source(random, streams, depth - 1)})"
    if choice == 8:
        return f"({source(random, streams, depth - 1)} UNION {source(random, streams, depth - 1)})"
    return f"({select(random, streams, None, depth - 1)})"


def sequence(random: Random, streams: Sequence[str], depth: int) -> Drawn:
    made = Drawn(source(random, streams, depth - 1), ["e1"])
    for _ in range(random.randrange(max(1, depth + 1))):
        right = source(random, streams, depth - 2)
        made.steps += 1
        alias = f"e{made.steps}"
        choice = random.randrange(6)
        if choice < 3:
            made.text = f"{made.text} NEXT {{{_theta(random, made)}}} {right}"
            made.aliases.append(alias)
        elif choice < 5:
            made.text = f"{made.text} FOLD {{{_fold(random, made)}}} {right}"
            made.aliases.append(alias)
        else:
            length = random.choice([0, 1, 3, "2 SECONDS", 2**63 - 1])
            made.text = f"{made.text} ABSENT {{{_theta(random, made)}}} {right} WITHIN {length}"
        if random.randrange(4) == 0:
            made.text = f"FILTER {{{predicate(random, made.after(late=True), 1)}}} ({made.text})"
    return made


def _braces(made: Drawn, *more: str) -> Scope:
    prefixes = ["$2.", "", "$1.", "$2.", *(f"{alias}." for alias in made.aliases), *more]
    return Scope(attributes(prefixes), duration=True)


def _theta(random: Random, made: Drawn) -> str:
    return "TRUE" if random.randrange(4) == 0 else predicate(random, _braces(made), 1)


def _fold(random: Random, made: Drawn) -> str:
    parts = [_theta(random, made)]
    named: list[Name] = []
    inside = _braces(made, "$.")
    for i in range(random.randrange(3)):
        name = f"a{made.steps}{i}"
        choice = random.randrange(12)
        if choice < 2:
            parts.append(f"COUNT(*) AS {name}")
            named.append(Name(name, Kind.BIGINT))
        elif choice < 10:
            function = random.choice(_AGGREGATES)
            attribute = random.choice(sorted(TYPES))
            kind, array = TYPES[attribute]
            if random.randrange(4) and function not in ("COUNT", "COLLECT", "FIRST", "LAST"):
                attribute, kind, array = random.choice(["n", "x", "place.lat"]), Kind.DOUBLE, False
            operand = f"$2.{attribute}" if random.randrange(3) else number(random, _braces(made), 1)
            parts.append(f"{function}({operand}) AS {name}")
            if function == "COLLECT":
                named.append(Name(name, kind, True))
            elif function == "COUNT":
                named.append(Name(name, Kind.BIGINT))
            else:
                named.append(Name(name, kind, array))
        else:
            start = random.choice(["0", "$1.n", "0.5", "$1.name"])
            parts.append(f"$.{name} + {number(random, inside, 0)} AS {name} INIT {start}")
            named.append(Name(name, random.choice(NUMBERS)))
    if random.randrange(2):
        keep = Scope((*inside.names, *(Name(f"$.{n.text}", n.kind, n.array) for n in named)), duration=True)
        parts.insert(1, predicate(random, keep, 1))
    made.names += named
    return ", ".join(parts)

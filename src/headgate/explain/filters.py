"""Why a filter matched an event, or what blocked it.

Every atom is shown with its value on the event: true, false or unknown. For a miss, `blocking` is a smallest set of
atoms whose change would make it match; for a match, a smallest set whose change would undo it. Small means few atoms; of
several equally small sets the first in the order of the text is taken. The search is exact up to `_STEPS` atoms looked
at, which is every set of three among forty; beyond that a set from which nothing can be left out is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from headgate.explain.explanation import Atom, Explanation
from headgate.explain.pictures import decision_diagram
from headgate.language import ast
from headgate.language.ast import Node, Path
from headgate.language.printer import print_node
from headgate.predicates.modes import demanded, logic, truth
from headgate.schema import Schema, format_path

_STEPS = 800_000


def explain_filter(
    name: str, text: str, body: Node, row: Mapping[Path, Any] | None, schema: Schema, missing: str, lane: str = ""
) -> Explanation:
    """Without a row, only what there is to say of the subscription itself."""
    pictures = (decision_diagram(name, body, two_valued=missing == "default"),)
    if row is None:
        return Explanation(name, text, None, lane=lane, pictures=pictures)
    matched = truth(body, row, schema, missing) is True
    nodes = list(dict.fromkeys(atoms_of(body)))
    values = {node: truth(node, row, schema, logic(missing)) for node in nodes}
    absent = absent_of(body, row, schema, missing)
    shown = tuple(Atom(print_node(n), values[n], read_by(n, row)) for n in nodes)
    blocking = tuple(f"{format_path(p)} is missing" for p in absent)
    if not absent or matched:
        changed = smallest(body, nodes, values, wanted=not matched)
        blocking += tuple(print_node(n) for n in changed)
    elif value_of(body, values) is not True:
        blocking += tuple(print_node(n) for n in smallest(body, nodes, values, wanted=True))
    return Explanation(name, text, matched, shown, blocking, lane, pictures=pictures)


def atoms_of(node: Node) -> Iterator[Node]:
    match node:
        case ast.And(items) | ast.Or(items):
            for item in items:
                yield from atoms_of(item)
        case ast.Not(operand):
            yield from atoms_of(operand)
        case _:
            yield node


def value_of(node: Node, values: Mapping[Node, bool | None]) -> bool | None:
    """The truth of a body from that of its atoms."""
    match node:
        case ast.And(items):
            truths = [value_of(i, values) for i in items]
            return False if False in truths else None if None in truths else True
        case ast.Or(items):
            truths = [value_of(i, values) for i in items]
            return True if True in truths else None if None in truths else False
        case ast.Not(operand):
            inner = value_of(operand, values)
            return None if inner is None else not inner
    return values[node]


def smallest(body: Node, nodes: list[Node], values: Mapping[Node, bool | None], *, wanted: bool) -> tuple[Node, ...]:
    """The fewest atoms that, given other truth values, make the body match (or not match)."""
    changeable = [n for n in nodes if not isinstance(n, ast.Literal)]
    steps = 0
    for size in range(1, len(changeable) + 1):
        for chosen in combinations(changeable, size):
            # An atom that is unknown may become true or false.
            steps += len(nodes) << sum(values[n] is None for n in chosen)
            if steps > _STEPS:
                return _greedy(body, changeable, values, wanted)
            if _reaches(body, chosen, values, wanted):
                return chosen
    return ()


def _reaches(body: Node, chosen: tuple[Node, ...], values: Mapping[Node, bool | None], wanted: bool) -> bool:
    """Whether some new values of the chosen atoms give the wanted outcome; each becomes what it is not."""
    options = [[v for v in (True, False) if v is not values[n]] for n in chosen]
    assignments: list[tuple[bool, ...]] = [()]
    for choice in options:
        assignments = [(*a, v) for a in assignments for v in choice]
    return any((value_of(body, {**values, **dict(zip(chosen, a, strict=True))}) is True) == wanted for a in assignments)


def _greedy(body: Node, changeable: list[Node], values: Mapping[Node, bool | None], wanted: bool) -> tuple[Node, ...]:
    """Change everything towards the outcome, then take back whatever is not needed."""
    for polarity in (True, False):
        chosen = tuple(n for n in changeable if values[n] is not polarity)
        trial = {**values, **dict.fromkeys(chosen, polarity)}
        if (value_of(body, trial) is True) == wanted:
            for node in chosen:
                kept = tuple(n for n in chosen if n is not node)
                if (value_of(body, {**values, **dict.fromkeys(kept, polarity)}) is True) == wanted:
                    chosen = kept
            return chosen
    return ()


def absent_of(body: Node, row: Mapping[Path, Any], schema: Schema, missing: str) -> list[Path]:
    """What strict and total ask for and the event lacks."""
    return [path for path in demanded(missing, body, schema) if row.get(path) is None]


def read_by(node: Node, row: Mapping[Path, Any]) -> dict[str, Any]:
    return {format_path(n.path): row.get(n.path) for n in ast.walk(node) if isinstance(n, ast.Attribute)}

"""The compiled operators of a set of subscriptions: formulas, their program, and what each part needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from headgate.errors import UsageError
from headgate.language import ast
from headgate.language.ast import Node, Path
from headgate.operators.bindings import Compile, CompiledJoin, Output
from headgate.operators.body import Both, Early, Either, Formula, Join, Late, formula
from headgate.operators.predicate import Arguments, Predicate
from headgate.operators.program import Flattener, Program, early_parts
from headgate.operators.registry import Registry
from headgate.operators.thresholds import Thresholds
from headgate.predicates.modes import defaults_of, logic, with_demands
from headgate.predicates.rows import Truth, compile_truth
from headgate.schema import Schema

_NO_SCHEMA = Schema("", {})


@dataclass(frozen=True, eq=False)
class OperatorIndex:
    """Immutable. `early` are the parts that the filters decide, each with its mode; numbers are places."""

    formulas: tuple[Formula, ...]
    modes: tuple[str, ...]
    program: Program
    predicates: tuple[Predicate, ...]
    early: tuple[tuple[Node, str], ...]
    joins: tuple[CompiledJoin, ...]
    outputs: tuple[Output, ...]
    arguments: tuple[Arguments, ...]
    numbers: Mapping[Predicate, int]
    parts: Mapping[tuple[Node, str], int]
    defaults: Mapping[Path, Any]
    schema: Schema | None

    def __len__(self) -> int:
        return len(self.formulas)

    @cached_property
    def free(self) -> frozenset[int]:
        """Predicates that may be answered without a call: GRAPH patterns, and those whose arguments may be missing."""
        return frozenset(i for i, p in enumerate(self.predicates) if p.graph is not None or p.may_lack)

    def constraint(self, slot: int, node: Node) -> Truth:
        """A condition on variables, in the mode of a subscription."""
        return _constraints(self.modes[slot], self.defaults)(node)

    @cached_property
    def thresholds(self) -> Thresholds:
        return Thresholds([site.join for site in self.program.joins])


def compile_index(
    expressions: Sequence[Node],
    registry: Registry,
    *,
    missing: Sequence[str] | None = None,
    schema: Schema | None = None,
    every: bool = False,
) -> OperatorIndex:
    """Compile bodies, each with its missing-mode (`null` if none is given); `every` prepares for all bindings."""
    modes = tuple(missing) if missing is not None else ("null",) * len(expressions)
    if len(modes) != len(expressions):
        raise UsageError(f"{len(expressions)} bodies with {len(modes)} missing-modes")
    defaults = defaults_of(schema or ())
    flat = Flattener(exhaustive=every)
    formulas: list[Formula] = []
    for body, mode in zip(expressions, modes, strict=True):
        if mode == "total" and (schema is None or not schema.declared):
            raise UsageError("missing = 'total' needs a declared stream", "declare it with CREATE STREAM")
        made = formula(with_demands(mode, body, schema or _NO_SCHEMA), logic(mode))
        for call in _calls(made):
            if call.predicate.graph is None:
                registry[call.predicate.name]
        formulas.append(made)
        flat.add(made, logic(mode))
    program = flat.program()
    predicates = tuple(flat.predicates)
    compiled = [_constraints(mode, defaults) for mode in modes]
    return OperatorIndex(
        tuple(formulas),
        modes,
        program,
        predicates,
        early_parts(flat.early),
        tuple(CompiledJoin(site.join, compiled[site.slot]) for site in program.joins),
        tuple(Output(f, c, every=every) for f, c in zip(formulas, compiled, strict=True)),
        tuple(Arguments(p, defaults) for p in predicates),
        flat.predicates,
        flat.early,
        defaults,
        schema,
    )


def _constraints(mode: str, defaults: Mapping[Path, Any]) -> Compile:
    """How the constraints of a subscription are compiled."""
    return partial(compile_truth, defaults=defaults if mode == "default" else None)


def needs(index: OperatorIndex, registry: Registry) -> frozenset[Path]:
    """The attributes that evaluation reads: arguments, constraints, early parts, and what the operators say."""
    found = {path for p in index.predicates for path in p.reads}
    nodes = [node for node, _ in index.early]
    nodes += [c for site in index.program.joins for c in site.join.constraints]
    found.update(n.path for node in nodes for n in ast.walk(node) if isinstance(n, ast.Attribute))
    for p in index.predicates:
        if p.graph is not None:
            continue
        wanted = registry[p.name].needs
        if wanted is not None:
            found.update(wanted)
        elif index.schema is not None:
            found.update(a.path for a in index.schema)
    return frozenset(found)


def _calls(f: Formula) -> list[Late]:
    match f:
        case Late():
            return [f]
        case Join(calls):
            return list(calls)
        case Both(items) | Either(items):
            return [call for item in items for call in _calls(item)]
        case Early():
            return []
    raise AssertionError(f)

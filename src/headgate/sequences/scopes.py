"""What the names in a pattern mean (docs/semantics.md, section 5, "Names"), and whether its types fit.

The result is a `Spine`, whose expressions hold no aliases, `$1` or bare names any more. Problems are collected, not
raised, so that a user fixes a text in one go.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from headgate.errors import DuplicateName, LanguageError, TypeProblem
from headgate.language import ast
from headgate.language.ast import DUR, TRUE, Node, rewrite
from headgate.language.catalogue import Catalogue
from headgate.predicates.check import check_calls, check_graphs, check_variables
from headgate.predicates.types import BIGINT, BOOLEAN, DOUBLE, ExpressionType, Lookup, Special, Types
from headgate.predicates.values import INT64
from headgate.schema import Attribute, Kind, Path, Schema, Type, format_path
from headgate.sequences.names import Names
from headgate.sequences.places import Bound, Place
from headgate.sequences.predicates import FOREVER
from headgate.sequences.spine import (
    Accumulator,
    Merged,
    Selected,
    Source,
    Spine,
    Step,
    attributes,
    conjunction,
    variables,
)


@dataclass
class Scoped:
    """What a check found: the spine (None if there are problems), the problems in the order of the text, and the
    attributes of undeclared streams that the text speaks of."""

    spine: Spine | None = None
    problems: list[LanguageError] = field(default_factory=list)
    mentioned: dict[str, dict[Path, None]] = field(default_factory=dict)


def check_pattern(pattern: ast.Pattern, catalogue: Catalogue) -> Scoped:
    """Resolve and check a pattern. Streams that other patterns PUBLISH must be in the catalogue."""
    scoped = Scoped()
    resolver = _Resolver(catalogue, scoped)
    spine = resolver.pattern(pattern)
    # The operand of an aggregate is looked at twice: on S1 and on the incoming event.
    scoped.problems = list({(p.at, p.message): p for p in scoped.problems}.values())
    scoped.problems.sort(key=lambda p: p.at)
    scoped.spine = None if scoped.problems else spine
    return scoped


class _Resolver:
    def __init__(self, catalogue: Catalogue, scoped: Scoped) -> None:
        self._catalogue = catalogue
        self._scoped = scoped
        self._names = Names(catalogue, scoped.mentioned)
        self._predicates = 0
        """How many predicates have variables so far."""

    def problem(self, problem: LanguageError) -> None:
        self._scoped.problems.append(problem)

    # -- the plan

    def pattern(self, pattern: ast.Pattern) -> Spine:
        start, steps, bound = self._sequence(pattern.source)
        items = self._items(pattern.items, bound, pattern.at)
        time = self._time(start)
        schema = Schema(
            pattern.publish or "(pattern)",
            {(i.name,): Attribute((i.name,), i.type) for i in items},
            derived=True,
        )
        steps = [self._ticks(step, time) for step in steps]
        start = replace(start, where=self._spans(start.where, time))
        items = [replace(i, expression=self._spans(i.expression, time)) for i in items]
        return Spine(start, tuple(steps), tuple(items), pattern.publish, schema)

    def _sequence(self, node: Node) -> tuple[Source, list[Step], list[Bound]]:
        match node:
            case ast.Filter(predicate, inner, alias):
                return self._filter(predicate, inner, alias, node)
            case ast.Next(left, theta, right):
                start, steps, bound = self._sequence(left)
                place, source = self._operand(right, bound)
                steps.append(Step("NEXT", source, self.predicate(theta, place)))
                return start, steps, bound
            case ast.Fold(left, theta, keep, accumulators, right):
                start, steps, bound = self._sequence(left)
                place, source = self._operand(right, bound)
                steps.append(self._fold(theta, keep, accumulators, place, source))
                return start, steps, bound
            case ast.Absent(left, theta, right, within):
                start, steps, bound = self._sequence(left)
                place, source = self._operand(right, bound)
                ticks = self._within(within)
                steps.append(Step("ABSENT", source, self.predicate(theta, place), within=ticks))
                bound[-1].visible = False
                return start, steps, bound
        source, bound_ = self._primary(node, 0)
        return source, [], [bound_]

    def _filter(
        self, predicate: Node, source: Node, alias: str | None, node: Node
    ) -> tuple[Source, list[Step], list[Bound]]:
        start, steps, bound = self._sequence(source)
        if not steps:
            if alias is not None:
                start, bound[0].alias = replace(start, alias=alias), alias
            where = self.predicate(predicate, Place(bound, own=True))
            return replace(start, where=conjunction((start.where, where))), steps, bound
        if alias is not None:
            self.problem(
                TypeProblem(
                    f"AS {alias} names a FILTER over several events",
                    "name each of them, or use (SELECT ...) AS name",
                    at=node.at,
                )
            )
        if steps[-1].kind == "ABSENT" and (asking := _asking(predicate)) is not None:
            self.problem(
                TypeProblem(
                    "nothing comes in when ABSENT is over, so there is no event that an operator or GRAPH could look at",
                    "put it in a FILTER over the stream that it asks",
                    at=asking.at,
                )
            )
        after = self.predicate(predicate, Place(bound))
        steps[-1] = replace(steps[-1], after=conjunction((steps[-1].after, after)))
        return start, steps, bound

    def _operand(self, node: Node, bound: list[Bound]) -> tuple[Place, Source]:
        """The right operand, appended to `bound`."""
        source, made = self._primary(node, len(bound))
        taken = {b.alias for b in bound}
        if made.alias in taken:
            if made.alias != f"e{len(bound) + 1}":
                self.problem(DuplicateName(f"two events are called {made.alias}", "give one another alias", at=node.at))
            made.alias = ""
        place = Place(list(bound), made)
        bound.append(made)
        return place, replace(source, alias=made.alias)

    def _primary(self, node: Node, place: int) -> tuple[Source, Bound]:
        key, automatic = f"#{place}", f"e{place + 1}"
        match node:
            case ast.Stream(name, alias):
                try:
                    schema = self._catalogue.stream(name, node.at)
                except LanguageError as problem:
                    self.problem(problem)
                    schema = Schema(name, {}, declared=False)
                if not schema.declared:
                    self._scoped.mentioned.setdefault(name, {})
                made = Source(name, TRUE, schema, alias or automatic)
            case ast.Filter(predicate, inner, alias) if _single(inner):
                made, bound = self._primary(inner, place)
                bound.alias = alias or bound.alias
                where = self.predicate(predicate, Place([bound], own=True))
                return replace(made, where=conjunction((made.where, where)), alias=bound.alias), bound
            case ast.Nested(pattern, alias):
                if pattern.publish is not None:
                    self.problem(
                        TypeProblem("PUBLISH ends a subscription, not a part of it", "leave it away", at=node.at)
                    )
                spine = self.pattern(pattern)
                made = Source(spine, TRUE, spine.schema, alias or automatic)
            case ast.Union(left, right, alias):
                merged = self._union(left, right, node.at)
                made = Source(merged, TRUE, merged.schema, alias or automatic)
            case _:
                spine = self.pattern(ast.Pattern((ast.Item(None),), node, at=node.at))
                made = Source(spine, TRUE, spine.schema, automatic)
        return made, Bound(made.alias, key, made.schema, made.origin)

    def _union(self, left: Node, right: Node, at: int) -> Merged:
        sides = [self._side(node) for node in (left, right)]
        if not all(side.schema.declared for side in sides):
            self.problem(TypeProblem("the columns of this UNION are not known", "declare its streams first", at=at))
        columns: dict[Path, Attribute] = {}
        for side in sides:
            for attribute in side.schema:
                known = columns.get(attribute.path)
                kind = attribute.type if known is None or attribute.type is None else known.type
                if kind is not None and kind != attribute.type:
                    if {kind, attribute.type} != {BIGINT, DOUBLE}:
                        message = (
                            f"{format_path(attribute.path)} is {kind} on one side and {attribute.type} on the other"
                        )
                        self.problem(TypeProblem(message, "rename one with SELECT ... AS", at=at))
                    kind = DOUBLE
                columns[attribute.path] = Attribute(attribute.path, kind)
        return Merged(sides[0], sides[1], Schema("(union)", columns, declared=all(s.schema.declared for s in sides)))

    def _side(self, node: Node) -> Spine:
        """One side of a UNION: a primary keeps its own columns, a composite has those of SELECT *."""
        if not _single(node):
            return self.pattern(ast.Pattern((ast.Item(None),), node, at=node.at))
        source, _ = self._primary(node, 0)
        items = [Selected("", ast.Attribute(("#0", *a.path)), a.type) for a in source.schema]
        named = tuple(replace(i, name=format_path(a.path)) for i, a in zip(items, source.schema, strict=True))
        return Spine(source, (), named, None, source.schema)

    def _fold(
        self,
        theta: Node,
        keep: Node,
        accumulators: tuple[ast.Aggregate | ast.Recurrence, ...],
        place: Place,
        source: Source,
    ) -> Step:
        incoming = place.incoming
        assert incoming is not None
        place = replace(place, iteration=True, old={})
        initial = Place(place.left, init=True)
        made: list[Accumulator] = []
        types: dict[str, Type | None] = {}
        for a in accumulators:
            if a.name in types or incoming.schema.get((a.name,)) is not None:
                self.problem(DuplicateName(f"{a.name} is taken already", "give the aggregate another name", at=a.at))
            types[a.name] = self._accumulated(a, place, initial)
        place = replace(place, old=types)
        for a in accumulators:
            if isinstance(a, ast.Recurrence):
                types[a.name] = self._recurring(a, types[a.name], self._value_type(a.step, place))
                step, start = self.value(a.step, place), self.value(a.start, replace(initial, old={}))
                made.append(Accumulator("", step, start, a.name, types[a.name]))
            elif a.operand is None:
                made.append(Accumulator("COUNT", None, None, a.name, BIGINT))
            else:
                operand = self.value(a.operand, replace(place, old={}))
                start = self.value(a.operand, initial)
                made.append(Accumulator(a.function, operand, start, a.name, types[a.name]))
        resolved = self.predicate(theta, place), self.predicate(keep, place)
        incoming.accumulators = types
        used = {n.path[1:] for e in (*resolved, *(a.operand for a in made if a.operand)) for n in attributes(e, "$")}
        starts = {path: self._names.recent(path, place.left) for path in sorted(used)}
        return Step("FOLD", source, *resolved, tuple(made), starts=starts)

    def _accumulated(self, a: ast.Aggregate | ast.Recurrence, place: Place, initial: Place) -> Type | None:
        if isinstance(a, ast.Recurrence):
            return self._value_type(a.start, initial)
        if a.function == "COUNT" or a.operand is None:
            return BIGINT
        found = self._value_type(a.operand, place)
        if found is not None and (message := _misfit(a.function, found)):
            hint = "let a FILTER or a FOLD of its own look at the elements" if found.array else ""
            self.problem(TypeProblem(message, hint, at=a.operand.at))
        if a.function in ("AVG", "STDDEV"):
            return DOUBLE
        if a.function == "COLLECT":
            return None if found is None else Type(found.kind, array=True)
        return found

    def _recurring(self, a: ast.Recurrence, start: Type | None, step: Type | None) -> Type | None:
        if start is None or step is None:
            nothing = ast.Literal(None)
            return step if a.start == nothing else start if a.step == nothing else None
        if start == step:
            return start
        if {start, step} != {BIGINT, DOUBLE}:
            self.problem(
                TypeProblem(f"{a.name} starts as {start} and becomes {step}", "give it one type", at=a.step.at)
            )
        return DOUBLE

    def _items(self, items: tuple[ast.Item, ...], bound: list[Bound], at: int) -> list[Selected]:
        place = Place(bound)
        made: list[Selected] = []
        for item in items:
            if item.expression is None:
                made += self._star(bound)
                continue
            name = item.name
            if name is None and isinstance(item.expression, ast.Attribute):
                path = item.expression.path
                name = "_".join(path[1:] if len(path) > 1 and any(b.alias == path[0] for b in bound) else path)
            if name is None:
                self.problem(TypeProblem("this item of SELECT needs a name", "write AS name after it", at=item.at))
                continue
            made.append(Selected(name, self.value(item.expression, place), self._value_type(item.expression, place)))
        seen: set[str] = set()
        for selected in made:
            if selected.name in seen:
                self.problem(
                    DuplicateName(f"SELECT gives two values the name {selected.name}", "rename one with AS", at=at)
                )
            seen.add(selected.name)
        return made

    def _star(self, bound: list[Bound]) -> list[Selected]:
        made = []
        for b in (b for b in bound if b.visible):
            types = self._names.columns(b)
            name = b.alias or f"e{int(b.key[1:]) + 1}"
            made += [Selected("_".join((name, *p)), ast.Attribute((b.key, *p)), t) for p, t in types.items()]
            made += [Selected(n, ast.Attribute(("@" + b.key[1:], n)), t) for n, t in b.accumulators.items()]
        return made

    # -- expressions

    def predicate(self, node: Node, place: Place) -> Node:
        types = self._names.types(place)
        types.predicate(node)
        return self._checked(node, place, types)

    def value(self, node: Node, place: Place) -> Node:
        types = self._names.types(place)
        types.value(node)
        if (asking := _asking(node)) is not None:
            message = "an operator or GRAPH decides, it gives no value"
            self.problem(
                TypeProblem(message, "put it in the braces of NEXT, FOLD or ABSENT, or in a FILTER", at=asking.at)
            )
        elif isinstance(node, ast.Literal) and isinstance(node.value, int) and node.value not in INT64:
            self.problem(TypeProblem(f"{node.value} is beyond BIGINT", "write it with a decimal point", at=node.at))
        elif not types.problems:
            self._whole_arrays(node, self._names.lookup(place))
        return self._checked(node, place, types)

    def _whole_arrays(self, node: Node, lookup: Lookup) -> None:
        """A value may be an ARRAY, but nothing is computed with one: only a comparison looks at its elements."""
        if isinstance(node, ast.Every):
            self.problem(TypeProblem("ALL(...) stands in a comparison", "write the attribute alone", at=node.at))
        elif isinstance(node, ast.Arithmetic | ast.Negate | ast.Function):
            for n in ast.walk(node):
                if isinstance(n, ast.Attribute) and (kind := lookup(n)) is not None and kind.array:
                    message = f"{format_path(n.path)} is {kind}: nothing can be computed with a whole array"
                    self.problem(TypeProblem(message, "compare its elements, or take the array as it is", at=n.at))

    def _value_type(self, node: Node, place: Place) -> Type | None:
        """The type alone; its problems are reported where the value is resolved."""
        return _type_of(self._names.types(place).value(node))

    def _checked(self, node: Node, place: Place, types: Types) -> Node:
        problems = self._scoped.problems
        problems += types.problems
        problems += check_calls(node, self._catalogue)
        problems += check_graphs(node, self._catalogue)
        problems += check_variables(node)
        if types.problems:
            return TRUE
        self._predicates += bool(variables(node))
        made = rewrite(node, lambda n: self._renamed(n, place))
        return self._durations(made, place)

    def _renamed(self, node: Node, place: Place) -> Node | None:
        if isinstance(node, ast.Variable):
            # Predicates of different braces may be joined by AND, and their variables have nothing to do with each other.
            return ast.Variable(f"{node.name}.{self._predicates}", at=node.at)
        if not isinstance(node, ast.Attribute):
            return None
        path = self._names.path(node, place)
        return ast.Literal(None, at=node.at) if path is None else ast.Attribute(path, at=node.at)

    # -- time

    def _durations(self, node: Node, place: Place) -> Node:
        path = (place.left[0].key, DUR) if place.own else (DUR,)
        return rewrite(node, lambda n: ast.Attribute(path, at=n.at) if isinstance(n, ast.Duration) else None)

    def _within(self, node: ast.Span | ast.Literal) -> int:
        ticks = round(node.amount * ast.UNITS[node.unit]) if isinstance(node, ast.Span) else node.value
        if not isinstance(ticks, int) or ticks < 0:
            self.problem(TypeProblem("WITHIN takes a length of time", "write WITHIN 30 MINUTES, or ticks", at=node.at))
            return 0
        if ticks > FOREVER:
            self.problem(TypeProblem(f"no time is as long as {ticks} ticks", f"write at most {FOREVER}", at=node.at))
        return min(ticks, FOREVER)

    def _time(self, start: Source) -> Kind | None:
        """The kind of TIME that the base stream of a source has, if it has one."""
        match start.origin:
            case Spine():
                return self._time(start.origin.start)
            case Merged(left):
                return self._time(left.start)
        return start.schema.time_kind

    def _ticks(self, step: Step, time: Kind | None) -> Step:
        def spans(node: Node | None) -> Node | None:
            return None if node is None else self._spans(node, time)

        return replace(
            step,
            source=replace(step.source, where=self._spans(step.source.where, time)),
            theta=self._spans(step.theta, time),
            keep=self._spans(step.keep, time),
            after=self._spans(step.after, time),
            accumulators=tuple(replace(a, operand=spans(a.operand), start=spans(a.start)) for a in step.accumulators),
        )

    def _spans(self, node: Node, time: Kind | None) -> Node:
        def change(n: Node) -> Node | None:
            if not isinstance(n, ast.Span):
                return None
            if time is Kind.BIGINT:
                message = f"{n.amount} {n.unit} has no meaning where TIME is BIGINT"
                self.problem(TypeProblem(message, "write a number of ticks, or make TIME a TIMESTAMP", at=n.at))
            return ast.Literal(round(n.amount * ast.UNITS[n.unit]), at=n.at)

        return rewrite(node, change)


def _asking(node: Node) -> Node | None:
    """The first operator or GRAPH in an expression."""
    return next((n for n in ast.walk(node) if isinstance(n, ast.Call | ast.Graph)), None)


def _misfit(function: str, operand: Type) -> str:
    """Why an aggregate cannot take values of a type; '' if it can."""
    if function in ("SUM", "AVG", "STDDEV") and (operand.array or operand.kind not in (Kind.BIGINT, Kind.DOUBLE)):
        return f"{function} needs numbers, this is {operand}"
    if function in ("MIN", "MAX") and (operand.array or operand.kind is Kind.GRAPH):
        return f"{function} needs values that have an order, this is {operand}"
    return "there is no ARRAY of ARRAYs" if function == "COLLECT" and operand.array else ""


def _single(node: Node) -> bool:
    """Is this one primary, so that a FILTER over it sees one event?"""
    while isinstance(node, ast.Filter):
        node = node.source
    return isinstance(node, ast.Stream | ast.Nested | ast.Union)


def _type_of(found: ExpressionType) -> Type | None:
    if isinstance(found, Type):
        return found
    return {Special.PREDICATE: BOOLEAN, Special.SPAN: BIGINT}.get(found)

"""Rewrites of the algebra: a tuple of rules, each from a spine to an equal one that costs less.

Every rule says when it holds; what it may not do is as important (trap 6: a FILTER around a sequence kills where the
same predicate in theta would skip, so it never moves into theta). Rules work on resolved spines, where the length of an
event (`#k DUR()`) and that of the run (`DUR()`) are different attributes; that is why a FILTER over a right operand may
always join theta here, while on the text it may only if it has no DUR.

A missing-mode is applied to each predicate. In all modes a conjunction is TRUE exactly if its parts are, so that
conjuncts may be moved one by one; a disjunction in `strict` mode is not TRUE exactly if a part is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headgate.language import ast
from headgate.language.ast import DUR, TRUE, Node, rewrite
from headgate.sequences.spine import Accumulator, Merged, Source, Spine, Step, conjunction, conjuncts

Rule = Callable[[Spine, str], Spine]


def simplify(spine: Spine, missing: str = "null") -> Spine:
    """All rules, over and over, until none finds anything to do."""
    while spine.rewritten != missing:
        before = spine
        for rule in RULES:
            spine = rule(spine, missing)
        if spine == before:
            return replace(spine, rewritten=missing)
    return spine


def right_filter_into_theta(spine: Spine, missing: str) -> Spine:
    """S1 ;theta sigma_phi(S2) = S1 ;(theta and phi) S2: theta skips what phi would not have let in."""
    return _each_step(
        spine,
        lambda step, _: replace(
            step, theta=conjunction((step.theta, step.source.where)), source=replace(step.source, where=TRUE)
        ),
    )


def filter_to_the_left(spine: Spine, missing: str) -> Spine:
    """sigma_p(S1 ;theta S2) = sigma_p(S1) ;theta S2 if p speaks of S1 only: the run that dies need not be born.

    A call or GRAPH asks the event that has just come in, even without naming an attribute, so it stays.
    """
    return _move_left(spine, lambda step: step.after, lambda step, rest: replace(step, after=rest))


def theta_to_the_left(spine: Spine, missing: str) -> Spine:
    """S1 ;(p and theta) S2 = sigma_p(S1) ;theta S2 if p speaks of S1 only: without p the run would wait for ever.

    Not for ABSENT, where a theta that is never TRUE makes the run come out.
    """
    return _move_left(
        spine,
        lambda step: TRUE if step.kind == "ABSENT" else step.theta,
        lambda step, rest: replace(step, theta=rest),
    )


def implied_filter_goes(spine: Spine, missing: str) -> Spine:
    """sigma_(p and q)(S1 ;p S2) = sigma_q(S1 ;p S2). Not for ABSENT, whose theta was TRUE for no event."""

    def change(step: Step, _: int) -> Step:
        if step.kind == "ABSENT":
            return step
        known = set(conjuncts(step.theta)) | set(conjuncts(step.keep))
        return replace(step, after=conjunction(c for c in conjuncts(step.after) if c not in known))

    return _each_step(spine, change)


def keep_implied_by_theta_goes(spine: Spine, missing: str) -> Spine:
    """mu with F = sigma_(p and q) and theta = p: keep is asked only where theta is TRUE."""

    def change(step: Step, _: int) -> Step:
        known = set(conjuncts(step.theta))
        return replace(step, keep=conjunction(c for c in conjuncts(step.keep) if c not in known))

    return _each_step(spine, change)


def union_of_one_stream(spine: Spine, missing: str) -> Spine:
    """sigma_p(S) union sigma_q(S) = sigma_(p or q)(S). Not in `strict`, where p or q needs the attributes of both, nor
    in `default`, since the columns of a UNION have no DEFAULT."""
    if missing in ("strict", "default"):
        return spine

    def change(source: Source, place: int) -> Source:
        match source.origin:
            case Merged(left, right) if (
                left.start.origin == right.start.origin
                and isinstance(left.start.origin, str)
                and all(side.schema is side.start.schema and not side.steps for side in (left, right))
            ):
                either = [_at_place(side.start.where, 0, place) for side in (left, right)]
                where = TRUE if TRUE in either else either[0] if either[0] == either[1] else ast.Or(tuple(either))
                return replace(
                    left.start, where=conjunction((where, source.where)), alias=source.alias, schema=left.start.schema
                )
        return source

    return _each_source(spine, change)


def projection_inlined(spine: Spine, missing: str) -> Spine:
    """(SELECT a AS b FROM sigma_p(S)) is S with p, and b read from a: a projection of single events needs no stream of
    its own. No attribute may have two names, for `$.b` and `$.c` may start differently. Not in `default` and `total`,
    which ask the schema of S and not that of the projection."""
    if missing in ("default", "total"):
        return spine
    for place, source in enumerate((spine.start, *(s.source for s in spine.steps))):
        inner = source.origin
        if not isinstance(inner, Spine) or inner.steps:
            continue
        paths = {i.expression.path for i in inner.items if isinstance(i.expression, ast.Attribute)}
        if len(paths) == len(inner.items) and not any(path[-1] == DUR for path in paths):
            return _inline(spine, place, inner)
    return spine


RULES: tuple[Rule, ...] = (
    union_of_one_stream,
    projection_inlined,
    right_filter_into_theta,
    theta_to_the_left,
    filter_to_the_left,
    keep_implied_by_theta_goes,
    implied_filter_goes,
)


def heads(node: Node) -> set[str]:
    """The first parts of the paths in an expression: which places, aggregates and lengths it speaks of."""
    return {n.path[0] for n in ast.walk(node) if isinstance(n, ast.Attribute)}


def is_late(node: Node) -> bool:
    """Does it ask an operator or a GRAPH, or compare what they bind?"""
    return any(isinstance(n, ast.Call | ast.Graph | ast.Variable) for n in ast.walk(node))


def _before(node: Node, place: int) -> bool:
    """Does it speak of places before `place` and of nothing else?"""
    names = heads(node)
    return (
        bool(names)
        and not is_late(node)
        and all(n[0] in "#@" and n[1:].isdigit() and int(n[1:]) < place for n in names)
    )


def _each_step(spine: Spine, change: Callable[[Step, int], Step]) -> Spine:
    return replace(spine, steps=tuple(change(step, place) for place, step in enumerate(spine.steps, start=1)))


def _each_source(spine: Spine, change: Callable[[Source, int], Source]) -> Spine:
    spine = replace(spine, start=change(spine.start, 0))
    return _each_step(spine, lambda step, place: replace(step, source=change(step.source, place)))


def _move_left(spine: Spine, part: Callable[[Step], Node], without: Callable[[Step, Node], Step]) -> Spine:
    start, steps = spine.start, list(spine.steps)
    for place in range(len(steps), 0, -1):
        moved = [c for c in conjuncts(part(steps[place - 1])) if _before(c, place)]
        if not moved:
            continue
        rest = conjunction(c for c in conjuncts(part(steps[place - 1])) if c not in moved)
        steps[place - 1] = without(steps[place - 1], rest)
        if place == 1:
            start = replace(start, where=conjunction((start.where, *moved)))
        else:
            above = steps[place - 2]
            steps[place - 2] = replace(above, after=conjunction((above.after, *moved)))
    return replace(spine, start=start, steps=tuple(steps))


def _at_place(node: Node, old: int, new: int) -> Node:
    def change(n: Node) -> Node | None:
        if isinstance(n, ast.Attribute) and n.path[0] == f"#{old}":
            return ast.Attribute((f"#{new}", *n.path[1:]), at=n.at)
        return None

    return rewrite(node, change)


def _inline(spine: Spine, place: int, inner: Spine) -> Spine:
    names = {i.name: i.expression.path[1:] for i in inner.items if isinstance(i.expression, ast.Attribute)}

    def change(n: Node) -> Node | None:
        if isinstance(n, ast.Attribute) and n.path[0] == f"#{place}" and n.path[1] != DUR:
            return ast.Attribute((n.path[0], *names[n.path[1]]), at=n.at)
        return None

    def change_braces(n: Node) -> Node | None:
        """`$` is the right operand of the FOLD it stands in."""
        if isinstance(n, ast.Attribute) and n.path[0] == "$":
            return ast.Attribute(("$", *names[n.path[1]]), at=n.at)
        return change(n)

    def source(old: Source, number: int) -> Source:
        where = rewrite(old.where, change)
        if number != place:
            return replace(old, where=where)
        inside = _at_place(inner.start.where, 0, place)
        return replace(inner.start, where=conjunction((inside, where)), alias=old.alias)

    def step(old: Step, number: int) -> Step:
        braces = change_braces if number == place else change
        starts = {
            names[path[0]] if number == place else path: (
                (start[0], *names[start[1]]) if start is not None and start[0] == f"#{place}" else start
            )
            for path, start in old.starts.items()
        }
        return replace(
            old,
            source=source(old.source, number),
            theta=rewrite(old.theta, braces),
            keep=rewrite(old.keep, braces),
            after=rewrite(old.after, change),
            accumulators=tuple(accumulator(a, braces) for a in old.accumulators),
            starts=starts,
        )

    def accumulator(old: Accumulator, braces: Callable[[Node], Node | None]) -> Accumulator:
        operand = None if old.operand is None else rewrite(old.operand, braces)
        return replace(old, operand=operand, start=None if old.start is None else rewrite(old.start, change))

    made = _each_step(replace(spine, start=source(spine.start, 0)), step)
    items = tuple(replace(i, expression=rewrite(i.expression, change)) for i in spine.items)
    return replace(made, items=items)

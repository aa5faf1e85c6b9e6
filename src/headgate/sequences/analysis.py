"""What is worth a warning in a pattern: state without bound, and conditions that hardly ever hold (trap 3)."""

from __future__ import annotations

from headgate.language import ast
from headgate.language.ast import DUR, TRUE, Node
from headgate.sequences.algebra import simplify
from headgate.sequences.parameterized import plain
from headgate.sequences.predicates import FOREVER, parts
from headgate.sequences.spine import Merged, Source, Spine, Step, conjuncts


def warnings_of(spine: Spine, missing: str = "null") -> list[str]:
    """Sentences for `analyse`, in the order of the text."""
    simple = simplify(spine, missing)
    found = [w for source in _sources(spine) for w in _inside(source, missing)]
    bound = FOREVER
    unbounded: list[str] = []
    for place in range(len(simple.steps), 0, -1):
        step = simple.steps[place - 1]
        bound = min(bound, _bound(step, place, missing))
        if bound == FOREVER and step.kind != "ABSENT" and conjuncts(step.theta):
            name = step.source.alias or f"e{place + 1}"
            unbounded.append(f"{name} is awaited without an upper bound on DUR: runs may wait for ever")
        if step.kind == "ABSENT":
            bound = FOREVER
    found += reversed(unbounded)
    for step in spine.steps:
        for part in (step.theta, step.keep, step.after):
            found += [_equal(c) for c in conjuncts(plain(part)) if _is_equal(c)]
    return found


def _bound(step: Step, place: int, missing: str) -> int:
    return min(parts(plain(p), place, missing).bound for p in (step.theta, step.keep, step.after))


def _sources(spine: Spine) -> list[Source]:
    return [spine.start, *(step.source for step in spine.steps)]


def _inside(source: Source, missing: str) -> list[str]:
    match source.origin:
        case Spine():
            return warnings_of(source.origin, missing)
        case Merged(left, right):
            return [w for side in (left, right) for w in warnings_of(side, missing)]
    return []


def _is_equal(node: Node) -> bool:
    if not isinstance(node, ast.Compare) or node.op != "=" or TRUE in (node.left, node.right):
        return False
    return ast.Attribute((DUR,)) in (node.left, node.right)


def _equal(node: Node) -> str:
    assert isinstance(node, ast.Compare)
    other = node.right if node.left == ast.Attribute((DUR,)) else node.left
    shown = other.value if isinstance(other, ast.Literal) else "..."
    return f"DUR = {shown} holds only if an event comes at that very tick: use >= or <="

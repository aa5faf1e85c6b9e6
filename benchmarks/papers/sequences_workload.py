"""The technical benchmark of the Cayuga paper (EDBT 2006, section 4.1): its stream and its five templates.

Eight attributes, four discrete of 100 values and four continuous, uniform. A step has two equalities and two ranges.
One attribute is primary: it occurs in all three steps with the same constant. Attributes and values are drawn by Zipf.

Guessed, because the paper does not say: ranges are two-sided and equally spaced (25 of them), the parameterised
predicate of LinearDyn asks for a rise of 1% over the first event, SUM is taken of all four continuous attributes, the
events are one tick apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headgate.language import ast
from headgate.language.ast import DUR, TRUE, Node
from headgate.language.catalogue import Catalogue
from headgate.language.parser import parse_body
from headgate.schema import Schema
from headgate.sequences.algebra import simplify
from headgate.sequences.parameterized import Parameterized, Part, part
from headgate.sequences.scopes import check_pattern
from headgate.sequences.spine import Spine

DISCRETE, CONTINUOUS, DOMAIN, RANGES = 4, 4, 100, 25
SCHEMA = Schema.of(
    "s",
    {**{f"d{i}": "bigint" for i in range(DISCRETE)}, **{f"c{i}": "double" for i in range(CONTINUOUS)}, "at": "bigint"},
    "at",
)


@dataclass(frozen=True)
class Setting:
    """The paper's table 3."""

    zipf1: float = 1.0
    zipf2: float = 1.0
    zipf3: float = 0.8
    selectivity: float = 0.7
    duration: int = 20


def stream(events: int, seed: int = 1) -> pa.Table:
    draw = np.random.default_rng(seed)
    columns: dict[str, NDArray[Any]] = {f"d{i}": draw.integers(0, DOMAIN, events) for i in range(DISCRETE)}
    columns |= {f"c{i}": draw.random(events) for i in range(CONTINUOUS)}
    return pa.table({**columns, "at": np.arange(events, dtype=np.int64)})


@dataclass(frozen=True)
class Steps:
    """What one subscription is made of: the predicate of each step, the primary predicate, a continuous attribute."""

    theta: tuple[str, str, str]
    primary: str
    varying: str
    atoms: tuple[tuple[tuple[str, tuple[Any, ...]], ...], ...]
    """The same predicates as attributes and constants: one for an equality, two for a range."""


def _zipf(draw: np.random.Generator, exponent: float, size: int, count: int) -> NDArray[np.int64]:
    weights = 1.0 / np.arange(1, size + 1) ** exponent
    return draw.choice(size, count, p=weights / weights.sum())


def steps(count: int, setting: Setting, seed: int = 2) -> list[Steps]:
    draw = np.random.default_rng(seed)
    exponents = (setting.zipf1, setting.zipf2, setting.zipf3)
    primary, second = _pairs(draw, setting.zipf1, count)
    ranged = [_pairs(draw, setting.zipf1, count) for _ in exponents]
    constant = _zipf(draw, setting.zipf1, DOMAIN, count)
    seconds = [_pairs_with(draw, primary, setting.zipf1) if i else second for i in range(3)]
    values = [_zipf(draw, z, DOMAIN, count) for z in exponents]
    bounds = [(_zipf(draw, z, RANGES, count), _zipf(draw, z, RANGES, count)) for z in exponents]
    lows = np.linspace(0.0, 1.0 - setting.selectivity, RANGES)
    made = []
    for i in range(count):
        atoms = []
        for k in range(3):
            equal = [(f"d{primary[i]}", (int(constant[i]),)), (f"d{seconds[k][i]}", (int(values[k][i]),))]
            ranges = []
            for n in range(2):
                low = round(float(lows[bounds[k][n][i]]), 4)
                ranges.append((f"c{ranged[k][n][i]}", (low, round(low + setting.selectivity, 4))))
            atoms.append((*equal, *ranges))
        theta = [" AND ".join(_text(name, c) for name, c in step) for step in atoms]
        primary_text = _text(*atoms[0][0])
        made.append(Steps((theta[0], theta[1], theta[2]), primary_text, f"c{ranged[1][0][i]}", tuple(atoms)))
    return made


def _text(name: str, constants: tuple[Any, ...]) -> str:
    if len(constants) == 1:
        return f"{name} = {constants[0]}"
    return f"{name} BETWEEN {constants[0]:.4f} AND {constants[1]:.4f}"


def _pairs(draw: np.random.Generator, exponent: float, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two different attributes of four."""
    first = _zipf(draw, exponent, DISCRETE, count)
    return first, _pairs_with(draw, first, exponent)


def _pairs_with(draw: np.random.Generator, first: NDArray[np.int64], exponent: float) -> NDArray[np.int64]:
    second = _zipf(draw, exponent, DISCRETE - 1, len(first))
    return second + (second >= first)


def _star(source: str) -> str:
    return " ".join(("SELECT * FROM", source))


def linear_stat(s: Steps, _: Setting) -> str:
    one, two, three = s.theta
    return _star(f"FILTER {{{three}}} (FILTER {{{two}}} (FILTER {{{one}}} (s) NEXT s) NEXT s)")


def linear_dyn(s: Steps, _: Setting) -> str:
    one, two, three = (f"{t} AND {s.varying} > 1.01 * e1.{s.varying}" if i else t for i, t in enumerate(s.theta))
    return _star(f"FILTER {{{three}}} (FILTER {{{two}}} (FILTER {{{one}}} (s) NEXT s) NEXT s)")


def filtering(s: Steps, setting: Setting) -> str:
    one, two, three = s.theta
    within = f"{{DUR <= {setting.duration} AND {s.primary}}}"
    return _star(f"FILTER {{{three}}} (FILTER {{{two}}} (FILTER {{{one}}} (s) NEXT {within} s) NEXT {within} s)")


def nondeterministic(s: Steps, setting: Setting) -> str:
    one, two, three = s.theta
    within = f"{{DUR <= {setting.duration} AND {s.primary}}}"
    return _star(f"FILTER {{{three}}} (FILTER {{{two}}} (FILTER {{{one}}} (s) FOLD {within} s) FOLD {within} s)")


def nondeterministic_agg(s: Steps, setting: Setting) -> str:
    one, two, three = s.theta
    folds = []
    for name in ("p", "q"):
        sums = ", ".join(f"SUM(c{i}) AS {name}{i}" for i in range(CONTINUOUS))
        folds.append(f"{{DUR <= {setting.duration} AND {s.primary}, {sums}}}")
    return _star(f"FILTER {{{three}}} (FILTER {{{two}}} (FILTER {{{one}}} (s) FOLD {folds[0]} s) FOLD {folds[1]} s)")


TEMPLATES: dict[str, Callable[[Steps, Setting], str]] = {
    "LinearStat": linear_stat,
    "LinearDyn": linear_dyn,
    "Filter": filtering,
    "NonDeterministic": nondeterministic,
    "NonDeterministicAgg": nondeterministic_agg,
}


def spines(template: str, count: int, setting: Setting | None = None) -> list[Spine]:
    """The same subscriptions, resolved. One text of the template goes through the language; in its plan the predicates
    of the others are put, each as a skeleton (which attributes) and its constants, so that 400,000 take seconds."""
    setting = setting or Setting()
    drawn = steps(count, setting)
    scoped = check_pattern(parse_body(TEMPLATES[template](drawn[0], setting)), Catalogue(streams={"s": SCHEMA}))  # type: ignore[arg-type]  # the templates are patterns
    assert scoped.spine is not None, [str(p) for p in scoped.problems]
    first = simplify(scoped.spine)
    known: dict[tuple[object, ...], Part] = {}
    return [_spine(template, first, s, setting, known) for s in drawn]


def _spine(template: str, first: Spine, s: Steps, setting: Setting, known: dict[tuple[object, ...], Part]) -> Spine:
    theta = [_step(known, s, k, rise=template == "LinearDyn" and k > 0) for k in range(3)]
    within: Node = TRUE
    made = []
    for k in (1, 2):
        if not template.startswith("Linear"):
            within = _within(known, s, k, setting.duration)
        made.append(replace(first.steps[k - 1], theta=within, after=theta[k]))
    return replace(first, start=replace(first.start, where=theta[0]), steps=tuple(made))


def _hole(number: int, kind: str) -> ast.Literal:
    return ast.Literal(ast.Hole(number, kind))


def _step(known: dict[tuple[object, ...], Part], s: Steps, k: int, *, rise: bool) -> Node:
    atoms = s.atoms[k]
    key = (k, rise, s.varying, *(name for name, _ in atoms))
    if key not in known:
        made: list[Node] = []
        for name, constants in atoms:
            held = ast.Attribute((f"#{k}", name))
            at = sum(isinstance(n, ast.Literal) for m in made for n in ast.walk(m))
            if len(constants) == 1:
                made.append(ast.Compare("=", held, _hole(at, "INT")))
            else:
                made.append(ast.Between(held, _hole(at, "FLOAT"), _hole(at + 1, "FLOAT")))
        if rise:
            base = ast.Arithmetic("*", ast.Literal(1.01), ast.Attribute(("#0", s.varying)))
            made.append(ast.Compare(">", ast.Attribute((f"#{k}", s.varying)), base))
        known[key] = part(ast.And(tuple(made)))
    return Parameterized(known[key].skeleton, tuple(c for _, constants in atoms for c in constants))


def _within(known: dict[tuple[object, ...], Part], s: Steps, k: int, duration: int) -> Node:
    name, constants = s.atoms[0][0]
    key = ("within", k, name)
    if key not in known:
        limit = ast.Compare("<=", ast.Attribute((DUR,)), ast.Literal(duration))
        known[key] = part(ast.And((limit, ast.Compare("=", ast.Attribute((f"#{k}", name)), _hole(0, "INT")))))
    return Parameterized(known[key].skeleton, constants)


def texts(template: str, count: int, setting: Setting | None = None) -> list[str]:
    setting = setting or Setting()
    return [TEMPLATES[template](s, setting) for s in steps(count, setting)]

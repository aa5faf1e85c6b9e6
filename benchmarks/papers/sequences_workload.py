"""The technical benchmark of the Cayuga paper (EDBT 2006, section 4.1): its stream and its five templates.

Eight attributes, four discrete of 100 values and four continuous, uniform. A step has two equalities and two ranges.
One attribute is primary: it occurs in all three steps with the same constant. Attributes and values are drawn by Zipf.

Guessed, because the paper does not say: ranges are two-sided and equally spaced (25 of them), the parameterised
predicate of LinearDyn asks for a rise of 1% over the first event, SUM is taken of all four continuous attributes, the
events are one tick apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Column, Columns
from headgate.schema import Schema, Type

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


def stream(events: int, seed: int = 1) -> Columns:
    draw = np.random.default_rng(seed)
    there = np.ones(events, np.bool_)
    columns = {
        (f"d{i}",): Column(Type.parse("bigint"), there, draw.integers(0, DOMAIN, events)) for i in range(DISCRETE)
    }
    columns |= {(f"c{i}",): Column(Type.parse("double"), there, draw.random(events)) for i in range(CONTINUOUS)}
    columns["at",] = Column(Type.parse("bigint"), there, np.arange(events, dtype=np.int64))
    return Columns("s", events, columns)


@dataclass(frozen=True)
class Steps:
    """What one subscription is made of: the predicate of each step, the primary predicate, a continuous attribute."""

    theta: tuple[str, str, str]
    primary: str
    varying: str


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
        main = f"d{primary[i]} = {constant[i]}"
        theta = []
        for k in range(3):
            first, other = ranged[k][0][i], ranged[k][1][i]
            low, high = lows[bounds[k][0][i]], lows[bounds[k][1][i]]
            ranges = [
                f"c{c} BETWEEN {start:.4f} AND {start + setting.selectivity:.4f}"
                for c, start in ((first, low), (other, high))
            ]
            theta.append(" AND ".join([main, f"d{seconds[k][i]} = {values[k][i]}", *ranges]))
        made.append(Steps((theta[0], theta[1], theta[2]), main, f"c{ranged[1][0][i]}"))
    return made


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


def texts(template: str, count: int, setting: Setting | None = None) -> list[str]:
    setting = setting or Setting()
    return [TEMPLATES[template](s, setting) for s in steps(count, setting)]

"""Thousands of decisions on small grids, each against brute force over all points."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from numpy.typing import NDArray

from headgate.covering import exact
from headgate.covering.decision import Decision, Procedure, decide
from headgate.covering.grid import Grid, Rows
from headgate.covering.portion import MISSING, NONE, Portion
from headgate.covering.space import Box, Dimension
from headgate.predicates import domain

EXACT = Procedure(budget=30.0)


class World:
    """A few attributes with few values, some of which can be missing, and random boxes over them."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.sizes = [int(n) for n in rng.integers(2, 7, rng.integers(1, 5))]
        self.dimensions = [
            Dimension(("attribute", i), domain.choice(n), bool(rng.random() < 0.4), (f"a{i}",))
            for i, n in enumerate(self.sizes)
        ]
        self.finite_sets = rng.random() < 0.5
        self.spread = rng.random()

    def box(self) -> Box:
        box: dict[Dimension, Portion] = {}
        for dimension, size in zip(self.dimensions, self.sizes, strict=True):
            if self.rng.random() < 0.3 * self.spread:
                continue
            portion = NONE
            if self.finite_sets and self.rng.random() < 0.5:
                values = np.flatnonzero(self.rng.random(size) < 0.3 + 0.6 * self.spread)
            else:
                low = int(self.rng.integers(0, size))
                values = np.arange(low, int(self.rng.integers(low, size)) + 1)
            for value in values:
                portion |= Portion(dimension.domain.compare("=", int(value)))
            if dimension.nullable and self.rng.random() < 0.5:
                portion |= MISSING
            if portion and not portion.full(dimension.nullable):
                box[dimension] = portion
        return box

    def mask(self, box: Box) -> NDArray[np.bool_]:
        """Which points of the grid a box holds; the last value of an axis is "missing" where there is that."""
        sides = []
        for dimension, size in zip(self.dimensions, self.sizes, strict=True):
            side = np.ones(size + dimension.nullable, np.bool_)
            if dimension in box:
                for value in range(size):
                    side[value] = bool(box[dimension] & Portion(dimension.domain.compare("=", value)))
                if dimension.nullable:
                    side[size] = box[dimension].missing
            sides.append(side)
        return reduce(np.multiply.outer, sides)

    def at(self, point: dict[str, object]) -> tuple[int, ...]:
        """A witness as an index of the grid; what it leaves open may be anything, so take the first."""
        values = [point.get(f"a{i}", 0) for i in range(len(self.sizes))]
        return tuple(n if v is None else int(str(v)) for v, n in zip(values, self.sizes, strict=True))


def check(world: World, procedure: Procedure) -> tuple[Decision, bool]:
    rng = world.rng
    rows = Rows(Grid())
    boxes = [world.box() for _ in range(int(rng.integers(0, 14)))]
    for box in boxes:
        rows.append(rows.grid.pieces(box))
    union = [world.box() for _ in range(int(rng.integers(1, 3)))]
    shape = world.mask({}).shape
    subject = reduce(np.logical_or, [world.mask(b) for b in union], np.zeros(shape, np.bool_))
    covered = reduce(np.logical_or, [world.mask(b) for b in boxes], np.zeros(shape, np.bool_))
    found = decide(rows, np.arange(rows.count), union, procedure)
    truth = not np.any(subject & ~covered)
    if found.covered and procedure.mode != "rspc":
        proof = reduce(np.logical_or, [world.mask(boxes[r]) for r in found.rows], np.zeros(shape, np.bool_))
        assert not np.any(subject & ~proof), "the rows named do not cover"
    if found.covered is False:
        at = world.at(rows.grid.event(found.point))
        assert subject[at], "the witness is outside of s"
        assert not covered[at], "the witness is covered"
    return found, truth


def run(count: int, seed: int, procedure: Procedure = EXACT) -> list[tuple[Decision, bool]]:
    rng = np.random.default_rng(seed)
    return [check(World(rng), procedure) for _ in range(count)]


def test_five_thousand_exact_decisions_agree_with_brute_force() -> None:
    found = run(5000, seed=1)
    assert all(decision.covered is truth for decision, truth in found)
    methods = {decision.method for decision, _ in found}
    assert {"apart", "pairwise", "corollary 3", "mcs", "search"} <= methods
    assert 500 < sum(truth for _, truth in found) < 4500


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(10, 20))
def test_a_hundred_thousand_exact_decisions_agree_with_brute_force(seed: int) -> None:
    assert all(decision.covered is truth for decision, truth in run(10_000, seed))


def test_sat_alone_agrees_with_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "search", lambda table, deadline: exact.UNKNOWN)
    found = run(600, seed=2)
    assert all(decision.covered is truth for decision, truth in found)
    assert "sat" in {decision.method for decision, _ in found}


@pytest.mark.parametrize("mode", ["mcs", "pairwise", "search"])
def test_the_cheaper_modes_are_never_wrong(mode: str) -> None:
    for decision, truth in run(1000, 3, Procedure(mode, budget=30.0)):
        assert decision.covered in (None, truth)


def test_rspc_says_no_only_with_a_witness_and_yes_within_its_bound() -> None:
    found = run(2000, 4, Procedure("rspc", error=0.05, trials=100_000))
    wrong = [decision for decision, truth in found if decision.covered and not truth]
    guessed = [decision for decision, truth in found if decision.method == "rspc" and not truth]
    assert all(decision.error <= 0.1 for decision, _ in found), "at most two boxes, each within the error asked for"
    assert all(truth is False for decision, truth in found if decision.covered is False)
    assert len(wrong) <= 0.05 * len(guessed) + 3 * (0.05 * len(guessed)) ** 0.5


def test_rspc_with_few_guesses_owns_up_to_its_error() -> None:
    assert any(d.covered and 0.0 < d.error < 1.0 for d, _ in run(300, 5, Procedure("rspc", trials=2)))

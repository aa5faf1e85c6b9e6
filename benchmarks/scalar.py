"""Scalar baselines: a dense program evaluated node by node for one event after the other, as the papers do it.

They read the very arrays that the engine reads. The rows are built by the engine and handed over as one byte a literal
and event, outside the clock, so a baseline is charged for its nodes and roots alone; the engine is timed both whole and
with its rows built beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks.baselines import eval_bdd, mv_eval_bdd
from headgate.columns import Columns
from headgate.filters.dense import Dense
from headgate.filters.engine import FilterIndex, _by_definition, _definition, _Slice
from headgate.filters.kernels import WIDTH, count_roots, run_program, set_masks
from headgate.filters.rows import Family, prepare, unpack

BLOCK = WIDTH * 64
UNDEFINED = 2
Bytes = NDArray[np.uint8]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """Up to BLOCK events: rows as words, attribute-set masks, and the support bits that some event defines."""

    events: int
    words: NDArray[np.uint64]
    masks: NDArray[np.uint64]
    some: Any

    def truths(self, rows: int) -> Bytes:
        """[event, row], one byte each; the scratch of the nodes is not in it."""
        bits = np.unpackbits(self.words.reshape(rows, WIDTH).view(np.uint8), axis=1, bitorder="little")
        return np.ascontiguousarray(bits[:, : self.events].T)

    def sets(self) -> Bytes:
        """[event, set]: whether the event defines all attributes of the set."""
        bits = np.unpackbits(self.masks.reshape(-1, WIDTH).view(np.uint8), axis=1, bitorder="little")
        return np.ascontiguousarray(bits[:, : self.events].T)


def only_dense(index: FilterIndex) -> Dense:
    """The one dense program of an index that has nothing else."""
    (dense,) = index.lanes.dense
    assert not index.lanes.sparse
    assert not len(dense.multiple)
    return dense


def blocks(index: FilterIndex, columns: Columns) -> Iterator[Block]:
    """The rows of a batch, block by block, as the engine builds them. At most one slice of events."""
    dense, part = only_dense(index), _Slice(index, columns)
    order, defined = _by_definition(dense, part)
    prepared = prepare(dense.rows, part.batch(order))
    for first in range(0, columns.rows, BLOCK):
        count = min(BLOCK, columns.rows - first)
        words = np.zeros(len(dense.rows) * WIDTH, np.uint64)
        prepared.write(first // 64, first // 64 + -(-count // 64), words, WIDTH, 1)
        words[:WIDTH] = ~np.uint64(0)
        known, some = _definition(defined, first, count)
        masks = np.empty((len(dense.set_first) - 1) * WIDTH, np.uint64)
        set_masks(dense.set_first, dense.set_paths, known[WIDTH:], known[:WIDTH], masks)
        yield Block(count, words, masks, some)


def undefined_rows(index: FilterIndex, columns: Columns) -> NDArray[np.bool_]:
    """[event, row], in the order of the blocks: whether a row's attribute is missing. Strict programs only."""
    dense, part = only_dense(index), _Slice(index, columns)
    order, _ = _by_definition(dense, part)
    families, attributes, _, _, _ = unpack(dense.rows.keys)
    assert (families <= Family.TEXT).all(), "rows of several attributes are not in this workload"
    missing = np.zeros((columns.rows, len(dense.rows)), np.bool_)
    for a in np.unique(attributes).tolist():
        there = part.column(index.lanes.lookup.paths[a]).defined
        at = np.flatnonzero(attributes == a) + dense.rows.offset
        missing[:, at] = ~there[order][:, None]
    return missing


def count_in_words(dense: Dense, batch: list[Block], slots: int) -> Counts:
    """The bit-parallel kernels alone: rows and masks are there already."""
    program, counts = dense.program, np.zeros(slots, np.int64)
    values = np.zeros((len(dense.rows) + len(program.nodes)) * WIDTH, np.uint64)
    for block in batch:
        values[: len(block.words)] = block.words
        run_program(program.nodes, program.groups, program.supports, block.some, len(dense.rows), values)
        count_roots(dense.single.first, dense.single.edges, dense.single.slots, block.masks, values, counts)
    return counts


def count_by_event(dense: Dense, truths: Bytes, sets: Bytes, slots: int, *, partial: bool = False) -> Counts:
    """EvalBDD for every event, or MVEvalBDD for events that may lack attributes, and the roots counted."""
    counts = np.zeros(slots, np.int64)
    values = np.zeros(len(dense.rows) + len(dense.program.nodes), np.uint8)
    roots = dense.single
    _each_event(dense.program.nodes, truths, sets, roots.first, roots.edges, roots.slots, partial, values, counts)
    return counts


@njit(cache=True)
def _each_event(
    nodes: Any, truths: Any, sets: Any, first: Any, edges: Any, slots: Any, partial: bool, values: Any, counts: Any
) -> None:
    rows = truths.shape[1]
    for e in range(truths.shape[0]):
        values[:rows] = truths[e]
        if partial:
            mv_eval_bdd(nodes, rows, values)
        else:
            eval_bdd(nodes, rows, values)
        for s in range(len(first) - 1):
            # A restricted BDD may lose an attribute of its text, so what is defined is asked of the set.
            if not sets[e, s]:
                continue
            for r in range(first[s], first[s + 1]):
                edge = edges[r]
                counts[slots[r]] += values[edge >> 1] ^ (edge & 1)

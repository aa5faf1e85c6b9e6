"""The interpreter of dynamic predicates: the stack machine, fed from runs and events, inside the kernels of sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from headgate.predicates.programs.kernels import (
    DIVIDE,
    END,
    FLOAT,
    INT,
    NULL,
    OWN,
    PUSH_FLOAT,
    PUSH_INT,
    PUSH_NULL,
    arithmetic,
    operate,
    order_of,
)
from headgate.sequences import tables
from headgate.sequences.tables import Ints

EVENT, BOUND, ITERATION, EVENT_DUR, BOUND_DUR, DUR, AGGREGATE, DECIDED = range(OWN, OWN + 8)


@njit(cache=True)
def mark(marks: Ints, stamp: int, slot: int) -> None:
    """Notes that the static predicate `slot` holds for the event `stamp`. What other events left behind is no entry, so
    that the table, a power of two long and at most half full, is never emptied."""
    entry = stamp << 32 | slot
    at = (slot * 0x9E3779B1 >> 12) & (len(marks) - 1)
    while marks[at] >> 32 == stamp and marks[at] != entry:
        at = (at + 1) & (len(marks) - 1)
    marks[at] = entry


@njit(cache=True)
def marked(marks: Ints, stamp: int, slot: int) -> bool:
    entry = stamp << 32 | slot
    at = (slot * 0x9E3779B1 >> 12) & (len(marks) - 1)
    while marks[at] >> 32 == stamp:
        if marks[at] == entry:
            return True
        at = (at + 1) & (len(marks) - 1)
    return False


@njit(cache=True)
def finished(function: int, row: Ints, cell: int, stack: Ints, at: int) -> None:
    """stack[at] := the value of an aggregate's cells."""
    stack[at, 0], stack[at, 1] = row[cell], row[cell + 1]
    if function == tables.SUM and row[cell + 3] == 0:
        stack[at, 0] = NULL
    elif function == tables.AVG:
        if row[cell + 3] == 0:
            stack[at, 0] = NULL
        else:
            stack[at + 1, 0], stack[at + 1, 1] = INT, row[cell + 3]
            arithmetic(DIVIDE, stack, at)
    elif function == tables.STDDEV:
        n = row[cell + 1]
        stack[at, 0] = NULL
        if n > 1:
            spread = row[cell + 5 : cell + 6].view(np.float64)[0]
            stack[at, 0] = FLOAT
            stack.view(np.float64)[at, 1] = np.sqrt(spread / (n - 1))


@njit(cache=True)
def _load(b: Any, handle: int, column: int, is_float: int, stack: Ints, at: int) -> None:
    if b.defined[handle, column] == 0:
        stack[at, 0] = NULL
    else:
        stack[at, 0] = FLOAT if is_float == 1 else INT
        stack[at, 1] = b.cells[handle, column]


@njit(cache=True)
def execute(
    code: Ints,
    pc: int,
    rows: Ints,
    r: int,
    work: Ints,
    b: Any,
    e: int,
    now: int,
    marks: Ints,
    stamp: int,
    stack: Ints,
    cells_at: int,
) -> int:
    """Runs the program at `pc`. Its value is left at the bottom of the stack; 1 is returned if it is TRUE.

    `rows[r]` is the run as it is, `work` the run as it will be: aggregates after this iteration are read there.
    """
    top = 0
    while True:
        op, a, x, y, z = code[pc, 0], code[pc, 1], code[pc, 2], code[pc, 3], code[pc, 4]
        pc += 1
        if op == END:
            break
        if op == EVENT:
            _load(b, e, a, x, stack, top)
            top += 1
        elif op == BOUND:
            _load(b, rows[r, tables.HANDLES + a], x, y, stack, top)
            top += 1
        elif op == PUSH_INT:
            stack[top, 0], stack[top, 1] = INT, a
            top += 1
        elif op == PUSH_FLOAT:
            stack[top, 0], stack[top, 1] = FLOAT, a
            top += 1
        elif op == PUSH_NULL:
            stack[top, 0] = NULL
            top += 1
        elif op == ITERATION:
            handle = rows[r, tables.HANDLES + a]
            if handle >= 0:
                _load(b, handle, x, y, stack, top)
                top += 1
                pc += z
        elif op == DUR:
            stack[top, 0], stack[top, 1] = INT, now - rows[r, tables.T0] + 1
            top += 1
        elif op == EVENT_DUR:
            stack[top, 0], stack[top, 1] = INT, b.t1[e] - b.t0[e] + 1
            top += 1
        elif op == BOUND_DUR:
            handle = rows[r, tables.HANDLES + a]
            stack[top, 0], stack[top, 1] = INT, b.t1[handle] - b.t0[handle] + 1
            top += 1
        elif op == AGGREGATE:
            if y == 1:
                finished(x, work, cells_at + a, stack, top)
            else:
                finished(x, rows[r], cells_at + a, stack, top)
            top += 1
        elif op == DECIDED:
            stack[top, 0], stack[top, 1] = NULL, 0
            if marked(marks, stamp, a):
                stack[top, 0], stack[top, 1] = INT, 1
            elif marked(marks, stamp, x):
                stack[top, 0] = INT
            top += 1
        else:
            top = operate(op, a, stack, top)
    return int(stack[0, 0] == INT and stack[0, 1] != 0)


@njit(cache=True)
def holds(
    code: Ints,
    pc: int,
    rows: Ints,
    r: int,
    work: Ints,
    b: Any,
    e: int,
    now: int,
    m: Ints,
    stamp: int,
    stack: Ints,
    at: int,
) -> bool:
    """Is the predicate at `pc` TRUE? There is none at -1."""
    return pc < 0 or execute(code, pc, rows, r, work, b, e, now, m, stamp, stack, at) == 1


@njit(cache=True)
def begin(accs: Ints, a: int, row: Ints) -> None:
    """An empty state; COUNT(*), which has no operand, is 1 at S1."""
    c = accs[a, tables.ACC_CELL]
    function = accs[a, tables.ACC_FUNCTION]
    row[c], row[c + 1] = NULL, 0
    if function == tables.COUNT:
        row[c], row[c + 1] = INT, 1 if accs[a, tables.ACC_OPERAND] < 0 else 0
    elif function in (tables.SUM, tables.AVG):
        row[c], row[c + 1], row[c + 2], row[c + 3] = INT, 0, INT, 0
    elif function == tables.STDDEV:
        row[c], row[c + 1], row[c + 2], row[c + 3], row[c + 4], row[c + 5] = INT, 0, FLOAT, 0, FLOAT, 0


@njit(cache=True)
def accumulate(accs: Ints, a: int, row: Ints, stack: Ints) -> None:
    """Takes the operand from the bottom of the stack into the cells of an aggregate."""
    c = accs[a, tables.ACC_CELL]
    function = accs[a, tables.ACC_FUNCTION]
    tag, value = stack[0, 0], stack[0, 1]
    if function == tables.RECURRENCE:
        row[c], row[c + 1] = tag, _same(tag, value, stack)
        return
    if function == tables.COUNT:
        if accs[a, tables.ACC_OPERAND] < 0 or tag != NULL:
            row[c + 1] += 1
        return
    if tag == NULL:
        return
    real = np.float64(value) if tag == INT else stack[0:1, 1].view(np.float64)[0]
    if function in (tables.SUM, tables.AVG):
        row[c + 3] += 1
        if row[c] == NULL:
            return
        if row[c] == INT and tag == INT:
            total = row[c + 1] + value
            if ((row[c + 1] ^ total) & (value ^ total)) < 0:
                row[c], row[c + 1] = NULL, 0
            else:
                row[c + 1] = total
            return
        known = np.float64(row[c + 1]) if row[c] == INT else row[c + 1 : c + 2].view(np.float64)[0]
        row[c] = FLOAT
        put(row, c + 1, known + real)
    elif function == tables.STDDEV:
        row[c + 1] += 1
        n = row[c + 1]
        mean = row[c + 3 : c + 4].view(np.float64)[0]
        spread = row[c + 5 : c + 6].view(np.float64)[0]
        delta = real - mean
        mean = mean + delta / n
        put(row, c + 3, mean)
        put(row, c + 5, spread + delta * (real - mean))
    elif function == tables.LAST or row[c] == NULL:
        row[c], row[c + 1] = tag, _same(tag, value, stack)
    elif function in (tables.MIN, tables.MAX):
        stack[1, 0], stack[1, 1] = row[c], row[c + 1]
        order = order_of(stack, 0, 1)
        if (function == tables.MIN and order < 0) or (function == tables.MAX and order > 0):
            row[c], row[c + 1] = tag, _same(tag, value, stack)


@njit(cache=True)
def _same(tag: int, value: int, stack: Ints) -> int:
    """The bits of the value at the bottom of the stack, such that equal values, and missing ones, have equal bits."""
    if tag == INT:
        return value
    if tag == NULL:
        return 0
    real = stack[0:1, 1].view(np.float64)[0]
    if real != real:
        return 0x7FF8000000000000
    return 0 if real == 0.0 else value


@njit(cache=True)
def put(row: Ints, at: int, value: float) -> None:
    """A DOUBLE as bits: one zero and one NaN, so that equal values are equal cells."""
    if value == 0.0:
        value = 0.0
    if value != value:
        value = np.nan
    row[at : at + 1].view(np.float64)[0] = value

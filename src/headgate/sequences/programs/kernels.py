"""The interpreter of dynamic predicates: a small stack machine inside the kernels.

A value is a tag and 64 bits: BIGINT, TIMESTAMP, BOOLEAN and the code of a text are INT, a DOUBLE is FLOAT, a missing
value NULL. Truth is 1, 0, or NULL for UNKNOWN. `predicates/values.py` says what the operations mean and is the twin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from headgate.sequences.tables import (
    ACC_CELL,
    ACC_FUNCTION,
    ACC_OPERAND,
    AVG,
    COUNT,
    HANDLES,
    LAST,
    MAX,
    MIN,
    RECURRENCE,
    STDDEV,
    SUM,
    T0,
    Ints,
)

NULL, INT, FLOAT = 0, 1, 2
STACK = 64
STRIDE = 5
"""An instruction: its code and four operands."""

END, PUSH_INT, PUSH_FLOAT, PUSH_NULL, EVENT, BOUND, ITERATION, EVENT_DUR, BOUND_DUR, DUR, AGGREGATE = range(11)
ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, NEGATE, ABSOLUTE = range(20, 27)
EQ, NE, LT, LE, GT, GE = range(30, 36)
AND, OR, NOT, IS_NULL, DECIDED = range(40, 45)


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
def order_of(stack: Ints, i: int, j: int) -> int:
    """The order of two values that are there: NaN is above all and equals NaN; BIGINT against DOUBLE is exact."""
    reals = stack.view(np.float64)
    if stack[i, 0] == INT and stack[j, 0] == INT:
        a, b = stack[i, 1], stack[j, 1]
        return -1 if a < b else (1 if a > b else 0)
    if stack[i, 0] == FLOAT and stack[j, 0] == FLOAT:
        x, y = reals[i, 1], reals[j, 1]
        if x != x or y != y:
            return int(x != x) - int(y != y)
        return -1 if x < y else (1 if x > y else 0)
    if stack[i, 0] == FLOAT:
        return -order_of_mixed(stack[j, 1], reals[i, 1])
    return order_of_mixed(stack[i, 1], reals[j, 1])


@njit(cache=True)
def order_of_mixed(whole: int, real: float) -> int:
    if real != real or real >= 9223372036854775808.0:
        return -1
    if real < -9223372036854775808.0:
        return 1
    cut = np.int64(real)
    if whole != cut:
        return -1 if whole < cut else 1
    rest = real - np.float64(cut)
    return -1 if rest > 0 else (1 if rest < 0 else 0)


@njit(cache=True)
def arithmetic(op: int, stack: Ints, at: int) -> None:
    """stack[at] := stack[at] op stack[at + 1]."""
    reals = stack.view(np.float64)
    a_tag, b_tag = stack[at, 0], stack[at + 1, 0]
    if a_tag == NULL or b_tag == NULL:
        stack[at, 0] = NULL
        return
    if a_tag == INT and b_tag == INT and op != DIVIDE:
        a, b = stack[at, 1], stack[at + 1, 1]
        if op == ADD:
            r = a + b
            bad = ((a ^ r) & (b ^ r)) < 0
        elif op == SUBTRACT:
            r = a - b
            bad = ((a ^ b) & (a ^ r)) < 0
        elif op == MULTIPLY:
            r = a * b
            bad = a != 0 and ((a == -1 and b == np.int64(-9223372036854775808)) or (a != -1 and r // a != b))
        else:
            bad = b == 0
            r = np.int64(0)
            if not bad and b != -1 and b != 1:
                r = a % b
                if r != 0 and (r < 0) != (a < 0):
                    r -= b
        stack[at, 0] = NULL if bad else INT
        stack[at, 1] = r
        return
    x = np.float64(stack[at, 1]) if a_tag == INT else reals[at, 1]
    y = np.float64(stack[at + 1, 1]) if b_tag == INT else reals[at + 1, 1]
    stack[at, 0] = FLOAT
    if op == ADD:
        reals[at, 1] = x + y
    elif op == SUBTRACT:
        reals[at, 1] = x - y
    elif op == MULTIPLY:
        reals[at, 1] = x * y
    elif y == 0.0:
        stack[at, 0] = NULL
    elif op == DIVIDE:
        reals[at, 1] = x / y
    elif np.isinf(x) or x != x or y != y:
        reals[at, 1] = np.nan
    else:
        reals[at, 1] = np.fmod(x, y)


@njit(cache=True)
def finished(function: int, row: Ints, cell: int, stack: Ints, at: int) -> None:
    """stack[at] := the value of an aggregate's cells."""
    stack[at, 0], stack[at, 1] = row[cell], row[cell + 1]
    if function == SUM and row[cell + 3] == 0:
        stack[at, 0] = NULL
    elif function == AVG:
        if row[cell + 3] == 0:
            stack[at, 0] = NULL
        else:
            stack[at + 1, 0], stack[at + 1, 1] = INT, row[cell + 3]
            arithmetic(DIVIDE, stack, at)
    elif function == STDDEV:
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
            _load(b, rows[r, HANDLES + a], x, y, stack, top)
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
            handle = rows[r, HANDLES + a]
            if handle >= 0:
                _load(b, handle, x, y, stack, top)
                top += 1
                pc += z
        elif op == DUR:
            stack[top, 0], stack[top, 1] = INT, now - rows[r, T0] + 1
            top += 1
        elif op == EVENT_DUR:
            stack[top, 0], stack[top, 1] = INT, b.t1[e] - b.t0[e] + 1
            top += 1
        elif op == BOUND_DUR:
            handle = rows[r, HANDLES + a]
            stack[top, 0], stack[top, 1] = INT, b.t1[handle] - b.t0[handle] + 1
            top += 1
        elif op == AGGREGATE:
            if y == 1:
                finished(x, work, cells_at + a, stack, top)
            else:
                finished(x, rows[r], cells_at + a, stack, top)
            top += 1
        elif ADD <= op <= MODULO:
            top -= 1
            arithmetic(op, stack, top - 1)
        elif EQ <= op <= GE:
            top -= 1
            if stack[top - 1, 0] == NULL or stack[top, 0] == NULL:
                stack[top - 1, 0] = NULL
            else:
                order = order_of(stack, top - 1, top)
                holds = (
                    (op == EQ and order == 0)
                    or (op == NE and order != 0)
                    or (op == LT and order < 0)
                    or (op == LE and order <= 0)
                    or (op == GT and order > 0)
                    or (op == GE and order >= 0)
                )
                stack[top - 1, 0], stack[top - 1, 1] = INT, np.int64(holds)
        elif op in (AND, OR):
            decisive = 0 if op == AND else 1
            top -= a
            tag, truth = INT, 1 - decisive
            for i in range(top, top + a):
                if stack[i, 0] == NULL:
                    if truth != decisive:
                        tag = NULL
                elif (stack[i, 1] != 0) == (decisive == 1):
                    tag, truth = INT, decisive
            stack[top, 0], stack[top, 1] = tag, truth
            top += 1
        elif op == NOT:
            stack[top - 1, 1] = np.int64(stack[top - 1, 1] == 0)
        elif op == IS_NULL:
            missing = stack[top - 1, 0] == NULL
            stack[top - 1, 0], stack[top - 1, 1] = INT, np.int64(missing)
        elif op == DECIDED:
            stack[top, 0], stack[top, 1] = NULL, 0
            if marked(marks, stamp, a):
                stack[top, 0], stack[top, 1] = INT, 1
            elif marked(marks, stamp, x):
                stack[top, 0] = INT
            top += 1
        elif op in (NEGATE, ABSOLUTE):
            i = top - 1
            if stack[i, 0] == INT:
                if op == NEGATE or stack[i, 1] < 0:
                    if stack[i, 1] == np.int64(-9223372036854775808):
                        stack[i, 0] = NULL
                    stack[i, 1] = -stack[i, 1]
            elif stack[i, 0] == FLOAT:
                reals = stack.view(np.float64)
                if op == NEGATE or reals[i, 1] < 0:
                    reals[i, 1] = -reals[i, 1]
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
    c = accs[a, ACC_CELL]
    function = accs[a, ACC_FUNCTION]
    row[c], row[c + 1] = NULL, 0
    if function == COUNT:
        row[c], row[c + 1] = INT, 1 if accs[a, ACC_OPERAND] < 0 else 0
    elif function in (SUM, AVG):
        row[c], row[c + 1], row[c + 2], row[c + 3] = INT, 0, INT, 0
    elif function == STDDEV:
        row[c], row[c + 1], row[c + 2], row[c + 3], row[c + 4], row[c + 5] = INT, 0, FLOAT, 0, FLOAT, 0


@njit(cache=True)
def accumulate(accs: Ints, a: int, row: Ints, stack: Ints) -> None:
    """Takes the operand from the bottom of the stack into the cells of an aggregate."""
    c = accs[a, ACC_CELL]
    function = accs[a, ACC_FUNCTION]
    tag, value = stack[0, 0], stack[0, 1]
    if function == RECURRENCE:
        row[c], row[c + 1] = tag, _same(tag, value, stack)
        return
    if function == COUNT:
        if accs[a, ACC_OPERAND] < 0 or tag != NULL:
            row[c + 1] += 1
        return
    if tag == NULL:
        return
    real = np.float64(value) if tag == INT else stack[0:1, 1].view(np.float64)[0]
    if function in (SUM, AVG):
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
    elif function == STDDEV:
        row[c + 1] += 1
        n = row[c + 1]
        mean = row[c + 3 : c + 4].view(np.float64)[0]
        spread = row[c + 5 : c + 6].view(np.float64)[0]
        delta = real - mean
        mean = mean + delta / n
        put(row, c + 3, mean)
        put(row, c + 5, spread + delta * (real - mean))
    elif function == LAST or row[c] == NULL:
        row[c], row[c + 1] = tag, _same(tag, value, stack)
    elif function in (MIN, MAX):
        stack[1, 0], stack[1, 1] = row[c], row[c + 1]
        order = order_of(stack, 0, 1)
        if (function == MIN and order < 0) or (function == MAX and order > 0):
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

"""The stack machine: what arithmetic, comparison and logic do to its stack.

A value is a tag and 64 bits: BIGINT, TIMESTAMP, BOOLEAN and the code of a text are INT, a DOUBLE is FLOAT, a missing
value NULL. Truth is 1, 0, or NULL for UNKNOWN. `predicates/values.py` says what the operations mean and is the twin. How
values get onto the stack is the business of the engine that runs the program: its instructions have codes below ADD.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]

NULL, INT, FLOAT = 0, 1, 2
STACK = 64

END, PUSH_INT, PUSH_FLOAT, PUSH_NULL, OWN = range(5)
"""OWN is the first code that an engine may use for its own instructions."""
ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, NEGATE, ABSOLUTE = range(20, 27)
EQ, NE, LT, LE, GT, GE = range(30, 36)
AND, OR, NOT, IS_NULL = range(40, 44)


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
def operate(op: int, count: int, stack: Ints, top: int) -> int:
    """Does an instruction from ADD on; `count` is how many truths AND and OR take. The new top is returned."""
    if ADD <= op <= MODULO:
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
        top -= count
        tag, truth = INT, 1 - decisive
        for i in range(top, top + count):
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
    return top

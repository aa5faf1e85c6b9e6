"""How operators reach another process: by import name where they have one, by value where they do not.

A module's operator is named, because the worker has the module and its version should win. One that was defined in a
notebook, in `__main__` or inside a function exists nowhere else and is sent by value with cloudpickle.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from headgate.errors import EnvironmentProblem, UsageError
from headgate.operators.registry import Operator

Ticket = tuple[str, str, bytes]
"""(operator's name, "module:attribute", b"") by name, or (operator's name, "", bytes) by value."""


def pack(operators: Iterable[Operator]) -> bytes:
    """The operators as bytes."""
    tickets: list[Ticket] = []
    for operator in operators:
        reference = reference_of(operator)
        tickets.append((operator.name, reference, b"" if reference else _by_value(operator)))
    return pickle.dumps(tickets)


def unpack(packed: bytes) -> list[Operator]:
    """The operators that `pack` sent. The bytes hold code: take them only from where plans come from."""
    return [fetch(*ticket) for ticket in pickle.loads(packed)]  # noqa: S301 - a plan ships the user's own code


def reference_of(operator: Operator) -> str:
    """`module:attribute` if that really leads back to this operator, else nothing."""
    module = getattr(operator.function, "__module__", None)
    path = getattr(operator.function, "__qualname__", "")
    if module in (None, "__main__") or "<" in path:
        return ""
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return f"{module}:{path}" if found is operator or found == operator else ""


def _by_value(operator: Operator) -> bytes:
    try:
        pickler: Any = import_module("cloudpickle")
    except ImportError:
        try:
            pickler = import_module("pyspark.cloudpickle")
        except ImportError:
            raise EnvironmentProblem(
                f"operator {operator.name} was defined in a notebook or a function and must travel by value",
                "install cloudpickle, or put the operator into a module that the workers can import",
            ) from None
    try:
        sent: bytes = pickler.dumps(operator)
    except (TypeError, ValueError, pickle.PicklingError, AttributeError) as problem:
        raise UsageError(
            f"operator {operator.name} cannot travel: {problem}",
            "open files, connections and models inside the operator, or put it into a module",
        ) from problem
    return sent


def fetch(name: str, reference: str, value: bytes = b"") -> Operator:
    """The operator that a ticket stands for."""
    if not reference:
        found: Any = pickle.loads(value)  # noqa: S301 - a plan ships the user's own code
    else:
        module, _, path = reference.partition(":")
        try:
            found = import_module(module)
            for part in path.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError) as problem:
            raise EnvironmentProblem(
                f"operator {name} is {reference} where the plan was made, and cannot be imported here: {problem}",
                "install its package on this machine",
            ) from problem
    if not isinstance(found, Operator):
        raise EnvironmentProblem(f"{reference or name} is {type(found).__name__} here, not an operator")
    return found

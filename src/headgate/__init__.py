"""Headgate: expressive publish/subscribe on Spark.

The names below are loaded when they are first used. `headgate --help` and a bad command line then answer at once, and
do not wait for the compiler of the kernels to load.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headgate.covering.cover import Cover, cover
    from headgate.covering.imprecise import Range
    from headgate.errors import (
        EnvironmentProblem,
        EventError,
        HeadgateError,
        LanguageError,
        LanguageErrors,
        PlanError,
        SchemaError,
        UsageError,
    )
    from headgate.explain import Explanation
    from headgate.operators import VAR, operator
    from headgate.plan import Plan
    from headgate.subscriptions import Subscriptions

__all__ = [
    "VAR",
    "Cover",
    "EnvironmentProblem",
    "EventError",
    "Explanation",
    "HeadgateError",
    "LanguageError",
    "LanguageErrors",
    "Plan",
    "PlanError",
    "Range",
    "SchemaError",
    "Subscriptions",
    "UsageError",
    "cover",
    "operator",
]

_ELSEWHERE = {
    "VAR": "headgate.operators",
    "Cover": "headgate.covering.cover",
    "cover": "headgate.covering.cover",
    "operator": "headgate.operators",
    "Explanation": "headgate.explain",
    "Plan": "headgate.plan",
    "Range": "headgate.covering.imprecise",
    "Subscriptions": "headgate.subscriptions",
}
"""The module of each name; the others are errors."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'headgate' has no attribute {name!r}")
    value = getattr(import_module(_ELSEWHERE.get(name, "headgate.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

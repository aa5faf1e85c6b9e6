"""Headgate: expressive publish/subscribe on Spark."""

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
from headgate.plan import Plan
from headgate.subscriptions import Subscriptions

__all__ = [
    "EnvironmentProblem",
    "EventError",
    "HeadgateError",
    "LanguageError",
    "LanguageErrors",
    "Plan",
    "PlanError",
    "SchemaError",
    "Subscriptions",
    "UsageError",
]

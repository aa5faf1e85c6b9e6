"""Operators: subscriptions over arbitrary, expensive user code, evaluated as seldom as can be (DEBS 2007)."""

from headgate.operators.registry import VAR, Operator, Registry, operator

__all__ = ["VAR", "Operator", "Registry", "operator"]

"""The compiled book: immutable, fingerprinted, mappable; a base segment and small delta segments."""

from headgate.plan.compiled import Plan
from headgate.plan.segment import Entry

__all__ = ["Entry", "Plan"]

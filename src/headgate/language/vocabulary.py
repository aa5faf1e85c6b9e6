"""The names that a text calls like functions, with how many arguments each takes.

Anything else that is called is an operator. What the functions mean stands in `predicates.functions`.
"""

from __future__ import annotations

FUNCTIONS = {"LOWER": 1, "UPPER": 1, "LENGTH": 1, "ABS": 1}
AGGREGATES = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST", "STDDEV", "COLLECT"})

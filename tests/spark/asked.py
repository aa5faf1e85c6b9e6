"""An operator that workers find by its name, in this module."""

from __future__ import annotations

from typing import Any

import headgate as hg


@hg.operator(cost=2.0)
def near(event: Any, low: float, high: float) -> bool:
    price = event["price"]
    return price is not None and low <= price < high

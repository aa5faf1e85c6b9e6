"""Operators of installed packages in a broker: one that ends its process does not end the broker."""

from __future__ import annotations

import os
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from tests.broker.running import running, until

import headgate as hg
from headgate.operators import registry


@hg.operator(needs=["vol"])
def deadly(event: Any) -> bool:
    if event["vol"] == 2:
        os._exit(1)
    return True


def test_an_operator_that_ends_its_process_costs_a_broker_one_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = EntryPoint("deadly", f"{__name__}:deadly", "headgate.operators")
    monkeypatch.setitem(sys.modules, __name__, sys.modules[deadly.function.__module__])
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry] if group == "headgate.operators" else [])
    with running(tmp_path) as made, made.client() as client:
        client.declare("stock", {"vol": "bigint"})
        mine = client.subscribe("deadly()", stream="stock")
        first, last = client.publish("stock", [{"vol": 1}, {"vol": 2}, {"vol": 3}])
        notes = until(lambda: found if len(found := client.pull(mine.id, mine.ticket)) == 2 else None, "matches") or []
        assert sorted(int(n["event"]) for n in notes) == [first, last]
        (problem,) = until(lambda: made.broker.store.logs.errors(), "the problem")
        assert (problem.event, problem.reason) == (str(first + 1), "the process of deadly died")

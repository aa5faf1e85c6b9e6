"""rule-engine and json-logic as peers: they judge one rule at a time, so an event is asked of each in turn.

`python -m benchmarks.peers.rule_lists SYSTEM FOLDER`, SYSTEM one of `rule-engine` and `json-logic`. Only the first events
are asked, because a thousand rules take them milliseconds an event.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from benchmarks.peers.answers import answer

EVENTS = 100
Judge = Callable[[Any], bool]


class RuleList:
    def __init__(self, system: str, folder: Path) -> None:
        lines = (folder / f"rules-{system}.jsonl").read_text("utf-8").splitlines()
        self.rules = [json.loads(line) for line in lines]
        self.lines = (folder / "events.jsonl").read_bytes().splitlines()[:EVENTS]
        self.make = {"rule-engine": by_rule_engine, "json-logic": by_json_logic}[system]
        self.judges: list[Judge] = []

    @property
    def events(self) -> int:
        return len(self.lines)

    def build(self) -> int:
        self.judges = self.make(self.rules)
        return len(self.judges)

    def _found(self) -> Iterator[list[int]]:
        for line in self.lines:
            event = orjson.loads(line)
            yield [i for i, judge in enumerate(self.judges) if judge(event)]

    def run(self, times: int) -> int:
        return sum(len(found) for _ in range(times) for found in self._found())

    def matches(self) -> list[list[int]]:
        return list(self._found())


def by_rule_engine(rules: list[str]) -> list[Judge]:
    import rule_engine

    def resolve(event: Any, name: str) -> Any:
        # A name of the engine has no dash; the only one in the workloads that does is this.
        return event.get("detail-type" if name == "detail_type" else name)

    context = rule_engine.Context(resolver=resolve, default_value=None)
    return [rule_engine.Rule(text, context=context).matches for text in rules]


def by_json_logic(rules: list[Any]) -> list[Judge]:
    from json_logic import jsonLogic

    def judge(rule: Any) -> Judge:
        return lambda event: bool(jsonLogic(rule, event))

    return [judge(rule) for rule in rules]


if __name__ == "__main__":
    answer(RuleList(sys.argv[1], Path(sys.argv[2])))

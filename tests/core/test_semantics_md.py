"""docs/semantics.md tells the truth: its `truth` rows by the oracle and by a plan, its `matches` blocks by a plan.

Programs on the page are run with those of the other pages, in `tests/test_docs.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import headgate as hg
from headgate.events import decode
from headgate.language.parser import parse_body
from headgate.oracle.filters import truth
from headgate.predicates.modes import MODES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "semantics.md").read_text("utf-8")
TRUTHS = {"TRUE": True, "FALSE": False, "UNKNOWN": None}


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@hg.operator
def near(event: Any, place: str, km: Any) -> Any:
    return [(7,), (3,)]


@hg.operator
def broken(event: Any, n: int) -> bool:
    if n == 1:
        raise ValueError("no picture")
    return True


def rows() -> Iterator[tuple[str, str, str, str]]:
    for block in blocks("truth"):
        for line in block.splitlines():
            condition, event, mode, value = (cell.strip() for cell in line.split(" | "))
            yield condition, event, mode, value


@pytest.mark.parametrize(("condition", "event", "mode", "value"), list(rows()))
def test_a_condition_has_the_truth_that_the_page_says(condition: str, event: str, mode: str, value: str) -> None:
    book = hg.Subscriptions().extend(blocks("headgate")[0]).add("q", condition, missing=mode)
    given = [{"name": "IBM", **json.loads(event)}]
    schema = book.streams["quote"]
    row = decode(given, schema).columns.row(0)
    assert truth(parse_body(condition), row, schema, mode) is TRUTHS[value]
    assert book.compile().match(given).num_rows == (value == "TRUE")


@dataclass
class Example:
    """A `matches` block, taken apart."""

    script: str = ""
    text: str = ""
    missing: str = "null"
    events: list[Any] = field(default_factory=list)
    outcome: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, block: str) -> Example:
        made = cls()
        for line in block.splitlines():
            if line.startswith(("CREATE", "PREFIX")):
                made.script += line + "\n"
            elif line.startswith("missing: "):
                made.missing = line.removeprefix("missing: ")
            elif line.startswith("{"):
                made.events.append(json.loads(line))
            elif line.startswith("-> "):
                made.outcome.append(line.removeprefix("-> "))
            else:
                made.text += line
        return made


@pytest.mark.parametrize("block", blocks("matches"))
def test_a_subscription_matches_what_the_page_says(block: str) -> None:
    example = Example.of(block)
    book = hg.Subscriptions(operators=[near, broken]).extend(example.script)
    book.add("q", example.text, missing=example.missing)
    matches, errors = book.compile().match(example.events, errors="collect")
    found = sorted((m["event"], m["output"] or "") for m in matches.to_pylist())
    shown = [f"{event} {output}".strip() for event, output in found]
    assert shown + [f"error {e['event']} {e['code']}" for e in errors.to_pylist()] == example.outcome


def test_the_page_has_examples_of_every_family_and_mode() -> None:
    assert len(list(rows())) >= 35
    examples = [Example.of(block) for block in blocks("matches")]
    assert {mode for _, _, mode, _ in rows()} | {e.missing for e in examples} == set(MODES)
    texts = [e.text for e in examples]
    for word in ("near(", "GRAPH", "NEXT", "FOLD", "ABSENT"):
        assert any(word in text for text in texts), word


def test_every_comment_that_cites_the_page_cites_a_section_of_it() -> None:
    sections = set(re.findall(r"^## (\d+)\. ", PAGE, re.MULTILINE))
    headings = set(re.findall(r"^#+ (?:\d+\. )?(.*)$", PAGE, re.MULTILINE))
    cited = 0
    for path in (*ROOT.joinpath("src").rglob("*.py"), *ROOT.joinpath("tests").rglob("*.py")):
        text = " ".join(path.read_text("utf-8").split())
        for place in re.findall(r"docs/semantics\.md, (?:section[^);:.]*|\"[^\"]*\")", text):
            cited += 1
            assert set(re.findall(r"\d", place)) <= sections, (path, place)
            assert set(re.findall(r"\"([^\"]*)\"", place)) <= headings, (path, place)
    assert cited > 20

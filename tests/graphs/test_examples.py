"""The examples print what they promise."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "graphs"


@pytest.fixture
def main() -> Any:
    return runpy.run_path(str(EXAMPLES / "run.py"))["main"]


def test_the_auction_finds_computers_by_class_and_numbers_by_sub_property(
    main: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    main("auction")
    printed = capsys.readouterr().out
    assert "event 1: cheap_computer {'3': 350}" in printed
    assert "event 0: caller {'name': 'Jinling Wang'}" in printed
    assert "event 0: one_maker {'name': 'IBM'}" in printed
    assert "event 4: refused, the graph has no home vertex" in printed
    assert "450.00 < 400.0 is not true" in printed


def test_offers_as_json_match_by_what_their_words_mean(main: Any, capsys: pytest.CaptureFixture[str]) -> None:
    main("offers")
    printed = capsys.readouterr().out
    assert "event 1: electronics_in_stock {'name': 'Fairphone 5', 'price': 499.0}" in printed
    assert "event 2: computer_from_a_merchant {'sku': 'x3', 'stars': 4.9}" in printed
    assert "event 3: branded" not in printed
    assert "event 3: any_product {'name': 'Dune'}" in printed

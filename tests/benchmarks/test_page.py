"""The page of results is made of rows, and the README's table is cut from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import everything, page
from benchmarks.measure import Differ
from benchmarks.peers import matchers

ROOT = Path(__file__).parents[2]
ROWS: page.Rows = {
    "peers-bridge": [
        {"machine": {"processor": "a chip", "cores": 2, "memory_gib": 8, "python": "3.11.0", "day": "2026-01-01", "load": 0.1}},
        {"table": "bridge", "x": 5, "system": "headgate", "us_an_event": 8.3, "least_us": 8.0, "most_us": 9.0, "build_s": 0.7,
         "peak_mib": 200, "matches": 3},
        {"table": "bridge", "x": 5, "system": "headgate-single", "us_an_event": 900.0, "least_us": 800.0, "most_us": 950.0,
         "build_s": 0.7, "peak_mib": 200, "matches": 3},
        {"table": "bridge", "x": 5, "system": "quamina", "us_an_event": 2.9, "least_us": 2.8, "most_us": 3.0, "build_s": 0.1,
         "peak_mib": 8, "matches": 3},
        {"table": "bridge", "x": 5, "system": "a-tree", "why": "cannot: flat attributes only"},
    ],
    "filters": [
        {"table": "nodes", "queries": 25000, "nodes": 180226, "paper_nodes": 190000},
        {"must": "times EvalBDD", "value": 28.4, "at_least": 20, "holds": True},
    ],
}  # fmt: skip


def test_the_page_has_the_figures_the_spread_and_the_reason_of_who_cannot() -> None:
    text = page.page(ROWS, "small")
    assert "| 5 | 8.3 (8.0 to 9.0) | 900 (800 to 950) | 2.9 (2.8 to 3.0) | note 1 |" in text
    assert "1. a-tree 0.6.1: cannot: flat attributes only" in text
    assert "a chip, 2 cores, 8 GiB" in text
    assert "| times EvalBDD | 28.4 | 20 | yes |" in text


def test_the_page_says_where_a_peer_is_faster() -> None:
    text = page.page(ROWS, "small")
    below = text.partition("## Where a peer is faster")[2].partition("## Side by side")[0]
    assert "| quamina 1.4.0 | batches of 1,024 |" in below and "| 2.9 |" in below
    assert "| quamina 1.4.0 | one event a call |" in below
    assert "**2.9 times slower**" in page.cut(text)


def test_the_page_names_the_parts_that_were_not_run() -> None:
    assert "Not run this time: peers-ranges, peers-events, " in page.page(ROWS, "small")


def test_a_picture_is_shown_with_the_part_that_drew_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("filters", "filters-million", "covering_figure_4", "covering_figure_10"):
        (tmp_path / f"{name}.png").touch()
    monkeypatch.setattr(page, "FIGURES", tmp_path)
    assert list(page.shown("filters")) == ["![filters](figures/filters.png)\n"]
    assert [line[2:20] for line in page.shown("covering")] == ["covering_figure_4]", "covering_figure_10"]


def test_the_table_is_pasted_between_the_marks() -> None:
    readme = f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n"
    assert page.paste(readme, "| new |") == f"before\n{page.BEGIN}\n| new |\n{page.END}\nafter\n"
    with pytest.raises(ValueError, match="has no"):
        page.paste("no marks", "| new |")


def test_the_table_of_the_readme_is_cut_from_the_results() -> None:
    readme, results = ((ROOT / name).read_text("utf-8") for name in ("README.md", "docs/results.md"))
    assert page.cut(readme) == page.cut(results)
    assert "| Headgate" in page.cut(readme)


def test_the_results_are_small_enough_to_keep() -> None:
    kept = [ROOT / "docs" / "results.md", *(ROOT / "docs" / "figures").glob("*")]
    assert all(path.stat().st_size < 60_000 for path in kept)


def test_a_difference_between_systems_is_an_error_that_names_the_event() -> None:
    matchers.same({"headgate": [[1], [2, 3]], "other": [[1], [2, 3]], "shorter": [[1]]})
    with pytest.raises(Differ, match=r"event 1: headgate matches \[2, 3\], other matches \[2\]"):
        matchers.same({"headgate": [[1], [2, 3]], "other": [[1], [2]]})


def test_a_part_that_is_done_is_not_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "parse.jsonl").write_text("{}\n")
    assert everything.run(["parse"], "small", tmp_path, fresh=False) == []
    assert capsys.readouterr().out == "parse: done before\n"


def test_a_part_that_fails_keeps_its_rows_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(name: str, scale: str, out: Path) -> object:
        yield {"figure": 1}
        raise Differ("two systems differ")

    monkeypatch.setattr(everything, "rows_of", rows)
    with pytest.raises(Differ):
        everything.one("parse", "small", tmp_path)
    assert (tmp_path / "parse.failed").read_text("utf-8").splitlines()[1] == '{"figure": 1}'
    assert not (tmp_path / "parse.jsonl").exists()


def test_every_part_has_a_module() -> None:
    for module, _ in everything.PARTS.values():
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file()

"""What `make quick` runs: a fast part of every folder.

Tests that take more than a second by what they do are marked slow, by measurement (`pytest --durations=0`) rather than by
taste. Property tests take long by the number of their examples, so `--quick` draws a few of each and leaves none out: an
engine is then still compared with its oracle.

Property tests have no deadline for an example: the first one compiles kernels, and a busy machine is no defect. They draw
the same examples in every run, so that a checkout which passed once passes again; `make nightly` is what searches, and it
draws new ones every time.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, settings

settings.register_profile("search", deadline=None, print_blob=True)
settings.register_profile("repeat", settings.get_profile("search"), derandomize=True)

HERE = Path(__file__).parent
EXAMPLES = 5
"""How often `--quick` draws for a property test."""
ENGINES = ("covering", "explain", "filters", "graphs", "operators", "plan", "predicates", "sequences", "store")
"""The folders of which `--quick` must run at least so many tests as `FEWEST` says."""
FEWEST = 10
SLOW = (
    "benchmarks",
    "broker",
    "cli/test_demo.py",
    "cli/test_doctor.py",
    "cli/test_main.py::test_a_reader_that_has_enough_ends_the_run_quietly",
    "cli/test_match.py::test_a_pause_does_not_part_the_events_of_one_instant",
    "cli/test_match.py::test_a_thousand_events_give_one_json_line_per_match",
    "cli/test_match.py::test_events_from_a_live_pipe_are_matched_as_they_come",
    "covering/test_benchmark.py",
    "covering/test_coverset.py::test_matches_with_covering_equal_matches_without",
    "covering/test_coverset.py::test_rows_survive_compaction_and_renumbering",
    "covering/test_decision.py::test_five_thousand_exact_decisions_agree_with_brute_force",
    "covering/test_decision.py::test_rspc_says_no_only_with_a_witness_and_yes_within_its_bound",
    "covering/test_decision.py::test_the_cheaper_modes_are_never_wrong",
    "filters/test_hostile.py",
    "language/test_fuzz.py",
    "language/test_tokens.py::test_a_wide_text_is_not_deep",
    "operators/test_correlation.py::test_planted_correlation_saves_calls_and_changes_no_match",
    "operators/test_drones.py",
    "plan/test_file.py::test_another_process_gets_the_same_ids",
    "plan/test_file.py::test_two_processes_share_the_pages_of_a_plan_file",
    "spark",
    "test_core_import.py",
    "test_docs.py",
    "test_hygiene.py::test_every_exception_in_the_code_gives_its_reason",
    "test_readme.py",
)
"""Folders, files and tests, by the beginning of their names."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick", action="store_true", help="few examples of each property test, some tests of each folder"
    )


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("search" if config.getoption("-m") == "nightly" else "repeat")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if not item.path.is_relative_to(HERE):
            continue
        if f"{item.path.relative_to(HERE).as_posix()}::{item.name}".startswith(SLOW):
            item.add_marker(pytest.mark.slow)
        test = getattr(item, "obj", None)
        if config.getoption("--quick") and test is not None and is_hypothesis_test(test):
            _draw_less(test)


def _draw_less(test: object) -> None:
    # Hypothesis has no public way to change the settings that a test was decorated with.
    name = "_hypothesis_internal_use_settings"
    given = getattr(test, name, settings.default)
    assert given is not None
    setattr(test, name, settings(given, max_examples=min(EXAMPLES, given.max_examples)))


def pytest_collection_finish(session: pytest.Session) -> None:
    """A whole `--quick` run touches every engine."""
    if session.config.getoption("--quick") and session.config.args == session.config.getini("testpaths"):
        tested = Counter(item.path.relative_to(HERE).parts[0] for item in session.items)
        lacking = [folder for folder in ENGINES if tested[folder] < FEWEST]
        if lacking:
            raise pytest.UsageError(f"--quick runs fewer than {FEWEST} tests of {', '.join(lacking)}")

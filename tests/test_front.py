"""The public front: small, complete, and loaded when it is used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import headgate

SOURCE = Path(__file__).parents[1] / "src"


def loaded(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after `statement`."""
    child = subprocess.run(
        [sys.executable, "-c", f"{statement}\nimport sys\nprint(*sys.modules)"],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in child.stdout.split()}


@pytest.mark.parametrize("name", headgate.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(headgate, name) is vars(headgate)[name]


def test_the_front_lists_exactly_the_public_names() -> None:
    assert dir(headgate) == sorted(headgate.__all__)


def test_a_name_that_does_not_exist_is_refused_as_python_does() -> None:
    with pytest.raises(AttributeError, match="module 'headgate' has no attribute 'Subscription'"):
        headgate.Subscription  # noqa: B018 - reading the name is the test


def test_to_import_the_command_line_loads_no_engine() -> None:
    assert not loaded("import headgate, headgate.cli") & {"numba", "pyarrow", "numpy", "lark", "rich"}

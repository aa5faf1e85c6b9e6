"""Proves that the core needs nothing but the core dependencies.

The environment of the tests has every extra installed, so a stray `import pandas` in the core would go unnoticed here
and fail for whoever installs Headgate without extras. A child interpreter therefore refuses each module that belongs
to a distribution outside the closure of the core dependencies, and imports the core in that state.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from headgate.cli import VERBS

SOURCE = Path(__file__).parents[1] / "src"

# Installed before anything else is imported, and first on the meta path, so that nothing comes in past it.
BLOCKER = """
import json, sys

class Blocker:
    def __init__(self, blocked):
        self.blocked = frozenset(blocked)

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.blocked:
            raise ModuleNotFoundError(f"{name} is not a core dependency", name=name)
        return None

sys.meta_path.insert(0, Blocker(json.loads(sys.argv[1])))
"""


def closure(name: str) -> frozenset[str]:
    """The distributions that come with `name` when it is installed here without extras, itself included."""
    seen: set[tuple[str, str]] = set()
    names: set[str] = set()
    waiting: list[tuple[str, str]] = [(canonicalize_name(name), "")]
    while waiting:
        current, extra = waiting.pop()
        if (current, extra) in seen:
            continue
        seen.add((current, extra))
        try:
            requires = distribution(current).requires or []
        except PackageNotFoundError:
            # Required only by an optional part of somebody else's metadata: not here, so it cannot be imported either.
            continue
        names.add(current)
        for text in requires:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                waiting += [(canonicalize_name(requirement.name), wanted) for wanted in ("", *requirement.extras)]
    return frozenset(names)


@pytest.fixture(scope="module")
def core() -> frozenset[str]:
    try:
        distribution("headgate")
    except PackageNotFoundError:
        pytest.fail("headgate is not installed in this environment: make setup")
    return closure("headgate")


@pytest.fixture(scope="module")
def blocked(core: frozenset[str]) -> list[str]:
    """The top-level modules that no core distribution provides; one shared by several (a namespace) stays open."""
    return sorted(
        module
        for module, owners in packages_distributions().items()
        if not core & {canonicalize_name(owner) for owner in owners}
    )


def run_core_only(statements: str, blocked: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCKER + statements, json.dumps(blocked)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_core_imports_with_only_its_own_dependencies(blocked: list[str]) -> None:
    # The front loads its names when they are used, so they are used here.
    verbs = ", ".join(f"headgate.cli.{verb}" for verb in VERBS)
    child = run_core_only(f"from headgate import *\nimport headgate.testing, {verbs}", blocked)
    assert child.returncode == 0, child.stderr


@pytest.mark.parametrize("module", ["pyspark", "pandas", "pyspark.sql", "pyoxigraph", "pytest"])
def test_what_belongs_to_an_extra_or_a_tool_is_refused(module: str, blocked: list[str]) -> None:
    child = run_core_only(f"import {module}", blocked)
    assert child.returncode != 0
    assert f"{module.partition('.')[0]} is not a core dependency" in child.stderr


@pytest.mark.parametrize("module", ["numpy", "pyarrow", "lark", "dd.cudd", "re2", "numba"])
def test_what_belongs_to_the_core_is_let_through(module: str, blocked: list[str]) -> None:
    child = run_core_only(f"import {module}", blocked)
    assert child.returncode == 0, child.stderr


def test_the_core_is_what_the_package_requires_and_not_its_extras(core: frozenset[str]) -> None:
    assert {"headgate", "numpy", "pyarrow", "llvmlite"} <= core
    assert not {"pyspark", "pandas", "grpcio", "pyoxigraph", "pytest"} & core

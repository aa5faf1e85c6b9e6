"""Keeps the layers of the package: a module imports only what stands before it in `LAYERS`.

One direction makes every part readable and testable without the parts built on it. The check reads the source and
imports nothing, so it also sees imports inside functions and under `if TYPE_CHECKING:`; a cycle that only the type
checker walks is still a cycle for the reader.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "headgate"

# `headgate` is the public front, `headgate/__init__.py`: it gathers what stands before it, for those that stand after.
LAYERS = (
    "errors",
    "pictures",
    "compiled",
    "schema",
    "language",
    "columns",
    "predicates",
    "engine",
    "identity",
    "results",
    "events",
    "filters",
    "graphs",
    "operators",
    "sequences",
    "covering",
    "oracle",
    "match",
    "explain",
    "runtime",
    "plan",
    "subscriptions",
    "store",
    "testing",
    "headgate",
    "spark",
    "broker",
    "cli",
    "__main__",
)

# (layer, layer it may import although it stands later): the reason.
EXCEPTIONS: dict[tuple[str, str], str] = {}


@dataclass(frozen=True, slots=True)
class Import:
    line: int
    module: str


def imports(source: str, package: str) -> Iterator[Import]:
    """Every module named by an import statement; `package` is what relative imports start from."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                anchor = ".".join(parents[: len(parents) - node.level + 1])
                base = f"{anchor}.{base}" if base else anchor
            for alias in node.names:
                yield Import(node.lineno, f"{base}.{alias.name}")


def layer_of_import(module: str) -> str | None:
    """The layer an import reaches into; None for what is not ours."""
    parts = module.split(".")
    if parts[0] != "headgate":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS else "headgate"


def violations(path: Path, source: str) -> list[str]:
    """What `path`, relative to the package, imports against the order; one line of text each."""
    if path == Path("__init__.py"):
        return []
    layer = path.parts[0].removesuffix(".py")
    if layer not in LAYERS:
        return [f"{path}: `{layer}` is no known layer; give it a place in LAYERS"]
    package = ".".join(("headgate", *path.parent.parts))
    found = []
    for item in imports(source, package):
        target = layer_of_import(item.module)
        if target is None or (layer, target) in EXCEPTIONS:
            continue
        if LAYERS.index(target) > LAYERS.index(layer):
            found.append(f"{path}:{item.line}: `{layer}` imports {item.module}, but `{target}` stands after it")
    return found


def test_every_module_imports_only_what_stands_before_it() -> None:
    sources = sorted(PACKAGE.rglob("*.py"))
    assert sources
    found = [line for path in sources for line in violations(path.relative_to(PACKAGE), path.read_text("utf-8"))]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        "import headgate.plan",
        "from headgate.plan import Plan",
        "from headgate import plan",
        "from ..plan import Plan",
        "from .. import plan",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import headgate.plan",
        "def later():\n    from headgate.plan import Plan",
    ],
)
def test_an_import_of_a_later_layer_is_found_however_it_is_written(source: str) -> None:
    (line,) = violations(Path("filters/engine.py"), source)
    assert line.startswith(f"filters/engine.py:{len(source.splitlines())}: `filters` imports headgate.plan")
    assert line.endswith("`plan` stands after it")


def test_the_public_front_is_closed_to_the_layers_it_gathers() -> None:
    assert violations(Path("match.py"), "import headgate as hg")
    assert violations(Path("match.py"), "from headgate import Subscriptions")
    assert not violations(Path("spark/batch.py"), "from headgate import Subscriptions")


def test_an_import_of_an_earlier_layer_or_of_the_own_one_is_fine() -> None:
    source = (
        "import os\nfrom headgate.errors import HeadgateError\nfrom headgate.filters.atoms import Atom\nfrom . import x"
    )
    assert violations(Path("filters/engine.py"), source) == []


def test_a_module_without_a_layer_is_named() -> None:
    assert violations(Path("utils.py"), "") == ["utils.py: `utils` is no known layer; give it a place in LAYERS"]


def test_every_exception_is_about_known_layers_and_has_a_reason() -> None:
    for pair, reason in EXCEPTIONS.items():
        assert set(pair) <= set(LAYERS)
        assert reason

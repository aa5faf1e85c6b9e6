"""`headgate bench`: run a benchmark of the source checkout this package stands in, and print its figures.

Benchmarks are not part of the installed package: they need the development environment, and a figure means little
without the source it was taken from. Each is a module with `run(scale, out)`, which gives rows and leaves pictures in
the folder `out`. A row with the key `must` is a verdict.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from headgate.errors import EnvironmentProblem, UsageError

MODULES = {
    "filters": "benchmarks.papers.filters",
    "filters-million": "benchmarks.filters_million",
    "opening": "benchmarks.opening",
    "abe": "benchmarks.abe",
    "graphs": "benchmarks.papers.graphs",
    "operators": "benchmarks.papers.operators",
    "sequences": "benchmarks.papers.sequences",
    "sequences-spark": "benchmarks.sequences_spark",
    "chaos-sequences": "benchmarks.chaos_sequences",
    "covering": "benchmarks.papers.covering",
    "spark": "benchmarks.spark",
    "chaos": "benchmarks.chaos",
    "broker": "benchmarks.broker",
    "crowd": "benchmarks.crowd",
    "decode": "benchmarks.decode",
    "parse": "benchmarks.parse",
    "peers": "benchmarks.peers.matchers",
    "peers-graphs": "benchmarks.peers.graphs",
    "peers-operators": "benchmarks.peers.operators",
    "peers-covering": "benchmarks.peers.covering",
    "peers-spark": "benchmarks.peers.spark",
}


def checkout() -> Path:
    """The source checkout that this file belongs to."""
    source = Path(__file__).resolve().parents[2]
    if source.name == "src" and (source.parent / "benchmarks" / "__init__.py").is_file():
        return source.parent
    hint = "clone the repository, run `make setup` there, and use .venv/bin/headgate bench"
    raise EnvironmentProblem("the benchmarks are in the source checkout, and this is an installed package", hint)


def available(root: Path) -> list[str]:
    """The benchmarks that this checkout has."""
    return [name for name, module in MODULES.items() if (root / f"{module.replace('.', '/')}.py").is_file()]


def load(name: str, root: Path) -> Any:
    """The module of a benchmark."""
    known = available(root)
    if name not in known:
        raise UsageError(f"there is no benchmark {name}", f"choose one of {', '.join(known)}")
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    try:
        return import_module(MODULES[name])
    except ModuleNotFoundError as missing:
        raise EnvironmentProblem(f"the benchmark needs {missing.name}", "run `make setup` in the checkout") from None


def shown(row: dict[str, Any]) -> str:
    """A row for people: a verdict as a sentence, anything else as its names and figures."""
    if "must" in row:
        bound = f"at least {row['at_least']:,}" if "at_least" in row else f"less than {row['less_than']:,}"
        verdict = {True: "holds", False: "MISSED", None: "not judged at this scale"}[row["holds"]]
        return f"  {verdict}: {row['must']}: {row['value']:,} ({bound})"
    return "  ".join(f"{key} {_figure(value)}" for key, value in row.items() if value is not None)


def _figure(value: Any) -> str:
    if isinstance(value, dict):
        return "(" + ", ".join(f"{k} {_figure(v)}" for k, v in value.items()) + ")"
    if isinstance(value, list):
        return "..".join(map(_figure, value))
    return f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


@click.command()
@click.argument("name", required=False)
@click.option(
    "--scale", type=click.Choice(["small", "paper"]), default="small", show_default=True,
    help="Small takes minutes at most; paper is the size that the papers and the verdicts are about.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("bench-out"), show_default=True,
    help="The folder for pictures.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object per row, one line each.")
@click.pass_context
def bench(context: click.Context, name: str | None, scale: str, out: Path, as_json: bool) -> None:
    """Run the benchmark NAME and print its figures.

    Without NAME, list what there is. Needs the source checkout. Exit code 1 if a verdict is missed.
    """
    root = checkout()
    if name is None:
        for known in available(root):
            click.echo(json.dumps({"benchmark": known}) if as_json else known)
        return
    module = load(name, root)
    out.mkdir(parents=True, exist_ok=True)
    before = {path: path.stat().st_mtime_ns for path in out.glob("*.png")}
    missed = False
    for row in module.run(scale, out):
        missed |= row.get("holds") is False
        click.echo(json.dumps(row) if as_json else shown(row))
    for path in sorted(out.glob("*.png")):
        if before.get(path) != path.stat().st_mtime_ns:
            click.echo(json.dumps({"picture": str(path)}) if as_json else f"picture: {path}")
    context.exit(1 if missed else 0)

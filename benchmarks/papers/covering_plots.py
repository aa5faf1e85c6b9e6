"""Plots of the covering experiments, and pictures of subscriptions in two dimensions (figures 1 to 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from headgate.covering.boxes import Union
from headgate.covering.cover import Cover, cover
from headgate.covering.parse_boxes import Source, checked, schema_of, union_of
from headgate.covering.portion import PRESENT
from headgate.predicates.domain import BOTTOM, TOP, Cut, double_of

PAPER_ACTIVE = {
    ("m = 10 and 15", "pairwise"): (0.15, "about 15 %"),
    ("m = 10 and 15", "group"): (0.10, "below 10 %"),
    ("m = 20", "pairwise"): (0.50, "below 50 %"),
    ("m = 20", "group"): (0.33, "33 %"),
}
"""The share of 5,000 subscriptions that stays active, as the paper's text gives it."""
Row = Mapping[str, Any]
Plot = Callable[[Axes, Sequence[Row]], None]


def draw(rows: Sequence[Row], out: Path) -> Iterator[Path]:
    """Every figure that the rows suffice for."""
    for name, wanted, plot in _FIGURES:
        some = [row for row in rows if wanted(row)]
        if some:
            yield _figure(out / f"{name}.png", partial(_apply, plot, some))
    schema = {"x1": "double", "x2": "double"}
    for number, (text, others) in EXAMPLES.items():
        yield picture(out / f"covering_figure_{number}.png", text, others, schema, "x1", "x2")


def _apply(plot: Plot, rows: Sequence[Row], ax: Axes) -> None:
    plot(ax, rows)


def _figure(path: Path, plot: Callable[[Axes], None]) -> Path:
    figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    plot(ax)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=8)
    ax.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


def _lines(ax: Axes, rows: Sequence[Row], x: str, y: str, by: Callable[[Row], str], style: str = "o-") -> None:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(by(row), []).append(row)
    for label, group in groups.items():
        ax.plot([r[x] for r in group], [r[y] for r in group], style, label=label, markersize=3)


def _reduction(ax: Axes, rows: Sequence[Row]) -> None:
    _lines(ax, rows, "k", "removed", lambda r: f"m = {r['m']}")
    ax.set(xlabel="subscriptions k", ylabel="share of redundant ones that MCS removes", ylim=(0, 1.05))
    ax.axhspan(0.8, 1.0, alpha=0.1, label="the paper: 80 to 100 %")


def _iterations(ax: Axes, rows: Sequence[Row]) -> None:
    _lines(ax, rows, "k", "log_d_all", lambda r: f"all, m = {r['m']}", "^:")
    _lines(ax, rows, "k", "log_d_mcs", lambda r: f"after MCS, m = {r['m']}")
    _lines(ax, rows, "k", "log_d_mcs_corrected", lambda r: f"after MCS, corrected bound, m = {r['m']}", "s--")
    ax.set(xlabel="subscriptions k", ylabel="log10 of the guesses needed, error 1e-10")


def _guesses(ax: Axes, rows: Sequence[Row]) -> None:
    _lines(ax, rows, "k", "guesses", lambda r: f"m = {r['m']}")
    ax.set(xlabel="subscriptions k", ylabel="guesses made (the paper: below 0.5)", ylim=(-0.05, None))


def _bound_label(bound: str, row: Row) -> str:
    return f"error {row['error']:g}, {bound} bound"


def _gap_guesses(ax: Axes, rows: Sequence[Row]) -> None:
    for bound, style in (("printed", "o-"), ("corrected", "s--")):
        _lines(ax, rows, "gap", f"guesses_{bound}", partial(_bound_label, bound), style)
    ax.set(xlabel="gap, share of s", ylabel="mean guesses")


def _gap_wrong(ax: Axes, rows: Sequence[Row]) -> None:
    for bound, style in (("printed", "o-"), ("corrected", "s--")):
        _lines(ax, rows, "gap", f"wrong_{bound}", partial(_bound_label, bound), style)
    ax.set(xlabel="gap, share of s", ylabel=f"wrong answers in {rows[0]['runs']} runs")


def _growth(ax: Axes, rows: Sequence[Row]) -> None:
    for mode, style in (("pairwise", "^:"), ("MCS + RSPC", "s--"), ("exact", "o-")):
        some = [r for r in rows if r["mode"] == mode]
        _lines(ax, some, "subscriptions", "active", lambda r: f"{r['mode']}, m = {r['m']}", style)
    for (count, mode), (share, words) in PAPER_ACTIVE.items():
        marker = "^" if mode == "pairwise" else "o"
        ax.plot(5_000, share * 5_000, marker, color="black", fillstyle="none", label=f"paper, {mode}, {count}: {words}")
    ax.set(xlabel="subscriptions", ylabel="active")


def _ratio(ax: Axes, rows: Sequence[Row]) -> None:
    pairwise = {(r["m"], r["subscriptions"]): r["active"] for r in rows if r["mode"] == "pairwise"}
    some = [
        {**r, "ratio": r["active"] / pairwise[r["m"], r["subscriptions"]]}
        for r in rows
        if r["mode"] == "exact" and (r["m"], r["subscriptions"]) in pairwise
    ]
    _lines(ax, some, "subscriptions", "ratio", lambda r: f"m = {r['m']}")
    ax.set(xlabel="subscriptions", ylabel="active with group cover / with pairwise", ylim=(0, 1.05))


def _chain(ax: Axes, rows: Sequence[Row]) -> None:
    names = [r["cover"] for r in rows]
    for i, (key, label) in enumerate(
        (("messages", "subscriptions sent"), ("taken_back", "taken back"), ("stored", "stored"))
    ):
        ax.bar([n + 0.27 * i - 0.27 for n in range(len(rows))], [r[key] for r in rows], 0.25, label=label)
    ax.set_xticks(range(len(rows)), names)
    ax.set(ylabel=f"along {rows[0]['brokers']} brokers, {rows[0]['subscriptions']} subscriptions")


def _loss(ax: Axes, rows: Sequence[Row]) -> None:
    ax.plot([r["guesses"] for r in rows], [r["predicted"] for r in rows], "-", label="proposition 4")
    ax.plot([r["guesses"] for r in rows], [r["measured"] for r in rows], "o", label="simulated")
    ax.set(xlabel="guesses at every hop", ylabel="chance that the event is found")


_FIGURES: tuple[tuple[str, Callable[[Row], bool], Plot], ...] = (
    ("covering_figure_5", lambda r: r.get("scenario") == "1.b" and "removed" in r, _reduction),
    ("covering_figure_6", lambda r: r.get("scenario") == "1.b" and "removed" in r, _iterations),
    ("covering_figure_7", lambda r: r.get("scenario") == "2.b" and "removed" in r, _reduction),
    ("covering_figure_8", lambda r: "guesses" in r and r.get("scenario") == "2.b", _guesses),
    ("covering_figure_9", lambda r: r.get("scenario") == "2.c", _gap_guesses),
    ("covering_figure_10", lambda r: r.get("scenario") == "2.c", _gap_wrong),
    ("covering_figure_11", lambda r: r.get("figure") == "11, 12", _growth),
    ("covering_figure_12", lambda r: r.get("figure") == "11, 12", _ratio),
    ("covering_chain", lambda r: r.get("figure") == "chain", _chain),
    ("covering_figure_4", lambda r: r.get("figure") == "4", _loss),
)

# ------------------------------------------------------------------- pictures

_S = "x1 BETWEEN 830 AND {} AND x2 BETWEEN 1003 AND 1006"
_PAIR = ("x1 BETWEEN 820 AND 850 AND x2 BETWEEN 1001 AND 1007", "x1 BETWEEN 840 AND 880 AND x2 BETWEEN 1002 AND 1009")
EXAMPLES: dict[int, tuple[str, tuple[str, ...]]] = {
    1: (_S.format(870), _PAIR),
    2: (
        _S.format(890),
        ("x1 BETWEEN 820 AND 850 AND x2 BETWEEN 1002 AND 1009", "x1 BETWEEN 840 AND 870 AND x2 BETWEEN 1001 AND 1007"),
    ),
    3: (_S.format(870), (*_PAIR, "x1 BETWEEN 810 AND 890 AND x2 BETWEEN 1004 AND 1005")),
}
"""The paper's tables 2, 5 and 6."""


def picture(path: Path, text: str, others: Sequence[str], schema: Mapping[str, str], x: str, y: str) -> Path:
    """Subscriptions over two numeric attributes, what covers what, and the witness if there is one."""
    bodies, resolved = checked([Source(t) for t in (text, *others)], schema_of(schema))
    unions = [union_of(body, "null", resolved) for body in bodies]
    found = cover(text, others, schema)
    return _figure(path, lambda ax: _boxes(ax, unions, found, x, y))


def _boxes(ax: Axes, unions: Sequence[Union], found: Cover, x: str, y: str) -> None:
    bounds = [[v for u in unions for b in u for v in _bounds(b, name)] for name in (x, y)]
    frame = [(min(v) - 0.1 * (max(v) - min(v)), max(v) + 0.1 * (max(v) - min(v))) for v in bounds]
    for i, union in enumerate(unions):
        for n, box in enumerate(union):
            for x0, x1 in _sides(box, x, frame[0]):
                for y0, y1 in _sides(box, y, frame[1]):
                    label = ("s" if i == 0 else f"s{i}") if n == 0 else None
                    colour = "black" if i == 0 else f"C{i - 1}"
                    rectangle = Rectangle((x0, y0), x1 - x0, y1 - y0, label=label, edgecolor=colour, linewidth=2)
                    rectangle.set_facecolor(colour if i else "none")
                    rectangle.set_alpha(0.35 if i else 1.0)
                    ax.add_patch(rectangle)
    if found.witness is not None:
        ax.plot(found.witness[x], found.witness[y], "r*", markersize=12, label="witness")
    ax.set(xlim=frame[0], ylim=frame[1], xlabel=x, ylabel=y, title=f"covered: {found.covered} ({found.method})")


def _value(cut: Cut, frame: tuple[float, float]) -> float:
    if cut == BOTTOM:
        return frame[0]
    return frame[1] if cut == TOP else min(max(double_of(cut[1]), frame[0]), frame[1])


def _portion(box: Mapping[Any, Any], name: str) -> Any:
    return next((portion for dimension, portion in box.items() if str(dimension) == name), PRESENT)


def _sides(box: Mapping[Any, Any], name: str, frame: tuple[float, float]) -> list[tuple[float, float]]:
    return [(_value(low, frame), _value(high, frame)) for low, high in _portion(box, name).spans]


def _bounds(box: Mapping[Any, Any], name: str) -> list[float]:
    return [double_of(c[1]) for span in _portion(box, name).spans for c in span if c not in (BOTTOM, TOP)]

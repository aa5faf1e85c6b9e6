"""`docs/results.md` and the README's table, made from the rows of a run: `python -m benchmarks.page [--scale small]`.

Nothing on that page is typed. The section "In short" is also put between two marks in the README, and a test compares
them. A part that was not run is named as missing.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.everything import PARTS, ROOT, parts
from benchmarks.measure import SCALES, Row
from benchmarks.peers.harness import SYSTEMS

PAGE, README = ROOT / "docs" / "results.md", ROOT / "README.md"
FIGURES = ROOT / "docs" / "figures"
BEGIN, END = "<!-- in short: begin -->", "<!-- in short: end -->"
MOST_ROWS, MOST_COLUMNS, WIDEST = 14, 9, 40
Rows = dict[str, list[Row]]

TABLES = {
    "bridge": ("peers-bridge", "EventBridge-style rules over nested events of 900 bytes", "rules"),
    "ranges": ("peers-ranges", "The same with a range of a number in every rule, and anything-but", "rules"),
    "events": ("peers-events", "1,000 of those rules, by the number of events in a pass", "events"),
    "attributes": ("peers-attributes", "1,000 rules over flat events of 5 to 500 attributes", "attributes"),
    "abe": ("peers-abe", "Arbitrary boolean expressions by A-Tree's generator", "expressions"),
    "stocks": ("peers-stocks", "Stock sequences: three ticks of a name, each dearer than the last", "patterns"),
}
OURS = ("headgate", "headgate-single")


def load(folder: Path) -> Rows:
    """The rows by part, of the parts that were run to their end."""
    found = {}
    for name in PARTS:
        file = folder / f"{name}.jsonl"
        if file.exists():
            found[name] = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return found


# -- cells


def figure(value: Any) -> str:
    """A number with three digits that count, thousands apart."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return str(value)
        size = abs(value)
        value = round(value) if size >= 100 else float(f"{value:.3g}")
    if isinstance(value, int | float):
        return f"{value:,}"
    if isinstance(value, list):
        return " to ".join(map(figure, value))
    return str(value).replace("|", "\\|")


def grid(head: list[str], lines: list[list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for line in lines:
        yield "| " + " | ".join(line) + " |"
    yield ""


def title(name: str) -> str:
    return SYSTEMS[name].title if name in SYSTEMS else name


def plain(rows: list[Row]) -> list[Row]:
    """Rows of a comparison in which we come in one form only."""
    return [{**r, "system": r["system"].replace("headgate", "Headgate")} for r in rows]


# -- pictures


def part_of(picture: str) -> str | None:
    """The part that drew a picture: the longest whose name it begins with."""
    return max((p for p in PARTS if re.match(rf"{re.escape(p)}\b|{re.escape(p)}_", picture)), key=len, default=None)


def shown(part: str) -> Iterator[str]:
    for file in sorted(FIGURES.glob("*.png"), key=lambda f: (len(f.stem), f.stem)):
        if part_of(file.stem) == part:
            yield f"![{file.stem}](figures/{file.name})\n"


# -- peers


def pivot(rows: list[Row], value: str, around: tuple[str, str] | None, axis: str) -> Iterator[str]:
    """A line for each x, a column for each system; what a system could not do is told below."""
    systems = list(dict.fromkeys(r["system"] for r in rows))
    notes: dict[str, int] = {}
    lines = []
    for x in dict.fromkeys(r["x"] for r in rows):
        line = [figure(x)]
        for system in systems:
            row = next((r for r in rows if r["system"] == system and r["x"] == x), {})
            if value in row:
                spread = f" ({figure(row[around[0]])} to {figure(row[around[1]])})" if around else ""
                line.append(figure(row[value]) + spread)
            else:
                why = f"{title(system)}: {row.get('why', 'not measured')}"
                line.append(f"note {notes.setdefault(why, len(notes) + 1)}")
        lines.append(line)
    yield from grid([axis, *map(title, systems)], lines)
    if notes and around:
        yield from (f"{n}. {why}" for why, n in notes.items())
        yield ""


def peer_tables(rows: Rows) -> Iterator[str]:
    for table, (part, heading, axis) in TABLES.items():
        mine = [r for r in rows.get(part, []) if r.get("table") == table]
        if not mine:
            continue
        yield f"### {heading}\n"
        yield "Microseconds of processor time an event: the median of the rounds (least to most).\n"
        yield from pivot(mine, "us_an_event", ("least_us", "most_us"), axis)
        if table in ("bridge", "stocks", "abe"):
            yield "Seconds to build from the rules' texts:\n"
            yield from pivot(mine, "build_s", None, axis)
            yield "Peak memory of the process in MiB, its runtime included:\n"
            yield from pivot(mine, "peak_mib", None, axis)
        counted = {r["x"]: r["matches"] for r in mine if "matches" in r and r["system"] == "headgate"}
        yield (
            "Matches that all of them found: "
            + ", ".join(f"{figure(n)} at {figure(x)}" for x, n in counted.items())
            + ".\n"
        )
        yield from shown(part)
    yield from _others(rows)


def _others(rows: Rows) -> Iterator[str]:
    graphs = [r for r in rows.get("peers-graphs", []) if r.get("table") == "graphs"]
    if graphs:
        yield "### Graph patterns: one ASK a subscription\n"
        yield "Milliseconds an event. The matches of all are the same, with the nodes of a pattern different in each.\n"
        yield from pivot(plain(graphs), "ms_an_event", ("least_ms", "most_ms"), "subscriptions")
    spark = [r for r in rows.get("peers-spark", []) if r.get("table") == "spark"]
    if spark:
        yield "### Filters on Spark, without Headgate and with it\n"
        yield "Events a second on two cores, on the wall; starting the jobs is part of it. All count the same matches.\n"
        yield from pivot(plain(spark), "events_a_second", ("least", "most"), "queries")
    operators = [r for r in rows.get("peers-operators", []) if r.get("table") == "operators"]
    if operators:
        yield "### The order of operators\n"
        yield "Predicates evaluated an event; `greedy` is ours, `bound` what any order needs at least.\n"
        names = ["naive", "a-greedy", "sequential", "suborder", "greedy", "bound"]
        lines = [[r["popularity"], figure(r["x"]), *(figure(r[n]) for n in names)] for r in operators]
        yield from grid(["popularity", "subscriptions", *names], lines)
    covering = [r for r in rows.get("peers-covering", []) if r.get("table") == "covering"]
    if covering:
        yield "### Cover by a group of subscriptions\n"
        yield "Milliseconds a decision. Pairwise comparison is quick because it leaves open what no one subscription covers.\n"
        lines = [
            [r["scenario"], f"{figure(r['x'])}, {r['attributes']} attributes", title(r["system"]),
             f"{figure(r['ms_a_decision'])} ({figure(r['least_ms'])} to {figure(r['most_ms'])})",
             f"{r['left_open']} of {r['instances']}"]
            for r in plain(covering)
        ]  # fmt: skip
        yield from grid(["scenario", "subscriptions", "way", "ms", "left open"], lines)


def faster(rows: Rows) -> Iterator[str]:
    """Every figure at which a peer beats us, batches and single calls apart."""
    found = []
    for table, (part, heading, axis) in TABLES.items():
        mine = [r for r in rows.get(part, []) if r.get("table") == table and "us_an_event" in r]
        for row in mine:
            if row["system"] in OURS:
                continue
            for ours in OURS:
                us = next((r for r in mine if r["x"] == row["x"] and r["system"] == ours), None)
                if us is not None and row["us_an_event"] < us["us_an_event"]:
                    times = us["us_an_event"] / row["us_an_event"]
                    at = f"{heading}, {figure(row['x'])} {axis}"
                    found.append((title(row["system"]), title(ours).removeprefix("Headgate, "), at, times))
    for part, value, up in (("peers-graphs", "ms_an_event", False), ("peers-spark", "events_a_second", True)):
        mine = [r for r in rows.get(part, []) if value in r]
        for row in mine:
            us = next(r for r in mine if r["x"] == row["x"] and r["system"] == "headgate")
            times = row[value] / us[value] if up else us[value] / row[value]
            if times > 1:
                found.append((title(row["system"]), "", f"{part.removeprefix('peers-')}, {figure(row['x'])}", times))
    if not found:
        yield "Nowhere in this run.\n"
        return
    lines = [[peer, how, where, f"{times:.1f}"] for peer, how, where, times in found]
    yield from grid(["peer", "against Headgate with", "where", "times faster"], lines)


# -- the papers


def paper_tables(rows: Rows) -> Iterator[str]:
    for part in PARTS:
        if part.startswith("peers-") or part not in rows:
            continue
        yield f"### {part}\n"
        yield f"`headgate bench {part}` prints these and draws its figures.\n"
        groups: dict[str, list[Row]] = {}
        for row in rows[part]:
            if not {"machine", "part", "plot", "picture"} & row.keys():
                groups.setdefault(_group(row), []).append(row)
        for name, members in groups.items():
            yield from _table(name, members)
        yield from shown(part)


def _group(row: Row) -> str:
    if "must" in row or row.get("figure") in ("must", "ratios"):
        return "what must hold"
    return f"figure {row['figure']}" if "figure" in row else str(row.get("table", "rows"))


def _table(name: str, rows: list[Row]) -> Iterator[str]:
    keys = [k for k in dict.fromkeys(k for r in rows for k in r) if k not in ("table", "figure", "note", "setting")]
    short = [k for k in keys if any(r.get(k) is not None for r in rows)]
    short = [k for k in short if all(len(figure(r.get(k))) <= WIDEST or k in ("must", "what", "x") for r in rows)]
    short = [k for k in short if not any(isinstance(r.get(k), dict) for r in rows)]
    shown = rows if len(rows) <= MOST_ROWS else rows[:: -(-len(rows) // MOST_ROWS)]
    left = f", {len(shown)} of its {len(rows)} rows" if len(shown) < len(rows) else ""
    yield f"**{name}**{left}\n"
    kept = short[:MOST_COLUMNS]
    yield from grid([k.replace("_", " ") for k in kept], [[figure(r.get(k)) for k in kept] for r in shown])


# -- in short


def in_short(rows: Rows) -> list[str]:
    """A line for each comparison at its largest size, ours beside the best of the others."""
    lines = []
    for table, (part, heading, axis) in TABLES.items():
        mine = [r for r in rows.get(part, []) if r.get("table") == table and "us_an_event" in r]
        sizes = sorted({r["x"] for r in mine})
        for x in (sizes[0], sizes[-1]) if table in ("bridge", "stocks", "abe") and len(sizes) > 1 else sizes[-1:]:
            at = {r["system"]: r["us_an_event"] for r in mine if r["x"] == x}
            others = {n: v for n, v in at.items() if n not in OURS}
            if "headgate" in at and others:
                best = min(others, key=lambda n: others[n])
                lines.append([f"{heading}: {figure(x)} {axis}", f"{figure(at['headgate'])} µs",
                              f"{figure(others[best])} µs ({title(best)})", _ahead(at["headgate"], others[best])])  # fmt: skip
    for part, what, value, unit in (("peers-graphs", "Graph patterns", "ms_an_event", "ms"),):
        mine = [r for r in rows.get(part, []) if value in r]
        if mine:
            x = max(r["x"] for r in mine)
            at = {r["system"]: r[value] for r in mine if r["x"] == x}
            best = min((n for n in at if n != "headgate"), key=lambda n: at[n])
            lines.append([f"{what}: {figure(x)} subscriptions", f"{figure(at['headgate'])} {unit}",
                          f"{figure(at[best])} {unit} ({title(best)})", _ahead(at["headgate"], at[best])])  # fmt: skip
    spark = [r for r in rows.get("peers-spark", []) if "events_a_second" in r]
    for x in sorted({r["x"] for r in spark}):
        at = {r["system"]: r["events_a_second"] for r in spark if r["x"] == x}
        others = {n: v for n, v in at.items() if n != "headgate"}
        if others:
            best = max(others, key=lambda n: others[n])
            lines.append([f"Spark, two cores: {figure(x)} queries", f"{figure(at['headgate'])} events/s",
                          f"{figure(others[best])} events/s ({best})", _ahead(others[best], at["headgate"])])  # fmt: skip
    return list(grid(["an event costs", "Headgate, in batches", "the best peer", "we are"], lines)) if lines else []


def _ahead(ours: float, theirs: float) -> str:
    """Of two times."""
    return f"{theirs / ours:.1f} times faster" if ours <= theirs else f"**{ours / theirs:.1f} times slower**"


def page(rows: Rows, scale: str) -> str:
    about: Row = next((r["machine"] for part in rows.values() for r in part if "machine" in r), {})
    missing = [name for name in parts(scale) if name not in rows]
    command = "make bench" if scale == "small" else "make bench-full"
    text = [
        "# Results\n",
        (
            f"Generated by `{command}`; nothing here is typed. Peers come from their public registries, by version, and read "
            "the same files, which are drawn from fixed seeds. Each figure is processor time from the text of an event to its "
            "matches, on one core unless said, after a warm-up; systems take turns, and what they match is compared: a "
            "difference fails the run."
            + (" While one part runs, another may run on another core.\n" if scale == "small" else "\n")
        ),
        (
            f"Machine: {about.get('processor', '?')}, {about.get('cores', '?')} cores, {about.get('memory_gib', '?')} GiB, "
            f"Python {about.get('python', '?')}, on {about.get('day', '?')}, load {about.get('load', '?')} at the start; "
            f"scale `{scale}`.\n"
        ),
    ]
    if missing:
        text.append(f"Not run this time: {', '.join(missing)}.\n")
    text += ["## In short\n", BEGIN, "", *in_short(rows), END, ""]
    text += ["## Where a peer is faster\n", *faster(rows)]
    text += ["## Side by side\n", *peer_tables(rows)]
    text += ["## The papers' own workloads\n", *paper_tables(rows)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(text)).rstrip() + "\n"


def cut(text: str) -> str:
    """What stands between the marks."""
    found = re.search(re.escape(BEGIN) + r"\n(.*?)" + re.escape(END), text, re.DOTALL)
    if found is None:
        raise ValueError(f"the page has no {BEGIN}")
    return found[1].strip()


def paste(readme: str, table: str) -> str:
    """The README with this table between its marks."""
    cut(readme)
    marked = re.escape(BEGIN) + r"\n.*?" + re.escape(END)
    return re.sub(marked, lambda _: f"{BEGIN}\n{table}\n{END}", readme, flags=re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", choices=SCALES, default="small")
    parser.add_argument("--out", type=Path, default=Path("bench-out"))
    given = parser.parse_args()
    folder = given.out / given.scale
    rows = load(folder)
    if not rows:
        raise SystemExit(f"{folder} has no rows: run `make bench` first")
    FIGURES.mkdir(exist_ok=True)
    for old in FIGURES.glob("*.png"):
        if part_of(old.stem) in rows:
            old.unlink()
    for picture in folder.glob("*.png"):
        if part_of(picture.stem) in rows:
            # Few colours: a third of the size.
            Image.open(picture).convert("RGB").quantize(64).save(FIGURES / picture.name, optimize=True)
    text = page(rows, given.scale)
    PAGE.write_text(text, "utf-8")
    README.write_text(paste(README.read_text("utf-8"), cut(text)), "utf-8")
    print(f"{PAGE}: {len(text.encode()):,} bytes from {len(rows)} parts")


if __name__ == "__main__":
    main()

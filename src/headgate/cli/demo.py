"""`headgate demo`: what Headgate does, on a stream one can picture, in half a minute.

Each step runs before it is told, so every number on the screen was measured just now. With --json a step is one object.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Any, Protocol

import click
import orjson
import pyarrow as pa
from rich.console import Console
from rich.text import Text

from headgate.cli.progress import busy
from headgate.cli.ticks import Market, script
from headgate.plan import Plan
from headgate.subscriptions import Subscriptions

EVENTS, SUBSCRIPTIONS, SEED = 200_000, 10_000, 7
BATCH = 65_536
SAVED = 20_000
Rules = list[tuple[str, str]]


class Tell(Protocol):
    """Takes the title of a step, its lines for people and its facts for programs."""

    def __call__(self, title: str, *lines: str, **facts: Any) -> None: ...


@click.command()
@click.option("--save", metavar="FOLDER", help="Also write the demo's rules.hg and ticks.jsonl there, to play with.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per step, one line each.")
def demo(save: str | None, as_json: bool) -> None:
    """A guided run: ten thousand subscriptions on a stream of stock ticks.

    Takes less than half a minute. Everything is drawn from a seed; the numbers are measured on this machine.
    """
    guide(_as_json if as_json else _Screen(), EVENTS, SUBSCRIPTIONS, save)


def guide(tell: Tell, events: int, subscriptions: int, save: str | None = None) -> None:
    with busy("drawing stock ticks"):
        market = Market(SEED)
        rules = list(market.subscriptions(subscriptions))
        ticks = market.ticks(events)
    plan = _compiled(tell, rules)
    with busy("matching"):
        facts, matches = _match(plan, ticks)
    event = _one_event(tell, dict(rules), ticks, matches)
    _throughput(tell, facts, len(rules))
    _missed(tell, plan, dict(rules), ticks, matches, event)
    _bad_events(tell, plan, _event(ticks, event))
    _next(tell, rules, ticks, save)


def _compiled(tell: Tell, rules: Rules) -> Plan:
    with busy("compiling the subscriptions"):
        start = time.perf_counter()
        book = Subscriptions.parse(script(rules))
        checked = time.perf_counter()
        plan = book.compile()
        # The first match loads the kernels, which is no part of what is measured later.
        plan.match([{"symbol": "A"}])
        done = time.perf_counter()
    tell(
        f"{len(rules):,} standing subscriptions",
        "A subscription is a standing question about a stream of events; here, of stock ticks. Six of them:",
        "",
        *(f"  {name:<14} {text}" for name, text in rules[:6]),
        "",
        f"They were parsed and type-checked in {checked - start:.1f} s, and compiled in {done - checked:.1f} s",
        "into one plan that shares what they have in common.",
        subscriptions=len(rules),
        checked_s=checked - start,
        compiled_s=done - checked,
    )
    return plan


def _match(plan: Plan, ticks: pa.Table) -> tuple[dict[str, Any], pa.Table]:
    """The facts of the whole run, and the matches of its first batch."""
    session = plan.session()
    first: pa.Table | None = None
    rows = 0
    start = time.perf_counter()
    for at in range(0, ticks.num_rows, BATCH):
        found = session.feed(ticks.slice(at, BATCH))
        rows += found.num_rows
        first = found if first is None else first
    seconds = time.perf_counter() - start
    assert first is not None
    rate = ticks.num_rows / seconds
    return {"events": ticks.num_rows, "matches": rows, "seconds": seconds, "events_per_s": rate}, first


def _one_event(tell: Tell, rules: dict[str, str], ticks: pa.Table, matches: pa.Table) -> int:
    """One event that matches at least five subscriptions, of as many kinds as there are."""
    found: dict[int, list[str]] = {}
    for event, name in zip(*(matches.column(c).to_pylist() for c in ("event", "subscription")), strict=True):
        found.setdefault(event, []).append(name)
    kinds = {event: len({_kind(n) for n in names}) for event, names in found.items()}
    best = min(kinds, key=lambda event: (len(found[event]) < 5, -kinds[event], len(found[event]), event))
    shown = sorted({_kind(n): n for n in found[best]}.values())
    shown += [n for n in found[best] if n not in shown]
    more = len(found[best]) - 5
    event = _event(ticks, best)
    tell(
        "One event, and five of the subscriptions that it matches",
        orjson.dumps(event).decode(),
        "",
        *(f"  {name:<14} {rules[name]}" for name in shown[:5]),
        *(["", f"({more} more of the {len(rules):,} match it too.)"] if more > 0 else []),
        event=event,
        matched={name: rules[name] for name in shown[:5]},
    )
    return best


def _kind(name: str) -> str:
    return name.partition("_")[0]


def _event(ticks: pa.Table, row: int) -> dict[str, Any]:
    event: dict[str, Any] = ticks.slice(row, 1).to_pylist()[0]
    event["at"] = event["at"].isoformat().replace("+00:00", "Z")
    return {key: value for key, value in event.items() if value is not None}


def _throughput(tell: Tell, facts: dict[str, Any], subscriptions: int) -> None:
    tell(
        f"{facts['events_per_s']:,.0f} events a second",
        f"{facts['events']:,} events against {subscriptions:,} subscriptions in one process: {facts['seconds']:.1f} s.",
        f"They gave {facts['matches']:,} matches, each a row with an id that is the same in every run.",
        **facts,
    )


def _missed(tell: Tell, plan: Plan, rules: dict[str, str], ticks: pa.Table, matches: pa.Table, event: int) -> None:
    """A subscription on the symbol of the event that did not match it, and why."""
    symbol = ticks.column("symbol")[event].as_py()
    rows = zip(*(matches.column(c).to_pylist() for c in ("event", "subscription")), strict=True)
    matched = {name for row, name in rows if row == event}
    start = f"symbol = '{symbol}' AND price"
    watching = [name for name, text in rules.items() if text.startswith(start) and name not in matched]
    if not watching:
        return
    told = str(plan.explain(watching[0], _event(ticks, event)))
    tell(
        "One that did not match, and why",
        *(f"  {line}" for line in told.splitlines()),
        subscription=watching[0],
        text=rules[watching[0]],
        explanation=told,
    )


def _bad_events(tell: Tell, plan: Plan, good: dict[str, Any]) -> None:
    """Two that cannot be used among three: they are told, and the third is matched."""
    bad = [{**good, "price": "a lot"}, {key: value for key, value in good.items() if key != "symbol"}, good]
    found, errors = plan.match(bad, errors="collect")
    rows = errors.to_pylist()
    tell(
        "Bad events are reported, never dropped in silence",
        "The event again, once with a text for its price and once without its symbol. Both are on the error channel,",
        f"and the {found.num_rows} matches of the sound one beside them are there as before:",
        "",
        *(f"  event {row['event']}: {row['reason']}" for row in rows),
        errors=rows,
        matches=found.num_rows,
    )


def _next(tell: Tell, rules: Rules, ticks: pa.Table, save: str | None) -> None:
    headgate = _program()
    where = Path(save or "demo")
    lines = [
        f"{headgate} check {where}/rules.hg",
        f"{headgate} match {where}/rules.hg {where}/ticks.jsonl",
        f"{headgate} match {where}/rules.hg {where}/ticks.jsonl --output counts | head",
    ]
    advice = []
    if save is None:
        advice = ["Keep these rules and some of the ticks as files, break a rule in an editor, and look:", ""]
        lines.insert(0, f"{headgate} demo --save {where}")
    else:
        where.mkdir(parents=True, exist_ok=True)
        (where / "rules.hg").write_text(script(rules), "utf-8")
        with (where / "ticks.jsonl").open("wb") as file:
            for row in range(min(SAVED, ticks.num_rows)):
                file.write(orjson.dumps(_event(ticks, row), option=orjson.OPT_APPEND_NEWLINE))
    tell(
        "What to try next",
        *advice,
        *(f"  {line}" for line in lines),
        "",
        "README.md shows the same in five lines of Python; LANGUAGE.md says what a subscription can be.",
        commands=lines,
    )


def _program() -> str:
    """How this program was called, so that the lines to copy work where it is not on the PATH."""
    called = sys.argv[0]
    if Path(called).name == "__main__.py":
        return f"{Path(sys.executable).name} -m headgate.cli"
    return "headgate" if shutil.which("headgate") or Path(called).name != "headgate" else called


class _Screen:
    """Steps for people: numbered, plain where stdout is no terminal."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._number = 0

    def __call__(self, title: str, *lines: str, **_: Any) -> None:
        self._number += 1
        self._console.print(Text(f"{self._number}. {title}", style="bold cyan"))
        for line in lines:
            self._console.print(f"   {line}".rstrip(), markup=False)
        self._console.print()


def _as_json(title: str, *_: str, **facts: Any) -> None:
    click.echo(orjson.dumps({"step": title, **facts}).decode())

"""`headgate match`: a file of events against a script of subscriptions, in this process.

The file goes through a session batch by batch, so its size does not matter. Matches are the output; what is said about
the run goes to stderr. An event that cannot be used is told there, kept whole with --errors, and stops nothing.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import click
import orjson

from headgate.cli.progress import Reading
from headgate.cli.rules import compiled
from headgate.cli.writers import Writer, writer
from headgate.errors import UsageError
from headgate.events import read
from headgate.plan import Plan
from headgate.results import Problem
from headgate.runtime.rows import latest

SHOWN = 5


@dataclass
class Run:
    """What a run has seen so far."""

    events: int = 0
    matches: int = 0
    rejected: int = 0
    first: list[Problem] = field(default_factory=list)
    """The first few problems."""
    started: float = field(default_factory=time.perf_counter)

    def saw(self, events: int, matches: int, problems: list[Problem]) -> None:
        self.events += events
        self.matches += matches
        self.rejected += len(problems)
        self.first += problems[: SHOWN - len(self.first)]


@click.command()
@click.argument("rules")
@click.argument("events")
@click.option("--stream", help="The stream that the events are of; needed where RULES has several.")
@click.option("--output", type=click.Choice(["matches", "counts"]), default="matches", show_default=True)
@click.option("--out", metavar="FILE", help="Write there: .jsonl, .ndjson, .json (one object a line) or .parquet.")
@click.option("--errors", metavar="FILE", help="Write every rejected event there, with its reason, as JSON lines.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per match, one line each.")
@click.pass_context
def match(
    context: click.Context,
    rules: str,
    events: str,
    stream: str | None,
    output: str,
    out: str | None,
    errors: str | None,
    as_json: bool,
) -> None:
    """Match EVENTS against the subscriptions in RULES.

    RULES is a script of CREATE statements. EVENTS is a file of JSON lines (.jsonl, .ndjson, .json), Parquet (.parquet),
    CSV with a header (.csv), Arrow (.arrow, .feather) or XML messages (.xml). Either may be - for standard input;
    events from there are JSON lines, and are matched as they come. Sequences wait for the end of an instant: their
    matches come with the first event of a later one.

    An event that cannot be used is rejected: it is counted and told on stderr, and the others are matched. The exit
    code is 0 if matching ran, however many events were rejected; 1 if RULES has a mistake or EVENTS cannot be read.
    """
    if rules == events == "-":
        raise UsageError("RULES and EVENTS cannot both be standard input")
    _, plan = compiled(context, rules, as_json)
    run = Run()
    with ExitStack() as stack:
        to = stack.enter_context(writer(out, output, as_json))
        channel = stack.enter_context(writer(errors, "errors", as_json)) if errors else None
        _run(plan, stream_of(plan, stream), events, output, to, channel, run)
    _tell(run, quiet=as_json, kept=errors)


def stream_of(plan: Plan, wanted: str | None) -> str:
    """The stream of the events: the one asked for, or the only one that has subscriptions."""
    known = plan.streams or tuple(plan.schemas)
    if wanted is not None:
        if wanted not in plan.schemas:
            raise UsageError(f"there is no stream {wanted}", f"RULES has {', '.join(known) or 'none'}")
        return wanted
    if len(known) > 1:
        raise UsageError("RULES has subscriptions on several streams", f"say --stream with one of {', '.join(known)}")
    if not known:
        raise UsageError("RULES has no subscriptions", "CREATE SUBSCRIPTION name AS condition;")
    return known[0]


def _run(plan: Plan, stream: str, events: str, output: str, to: Writer, channel: Writer | None, run: Run) -> None:
    schema = plan.schemas[stream]
    totals: Counter[str] = Counter()
    session = plan.session()

    def take(given: Any, until: int | None) -> int:
        if output == "counts" and plan.sequences is None:
            counted, _ = session.whole({stream: given}, "counts", "collect")
            counts = {row["subscription"]: row["count"] for row in counted.to_pylist()}
            totals.update(counts)
            return sum(counts.values())
        found = session.feed({stream: given}, until)
        if output == "counts":
            totals.update(str(s) for s in found.column("subscription").to_pylist())
        else:
            to.table(found)
        return int(found.num_rows)

    def note(events: int, matches: int) -> None:
        problems = session.problems()[run.rejected :]
        run.saw(events, matches, problems)
        if channel is not None:
            channel.rows(p.row() for p in problems)

    with Reading(events) as reading:
        for part in read(events, schema, plan.needs(stream) | set(schema.time), source=reading.source()):
            # The next batch may go on at the time where this one ends: that epoch stays open until then.
            until = latest(part.columns, schema) if plan.sequences is not None else None
            note(len(part.rows) + len(part.rejected), take(part, until))
            reading.found(run.events, run.matches)
    if plan.sequences is not None:
        note(0, take([], None))
    if output == "counts":
        ordered = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
        to.rows({"subscription": name, "count": n} for name, n in ordered)


def _tell(run: Run, *, quiet: bool, kept: str | None) -> None:
    """The end of a run, on stderr. With --json only what was rejected, as one object."""
    if quiet:
        if run.rejected:
            reasons = [f"event {p.event}: {p.said}" for p in run.first]
            told = {"code": "event", "events": run.events, "rejected": run.rejected, "reasons": reasons}
            click.echo(orjson.dumps(told).decode(), err=True)
        return
    seconds = time.perf_counter() - run.started
    rate = f", {run.events / seconds:,.0f} events/s" if run.events >= 10_000 else ""
    click.echo(f"{run.events:,} events, {run.matches:,} matches in {seconds:.1f} s{rate}", err=True)
    if not run.rejected:
        return
    click.echo(f"{run.rejected:,} of the events could not be used:", err=True)
    for p in run.first:
        click.echo(f"  event {p.event}: {p.said}", err=True)
    if run.rejected > len(run.first):
        click.echo(f"  and {run.rejected - len(run.first):,} more", err=True)
    click.echo(f"  hint: {'all of them are in ' + kept if kept else '--errors FILE keeps them all'}", err=True)
    sys.stderr.flush()

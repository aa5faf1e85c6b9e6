"""`headgate explain`: one subscription of a script, and why it matches an event or does not.

The event is a JSON object on the command line, a file of JSON, or `-`. For a sequence it may be a list of events, or an
object that has a list for every stream.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import orjson

from headgate.cli.rules import compiled
from headgate.errors import UsageError
from headgate.explain import Explanation


@click.command()
@click.argument("rules")
@click.argument("name", metavar="ID")
@click.argument("event", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--dot", "picture", flag_value="graphviz", help="Its pictures alone, for Graphviz.")
@click.option("--mermaid", "picture", flag_value="mermaid", help="Its pictures alone, for Mermaid.")
@click.pass_context
def explain(
    context: click.Context, rules: str, name: str, event: str | None, as_json: bool, picture: str | None
) -> None:
    """The plan of one subscription; with an EVENT, why it matched or not.

    RULES is a script of CREATE statements, ID the name of a subscription in it. EVENT is a JSON object, or a file that
    holds one; for a sequence a list of events, JSON lines, or an object with a list for every stream. RULES or EVENT
    may be - for standard input. The exit code is 0 whether it matched or not.
    """
    if rules == event == "-":
        raise UsageError("RULES and EVENT cannot both be standard input")
    subs, plan = compiled(context, rules, as_json)
    why = plan.explain(name, None if event is None else _event(event))
    if picture is not None:
        click.echo(why.graphviz if picture == "graphviz" else why.mermaid)
        return
    by = subs.covered(name).by
    if as_json:
        click.echo(orjson.dumps(as_object(why) | {"covered_by": by}, default=str).decode())
        return
    click.echo(str(why))
    if by:
        click.echo(f"  covered: whatever it matches, {' or '.join(map(str, by))} matches too")


def as_object(why: Explanation) -> dict[str, Any]:
    return {
        "subscription": why.subscription,
        "text": why.text,
        "matched": why.matched,
        "conditions": [
            {"text": a.text, "truth": a.truth, "values": dict(a.values), "note": a.note or None} for a in why.atoms
        ],
        "blocking": why.blocking,
        "story": why.story,
        "lane": why.lane or None,
        "pictures": [{"title": p.title, "graphviz": p.graphviz, "mermaid": p.mermaid} for p in why.pictures],
    }


def _event(given: str) -> Any:
    """An event, or several: JSON in the argument itself, in a file, or on standard input."""
    if given.lstrip()[:1] in ("{", "["):
        return _parsed(given.encode("utf-8", "surrogateescape"), "EVENT")
    try:
        text = sys.stdin.buffer.read() if given == "-" else Path(given).read_bytes()
    except OSError as problem:
        raise UsageError(
            f"cannot read {given}: {problem.strerror}", "EVENT is a JSON object, a file that holds one, or -"
        ) from None
    return _parsed(text, "standard input" if given == "-" else given)


def _parsed(text: bytes, where: str) -> Any:
    lines = [line for line in text.split(b"\n") if line.strip()]
    try:
        value = orjson.loads(text)
    except ValueError as problem:
        try:
            value = [orjson.loads(line) for line in lines]
        except ValueError:
            value = None
        if not value:
            raise UsageError(f"{where} is not JSON: {problem}", 'write it as {"price": 12.5}') from None
    if not isinstance(value, dict | list):
        raise UsageError(f"{where} is not an event", 'an event is a JSON object, such as {"price": 12.5}')
    return value

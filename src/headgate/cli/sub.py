"""`headgate sub`: subscriptions on a broker. Tickets are kept in a file, so that one need not copy them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.options import JSON, broker_extra, together
from headgate.errors import EnvironmentProblem, UnknownName

if TYPE_CHECKING:
    from headgate.broker.client import Client


def _file() -> Path:
    return Path(os.environ.get("HEADGATE_TICKETS") or Path("~/.config/headgate/tickets.json").expanduser())


def _tickets() -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(_file().read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise EnvironmentProblem(f"cannot read the tickets in {_file()}: {problem}") from None
    return found


def _keep(tickets: dict[str, Any]) -> None:
    _file().parent.mkdir(parents=True, exist_ok=True)
    fresh = _file().with_suffix(".new")
    with os.fdopen(os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as f:
        json.dump(tickets, f, indent=1)
    fresh.replace(_file())


def _ticket(url: str, id: str, given: str | None) -> str:
    known = _tickets().get(url, {})
    if given is None and id not in known:
        raise UnknownName(
            f"there is no ticket for {id}", "give it with --ticket; `headgate sub ls` shows what there is"
        )
    return given or str(known[id])


def _client(url: str, key: str | None) -> Client:
    with broker_extra("the broker's client"):
        from headgate.broker.client import Client as Made
    return Made(url, key)


_BROKER = together(
    click.option(
        "--url", default="http://127.0.0.1:8080", envvar="HEADGATE_URL", show_default=True, help="The broker."
    ),
    click.option("--key", default=None, envvar="HEADGATE_KEY", help="An API key, where the broker asks for one."),
    JSON,
)
_TICKET = click.option("--ticket", default=None, help="The ticket, if it is not in the file of tickets.")


@click.group()
def sub() -> None:
    """Subscriptions on a broker: add, rm, ls, renew.

    Tickets are kept in ~/.config/headgate/tickets.json, or where HEADGATE_TICKETS says.
    """


@sub.command()
@click.argument("text")
@click.option("--on", "stream", default=None, help="The stream.")
@click.option("--missing", type=click.Choice(["null", "strict", "default", "total"]), default="null", show_default=True)
@click.option("--validity", type=float, default=None, help="Seconds.  [default: a day]")
@click.option("--name", default=None, help="A name for people.")
@click.option("--webhook", default=None, help="A URL to be called with each notification.")
@click.option("--topic", default=None, help="A Kafka topic to have them in.")
@click.option("--interval", type=float, default=None, help="At most one notification in so many seconds.")
@click.option("--by", default=None, help="With --interval: for each value at this path.")
@_BROKER
def add(
    text: str,
    stream: str | None,
    webhook: str | None,
    topic: str | None,
    interval: float | None,
    by: str | None,
    url: str,
    key: str | None,
    as_json: bool,
    **more: Any,
) -> None:
    """Subscribe to TEXT."""
    kind = "webhook" if webhook else "kafka" if topic else "stream"
    delivery = {"kind": kind, "url": webhook, "topic": topic, "interval": interval, "key": by}
    given = {k: v for k, v in delivery.items() if v is not None}
    with _client(url, key) as broker:
        made = broker.subscribe(text, stream, delivery=given, **more)
    kept = _tickets()
    kept.setdefault(url, {})[made.id] = made.ticket
    _keep(kept)
    shown = {"id": made.id, "ticket": made.ticket, "expires": made.expires}
    if made.signing_key:
        shown["signing_key"] = made.signing_key
    if as_json:
        click.echo(json.dumps(shown))
        return
    click.echo(f"{made.id}  until {_when(made.expires)}")
    if made.signing_key:
        click.echo(f"webhooks are signed with {made.signing_key}")


@sub.command()
@click.argument("id")
@_TICKET
@_BROKER
def rm(id: str, ticket: str | None, url: str, key: str | None, as_json: bool) -> None:
    """Unsubscribe ID."""
    with _client(url, key) as broker:
        broker.unsubscribe(id, _ticket(url, id, ticket))
    kept = _tickets()
    if kept.get(url, {}).pop(id, None):
        _keep(kept)
    click.echo(json.dumps({"id": id, "removed": True}) if as_json else f"{id} is gone")


@sub.command()
@click.argument("id")
@click.option("--validity", type=float, default=None, help="Seconds from now.  [default: a day]")
@_TICKET
@_BROKER
def renew(id: str, validity: float | None, ticket: str | None, url: str, key: str | None, as_json: bool) -> None:
    """Make ID valid for longer."""
    with _client(url, key) as broker:
        until = broker.renew(id, _ticket(url, id, ticket), validity)
    click.echo(json.dumps({"id": id, "expires": until}) if as_json else f"{id}  until {_when(until)}")


@sub.command()
@_BROKER
def ls(url: str, key: str | None, as_json: bool) -> None:
    """List one's own subscriptions."""
    with _client(url, key) as broker:
        for one in broker.subscriptions(_tickets().get(url, {})):
            if as_json:
                click.echo(json.dumps(one))
            else:
                named = f"  {one['name']}" if one["name"] else ""
                click.echo(f"{one['id']}  {one['state']:<7} until {_when(one['expires'])}{named}  {one['text']}")


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))

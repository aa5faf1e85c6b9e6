"""`headgate key`: the API keys of a broker's store. Whoever can open the store and its secret is its owner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.options import JSON, broker_extra, together

if TYPE_CHECKING:
    from headgate.store.keys import Keys

_WHERE = together(
    click.option(
        "--store", default=None, envvar="HEADGATE_STORE", help="As for `headgate serve`.  [default: DATA/broker.db]"
    ),
    click.option(
        "--data",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("headgate-data"),
        show_default=True,
        help="The folder of the broker.",
    ),
    click.option("--secret", default=None, help="As for `headgate serve`."),
    JSON,
)


def _keys(store: str | None, data: Path, secret: str | None) -> Keys:
    with broker_extra():
        from headgate.broker.settings import secret_of
    from headgate.store.database import Database
    from headgate.store.keys import Keys as Made

    data.mkdir(parents=True, exist_ok=True)
    return Made(Database(store or str(data / "broker.db")), secret_of(data, secret))


@click.group()
def key() -> None:
    """API keys of a broker's store: add, ls, rm."""


@key.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(["publish", "subscribe", "admin"]),
    help="What it is for; may be given several times.  [default: publish and subscribe]",
)
@click.option("--rate", type=float, default=None, help="Events a second.")
@click.option("--quota", type=int, default=None, help="Events a day.")
@_WHERE
def add(name: str, scopes: tuple[str, ...], rate: float | None, quota: int | None, as_json: bool, **where: Any) -> None:
    """Make a key for NAME. It is shown once."""
    made, row = _keys(**where).create(name, scopes or ("publish", "subscribe"), rate, quota)
    click.echo(json.dumps({"id": row.id, "key": made}) if as_json else made)


@key.command()
@_WHERE
def ls(as_json: bool, **where: Any) -> None:
    """List the keys."""
    for row in _keys(**where).list():
        state = "revoked" if row.revoked else "valid"
        shown = {"id": row.id, "name": row.name, "scopes": sorted(row.scopes), "rate": row.rate, "quota": row.quota}
        if as_json:
            click.echo(json.dumps({**shown, "state": state}))
        else:
            limits = f"  rate {row.rate or '-'}  quota {row.quota or '-'}"
            click.echo(f"{row.id}  {state:<7}  {','.join(sorted(row.scopes)):<18}{limits}  {row.name}")


@key.command()
@click.argument("id")
@_WHERE
def rm(id: str, as_json: bool, **where: Any) -> None:
    """Revoke the key ID."""
    _keys(**where).revoke(id)
    click.echo(json.dumps({"id": id, "revoked": True}) if as_json else f"{id} is revoked")

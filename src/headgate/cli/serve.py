"""`headgate serve`: the broker and its web page."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import click

from headgate.cli.options import broker_extra
from headgate.errors import UsageError


class JsonLines(logging.Formatter):
    """A log for machines: one JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        said = {"at": round(record.created, 3), "level": record.levelname.lower(), "logger": record.name}
        said["message"] = record.getMessage()
        if record.exc_info:
            said["trace"] = self.formatException(record.exc_info)
        return json.dumps(said)


@click.command(short_help="Run the broker and its web page.")
@click.option(
    "--store",
    default=None,
    envvar="HEADGATE_STORE",
    help="A SQLite file, or postgresql://...; better in HEADGATE_STORE if it has a password.  [default: DATA/broker.db]",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("headgate-data"),
    show_default=True,
    help="A folder of this broker: its secret, Spark's checkpoint, the SQLite file.",
)
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8080, show_default=True, help="0 takes a free one.")
@click.option(
    "--engine",
    type=click.Choice(["spark", "local", "none"]),
    default="spark",
    show_default=True,
    help="Who matches: a Spark query started beside the broker, the broker itself, or a pipeline started elsewhere.",
)
@click.option("--master", default=None, help="The Spark master: local[n] or spark://...  [default: local[2]]")
@click.option("--connect", default=None, help="A Spark Connect server to match on: sc://...")
@click.option("--plans", default=None, help="A folder that all hosts of the cluster see, for compiled plans.")
@click.option(
    "--secret", default=None, help="A file with the secret of tickets and keys; brokers on one store share it."
)
@click.option("--require-keys", is_flag=True, help="Nobody publishes or subscribes without an API key.")
@click.option("--anonymous-rate", type=float, default=None, help="Events a second from one address without a key.")
@click.option("--backlog", type=int, default=1_000_000, show_default=True, help="Events that may wait for matching.")
@click.option("--cap", type=int, default=60_000, show_default=True, help="Notifications of a subscription in a minute.")
@click.option(
    "--allow-host",
    "allow_hosts",
    multiple=True,
    help="A name under which the broker is reached, beside localhost and its address.",
)
@click.option(
    "--trust-proxy", "trusted_proxies", multiple=True, help="The address of a proxy whose X-Forwarded-For is believed."
)
@click.option("--allow-private", is_flag=True, help="Webhooks may call loopback, private and link-local addresses.")
@click.option("--kafka", default=None, help="Servers of a Kafka cluster for delivery into topics.")
@click.option(
    "--kafka-prefix", default="headgate.", show_default=True, help="What the topics of subscribers begin with."
)
@click.option("--name", default=None, help="The name of this broker among its peers.")
@click.option("--peer", "peers", multiple=True, help="The address of another broker; may be given several times.")
@click.option("--link-key", default=None, help="A file with the key of the network of brokers; or HEADGATE_LINK_KEY.")
@click.option("--advertise", default=None, help="The address under which peers reach this broker.")
@click.option("--json", "as_json", is_flag=True, help="The log as JSON objects, one a line.")
def serve(
    store: str | None,
    data: Path,
    host: str,
    port: int,
    master: str | None,
    connect: str | None,
    secret: str | None,
    name: str | None,
    peers: tuple[str, ...],
    link_key: str | None,
    advertise: str | None,
    as_json: bool,
    **settings_as_given: Any,
) -> None:
    """Run the broker and its web page: subscribe, publish and be notified over HTTP."""
    with broker_extra():
        from headgate.broker.http.app import server
        from headgate.broker.settings import Settings, secret_of
    if master and connect:
        raise UsageError("--master and --connect are two ways to one Spark", "give one of them")
    if port == 0:
        port = _free_port(host)
    data.mkdir(parents=True, exist_ok=True)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for quiet in ("httpx", "httpcore", "kafka", "uvicorn", "py4j"):
        logging.getLogger(quiet).setLevel(logging.WARNING)
    settings = Settings(
        store=store or str(data / "broker.db"),
        data=data,
        secret=secret_of(data, secret),
        host=host,
        port=port,
        master=connect or master,
        name=name or f"b{port}",
        peers=peers,
        link_key=_link_key(link_key, peers),
        advertise=advertise or f"http://{host}:{port}",
        **settings_as_given,
    )
    began = time.monotonic()
    running = server(settings)
    logging.getLogger("headgate.broker").info(
        "broker %s at http://%s:%s, engine %s (%.1f s)",
        settings.name,
        host,
        port,
        settings.engine,
        time.monotonic() - began,
    )
    # The server ends gracefully on a signal, and then raises it again; by then it has done what it says.
    signal.signal(signal.SIGTERM, lambda *_: None)
    running.run()


def _free_port(host: str) -> int:
    import socket

    with socket.socket() as s:
        s.bind((host, 0))
        return int(s.getsockname()[1])


def _link_key(file: str | None, peers: tuple[str, ...]) -> bytes:
    said = os.environ.get("HEADGATE_LINK_KEY", "").encode()
    if file is not None:
        try:
            said = Path(file).read_bytes().strip()
        except OSError as problem:
            raise UsageError(f"cannot read the link key {file}: {problem.strerror}") from None
    if peers and not said:
        raise UsageError("links between brokers are authenticated", "give --link-key FILE, the same to all of them")
    if said and len(said) < 16:
        raise UsageError("the link key is too short", "give at least 16 bytes of randomness")
    return said

"""`headgate run CONFIG`: start the streaming pipeline and show what it does, until it ends or is interrupted."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import click


@click.command(short_help="Start the streaming pipeline of a configuration.")
@click.argument("config", type=click.Path(dir_okay=False))
@click.option("--check", is_flag=True, help="Only check the configuration.")
@click.option("--json", "as_json", is_flag=True, help="Progress as JSON objects on stdout, one line a micro-batch.")
def run(config: str, check: bool, as_json: bool) -> None:
    """Start the streaming pipeline of CONFIG on Spark.

    It matches the streams of CONFIG with the book of its store, and follows the book as it changes.

    CONFIG is a TOML file: see `headgate.spark.config` for its keys.
    """
    from headgate.spark.config import load

    described = load(config)
    if check:
        click.echo(json.dumps({"config": config, "fine": True}) if as_json else f"{config}: fine")
        return
    from headgate.spark.launch import launch

    running = launch(described)
    live = sys.stderr.isatty() and not as_json
    click.echo(f"{described.name} runs; interrupt to stop it", err=True)
    shown = -1
    try:
        while not running.wait(1.0):
            numbers = running.metrics.numbers
            if live:
                click.echo(f"\r\x1b[2K{running.metrics}", err=True, nl=False)
            elif numbers.batches_total != shown:
                shown = numbers.batches_total
                click.echo(json.dumps(asdict(numbers)) if as_json else str(running.metrics), err=not as_json)
    except KeyboardInterrupt:
        running.stop()
    if live:
        click.echo("", err=True)
    click.echo(str(running.metrics), err=True)

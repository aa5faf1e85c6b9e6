"""`headgate run CONFIG`: start the streaming pipeline and show what it does, until it ends or is interrupted."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from headgate.spark.config import Config


@click.command(short_help="Start the streaming pipeline of a configuration.")
@click.argument("config", type=click.Path(dir_okay=False))
@click.option("--check", is_flag=True, help="Only check the configuration.")
@click.option("--state", is_flag=True, help="Print what the sequences of the checkpoint wait for, and end.")
@click.option("--rebucket", type=int, metavar="N", help="Deal the state of the checkpoint out over N buckets, and end.")
@click.option("--json", "as_json", is_flag=True, help="Progress as JSON objects on stdout, one line a micro-batch.")
def run(config: str, check: bool, state: bool, rebucket: int | None, as_json: bool) -> None:
    """Start the streaming pipeline of CONFIG on Spark.

    It matches the streams of CONFIG with the book of its store, and follows the book as it changes.

    CONFIG is a TOML file: see `headgate.spark.config` for its keys.
    """
    from headgate.spark.config import load

    described = load(config)
    if check:
        click.echo(json.dumps({"config": config, "fine": True}) if as_json else f"{config}: fine")
        return
    if state:
        _state(described, as_json)
        return
    if rebucket is not None:
        _rebucket(described, rebucket, as_json)
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


def _state(config: Config, as_json: bool) -> None:
    from headgate.spark.session import spark_session
    from headgate.spark.stateful.inspection import held, require_state
    from headgate.store import Store

    require_state(config.checkpoint)
    found = list(held(spark_session(config.master, config.name, config.spark), config.checkpoint, Store(config.store)))
    if as_json:
        for one in found:
            click.echo(json.dumps(asdict(one)))
        return
    click.echo(f"{'bucket':>6}  {'runs':>9}  {'waiting':>9}  {'bytes':>11}  subscription (group)")
    for one in found:
        if one.runs or one.waiting:
            line = f"{one.bucket:>6}  {one.runs:>9,}  {one.waiting:>9,}  {one.bytes:>11,}"
            click.echo(f"{line}  {one.subscription} ({one.group})")
    click.echo(f"{sum(one.runs for one in found):,} runs")


def _rebucket(config: Config, buckets: int, as_json: bool) -> None:
    from headgate.spark.session import spark_session
    from headgate.spark.stateful.inspection import rebucket, require_state
    from headgate.store import Store

    require_state(config.checkpoint)
    spark = spark_session(config.master, config.name, config.spark)
    before = rebucket(spark, config.checkpoint, Store(config.store), buckets)
    said = {"checkpoint": config.checkpoint, "before": before, "buckets": buckets}
    text = f"{config.checkpoint}: {before} buckets are {buckets} now; set buckets = {buckets} in [sequences], or leave it out"
    click.echo(json.dumps(said) if as_json else text)

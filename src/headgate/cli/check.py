"""`headgate check`: parse and type-check a script, and report all its mistakes at once.

The mistakes are what was asked for, so they go to stdout, as a linter's do.
"""

from __future__ import annotations

import sys
from collections import Counter

import click

from headgate.cli.problems import each, show
from headgate.cli.progress import busy
from headgate.cli.rules import book, title
from headgate.errors import HeadgateError, LanguageErrors
from headgate.subscriptions import Subscriptions


@click.command()
@click.argument("rules")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per mistake, one line each; else nothing.")
@click.pass_context
def check(context: click.Context, rules: str, as_json: bool) -> None:
    """Parse and type-check RULES; every mistake with its place and a hint.

    RULES is a script of CREATE statements (see LANGUAGE.md), or - for standard input. Exit code 1 if there is a
    mistake.
    """
    try:
        with busy(f"checking {title(rules)}"):
            made = book(rules)
    except LanguageErrors as problems:
        show(problems, as_json, title(rules), sys.stdout)
        if not as_json:
            click.echo(f"\n{title(rules)}: {_count(len(each(problems)), 'mistake')}")
        context.exit(1)
    except HeadgateError as problem:
        show(problem, as_json, file=sys.stdout)
        context.exit(1)
    if not as_json:
        click.echo(f"{title(rules)}: {_summary(made)}")


def _summary(made: Subscriptions) -> str:
    on = Counter(made[name].stream for name in made)
    if not made:
        return "no mistakes, and no subscriptions"
    streams = ", ".join(f"{_count(n, 'subscription')} on {stream}" for stream, n in sorted(on.items()))
    return f"no mistakes: {streams}"


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"

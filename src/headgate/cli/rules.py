"""The argument RULES: a script of CREATE statements in a file, or `-` for standard input."""

from __future__ import annotations

import sys

import click

from headgate.cli.problems import show
from headgate.cli.progress import busy
from headgate.errors import LanguageErrors, UsageError
from headgate.plan import Plan
from headgate.subscriptions import Subscriptions


def title(rules: str) -> str:
    """What to call the script in messages."""
    return "standard input" if rules == "-" else rules


def book(rules: str) -> Subscriptions:
    """The subscriptions of a script; all its mistakes are raised together."""
    if rules != "-":
        return Subscriptions.load(rules)
    try:
        script = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("standard input is not UTF-8 text") from None
    return Subscriptions.parse(script)


def compiled(context: click.Context, rules: str, as_json: bool) -> tuple[Subscriptions, Plan]:
    """The subscriptions of a script and their plan. Its mistakes are shown, and end the program."""
    try:
        with busy(f"compiling {title(rules)}"):
            subscriptions = book(rules)
            return subscriptions, subscriptions.compile()
    except LanguageErrors as problems:
        show(problems, as_json, title(rules))
        context.exit(1)

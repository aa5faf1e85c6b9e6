"""The argument RULES: a script of CREATE statements in a file, or `-` for standard input."""

from __future__ import annotations

import sys

from headgate.errors import UsageError
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

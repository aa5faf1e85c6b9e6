"""What several verbs share: groups of options, and the extra that the broker's verbs need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

import click

from headgate.errors import EnvironmentProblem

Decorator = Callable[[Any], Any]
JSON = click.option("--json", "as_json", is_flag=True, help="The answer as JSON.")


def together(*options: Decorator) -> Decorator:
    """Options that always go together, as one decorator."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


@contextmanager
def broker_extra(what: str = "the broker") -> Iterator[None]:
    """Around imports of what only the extra `broker` installs."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise EnvironmentProblem(f"{what} needs {missing.name}", "pip install 'headgate[broker]'") from None

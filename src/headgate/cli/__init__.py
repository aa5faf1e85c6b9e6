"""The command line: one file per verb.

A verb is imported when it is called, so that `headgate --help` does not wait for engines it will not use. What goes
wrong ends in one place, here, with one of three exit codes: 0 fine, 1 the input is wrong, 2 the environment is wrong.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from headgate.cli.problems import show
from headgate.errors import EnvironmentProblem, HeadgateError, UsageError

FINE, INPUT, ENVIRONMENT, INTERRUPTED = 0, 1, 2, 130

VERBS = {
    "check": "Parse and type-check RULES; every mistake with its place and a hint.",
    "explain": "The plan of one subscription; with an EVENT, why it matched or not.",
    "match": "Match EVENTS against the subscriptions in RULES.",
    "run": "Start the streaming pipeline of CONFIG on Spark.",
    "serve": "Run the broker and its web page.",
    "sub": "Subscriptions on a broker: add, rm, ls, renew.",
    "key": "API keys of a broker's store: add, ls, rm.",
    "bench": "Run the benchmark NAME and print its figures.",
    "demo": "A guided run: ten thousand subscriptions on a stream of stock ticks.",
    "doctor": "Say what this machine lacks, and how to get it.",
}
"""The summaries stand here as well as in the verbs, because to list them must not import them."""


class Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        found: click.Command = getattr(import_module(f"headgate.cli.{cmd_name}"), cmd_name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Before click sees it, for which it is a failure.
            return _quietly()

    def main(self, args: Sequence[str] | None = None, *rest: Any, **more: Any) -> NoReturn:
        """Run, and exit: click's own exit codes are not ours."""
        more["standalone_mode"] = False
        given = list(sys.argv[1:] if args is None else args)
        sys.exit(_guarded(lambda: super(Verbs, self).main(given, *rest, **more), "--json" in given))


def _guarded(run: Any, as_json: bool) -> int:
    """The exit code of `run`, its problem told on stderr."""
    try:
        code = run()
        sys.stdout.flush()
        return code if isinstance(code, int) else FINE
    except HeadgateError as problem:
        show(problem, as_json)
        return ENVIRONMENT if isinstance(problem, EnvironmentProblem) else INPUT
    except click.exceptions.NoArgsIsHelpError as asked:
        asked.show()
        return INPUT
    except click.ClickException as problem:
        context = getattr(problem, "ctx", None)
        hint = f"try '{context.command_path} --help'" if context is not None else ""
        show(UsageError(problem.format_message(), hint), as_json)
        return INPUT
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        return _quietly()
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename else ""
        show(EnvironmentProblem(f"{where}{problem.strerror or problem}"), as_json)
        return ENVIRONMENT


def _quietly() -> int:
    """Whoever read our output has enough, as `head` has. What is still in the buffer must not be written again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return FINE


@click.command("headgate", cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="headgate", message="%(prog)s %(version)s")
def main() -> None:
    """Match streams of events against very many standing subscriptions.

    `-` in the place of a file is standard input, and every command has --json. Exit codes: 0 fine, 1 the input is
    wrong, 2 the environment is wrong.
    """

"""How problems are told: drawn with a caret for people, one JSON object a line for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import IO, Any

from headgate.errors import HeadgateError, LanguageError, LanguageErrors


def each(problem: HeadgateError) -> list[HeadgateError]:
    """The single problems in one that may gather several."""
    return list(problem.errors) if isinstance(problem, LanguageErrors) else [problem]


def show(problem: HeadgateError, as_json: bool, source: str = "", file: IO[str] | None = None) -> None:
    """Tell a problem, on stderr unless a file is given; `source` is the file that the problem is in."""
    out = file or sys.stderr
    if as_json:
        out.writelines(json.dumps(as_object(one), ensure_ascii=False) + "\n" for one in each(problem))
        return
    from rich.console import Console

    console = Console(file=out, highlight=False, soft_wrap=True)
    for number, one in enumerate(each(problem)):
        if number:
            console.print()
        for text, style in _drawn(one, source):
            console.print(text, style=style, markup=False, end="")


def as_object(problem: HeadgateError) -> dict[str, Any]:
    place = problem.place if isinstance(problem, LanguageError) else None
    return {
        "code": problem.code,
        "message": problem.message,
        "hint": problem.hint or None,
        "line": place and place.line,
        "column": place and place.column,
        "excerpt": place and place.excerpt,
    }


def _drawn(problem: HeadgateError, source: str) -> Iterator[tuple[str, str]]:
    """The same words as `str(problem)`, with the file in front, in pieces with their styles."""
    place = problem.place if isinstance(problem, LanguageError) else None
    where = [source] if source else []
    if place is not None:
        where.append(f"line {place.line}, column {place.column}")
    yield ", ".join(where) + ": " if where else "error: ", "bold"
    yield f"{problem.message}\n", "bold red"
    if place is not None:
        line, caret = place.caret().split("\n")
        yield f"  {line}\n", ""
        yield f"  {caret}\n", "red"
    if problem.hint:
        yield "  hint: ", "cyan"
        yield f"{problem.hint}\n", ""

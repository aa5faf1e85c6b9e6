"""A file of events, by its suffix."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any

from headgate.errors import UsageError
from headgate.events.csv import read_csv
from headgate.events.json_lines import read_json_lines
from headgate.events.outcome import DEFAULT_LIMITS, Decoded, Limits, Needs
from headgate.events.tabular import read_arrow, read_parquet
from headgate.events.xml import read_xml
from headgate.schema import Schema

_READERS: dict[str, Callable[..., Iterator[Decoded]]] = {
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json_lines,
    ".parquet": read_parquet,
    ".csv": read_csv,
    ".arrow": read_arrow,
    ".feather": read_arrow,
    ".xml": read_xml,
}


def read(
    path: str | os.PathLike[str],
    schema: Schema,
    needs: Needs = None,
    *,
    first: int = 0,
    limits: Limits = DEFAULT_LIMITS,
    source: Any = None,
) -> Iterator[Decoded]:
    """Batches of the events of a file; `-` is JSON lines from standard input.

    `source` is an open binary file to read in place of the path, whose suffix still tells the format.
    """
    reader: Any = read_json_lines
    if os.fspath(path) != "-":
        suffix = PurePath(path).suffix.lower()
        if suffix not in _READERS:
            raise UsageError(
                f"cannot tell the format of {os.fspath(path)} by its suffix {suffix!r}",
                f"supported are {', '.join(_READERS)}, and - for JSON lines from standard input",
            )
        reader = _READERS[suffix]
    return reader(path if source is None else source, schema, needs, first=first, limits=limits)  # type: ignore[no-any-return]  # numpy and Arrow give Any here

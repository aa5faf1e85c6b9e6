"""What a person at a terminal sees of long work. It goes to stderr, and only if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def busy(what: str) -> Iterator[None]:
    """A spinner beside work that cannot say how far it is."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


class Reading:
    """A file of events on its way through: a bar where its size is known, and how many events and matches so far."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._bar: Any = None
        self._task: Any = None
        self._file: Any = None

    def __enter__(self) -> Reading:
        if not sys.stderr.isatty():
            return self
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        found = TextColumn("{task.fields[found]}")
        columns = (TextColumn("{task.description}"), BarColumn(), found, TimeElapsedColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task("matching", total=None, found="")
        return self

    def source(self) -> Any:
        """What to read in place of the path, so that the bar knows how far it is; None to read the path itself.

        Files that are read by column jump about and tell nothing by the number of bytes read.
        """
        path = Path(self._path)
        if self._bar is None or path.suffix in (".parquet", ".arrow", ".feather") or not path.is_file():
            return None
        self._file = self._bar.open(self._path, "rb", task_id=self._task)
        return self._file

    def found(self, events: int, matches: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, found=f"{events:,} events, {matches:,} matches")

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
        if self._bar is not None:
            self._bar.stop()

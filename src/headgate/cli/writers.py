"""Where results go: lines for people, JSON lines, or a Parquet file.

A file appears under its name only when it is whole: a run that broke off leaves nothing that looks finished.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.errors import UsageError
from headgate.results import MATCHES
from headgate.runtime.rows import counts_table

Row = Mapping[str, Any]
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
COUNTS = counts_table({}).schema


class Writer(Protocol):
    def table(self, matches: pa.Table) -> None: ...
    def rows(self, rows: Iterable[Row]) -> None: ...


class JsonLines:
    """One object a line. `output` and `labels`, which are JSON already, become objects and not texts."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def table(self, matches: pa.Table) -> None:
        for batch in matches.to_batches(max_chunksize=10_000):
            rows = batch.to_pylist()
            for row in rows:
                for name in ("output", "labels"):
                    if row[name] is not None:
                        row[name] = orjson.Fragment(row[name])
            self.rows(rows)

    def rows(self, rows: Iterable[Row]) -> None:
        self._file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
        self._file.flush()


class Lines:
    """For people: one line a match, or a count and its name."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def table(self, matches: pa.Table) -> None:
        for batch in matches.to_batches(max_chunksize=10_000):
            lines = []
            for row in batch.to_pylist():
                labels = "".join(f"  {k}={v}" for k, v in orjson.loads(row["labels"] or b"{}").items())
                lines.append(f"{row['stream']} {row['event']:<8} {row['subscription']}{labels}\n")
            self._file.write("".join(lines))
            self._file.flush()

    def rows(self, rows: Iterable[Row]) -> None:
        self._file.writelines(f"{row['count']:>12,}  {row['subscription']}\n" for row in rows)


class Parquet:
    def __init__(self, path: str, schema: pa.Schema) -> None:
        self._schema = schema
        self._file = pq.ParquetWriter(path, schema)

    def table(self, matches: pa.Table) -> None:
        if matches.num_rows:
            self._file.write_table(matches)

    def rows(self, rows: Iterable[Row]) -> None:
        self.table(pa.Table.from_pylist([dict(row) for row in rows], self._schema))

    def close(self) -> None:
        self._file.close()


@contextmanager
def writer(path: str | None, kind: str, as_json: bool) -> Iterator[Writer]:
    """Matches, counts or errors to a file, or to stdout where there is none."""
    if path is None or path == "-":
        yield JsonLines(sys.stdout.buffer) if as_json or kind == "errors" else Lines(sys.stdout)
        return
    suffix = Path(path).suffix.lower()
    parquet = suffix == ".parquet" and kind != "errors"
    if not parquet and suffix not in JSON_SUFFIXES and not _special(path):
        known = (*JSON_SUFFIXES, *(() if kind == "errors" else (".parquet",)))
        raise UsageError(
            f"cannot tell the format of {path} by its suffix {suffix!r}", f"supported are {', '.join(known)}"
        )
    with _whole(path) as unfinished:
        if parquet:
            columns = Parquet(unfinished, MATCHES if kind == "matches" else COUNTS)
            try:
                yield columns
            finally:
                columns.close()
        else:
            with open(unfinished, "wb") as file:  # noqa: PTH123 - a path of the command line, taken as it is
                yield JsonLines(file)


def _special(path: str) -> bool:
    """A device or a pipe, which can only be written in place."""
    at = Path(path)
    return at.exists() and not at.is_file() and not at.is_dir()


@contextmanager
def _whole(path: str) -> Iterator[str]:
    """A name to write under; it becomes `path` if all went well."""
    if _special(path):
        yield path
        return
    unfinished = f"{path}.unfinished"
    try:
        with open(unfinished, "wb"):  # noqa: PTH123 - a path of the command line, taken as it is
            pass
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {problem.strerror}") from None
    try:
        yield unfinished
        Path(unfinished).replace(path)
    finally:
        Path(unfinished).unlink(missing_ok=True)

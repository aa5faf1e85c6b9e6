"""CSV with a header line. Everything is read as text and converted here, so that one bad field costs one row.

A header names attributes as a subscription does: `addr.city` is the path. An empty field is missing; a quoted empty
field of a STRING is the empty text. Rows are cut here and given to Arrow's parser whole, so that a row beyond the limit
costs itself alone. A quote that is never closed swallows rows, so the row that did it is rejected.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from headgate.columns import Column
from headgate.errors import SchemaError
from headgate.events import sources
from headgate.events.any_values import of_objects
from headgate.events.decoder import assemble, decode
from headgate.events.outcome import DEFAULT_LIMITS, SHOWN, Decoded, Limits, Misfit, Needs, show, shown_text, too_large
from headgate.events.texts import fit_text, text_column, written
from headgate.results import Problem
from headgate.schema import Attribute, Schema

if TYPE_CHECKING:
    from headgate.columns import Mask


def read_csv(
    source: sources.Bytes,
    schema: Schema,
    needs: Needs = None,
    *,
    first: int = 0,
    limits: Limits = DEFAULT_LIMITS,
    delimiter: str = ",",
) -> Iterator[Decoded]:
    """Batches of events. Rejected are rows with too few or too many fields, and rows beyond `event_bytes`."""
    needs = None if needs is None else list(needs)
    names: list[str] = []
    with sources.opened(source) as file:
        for block in _blocks(file, delimiter, limits.event_bytes):
            if isinstance(block, Misfit):
                if not names:
                    raise SchemaError(f"the CSV header cannot be read: {block.reason}")
                yield _nothing(schema, [Problem(schema.stream, first, block.code, block.reason, block.shown or "")])
                first += 1
                continue
            try:
                text, dirty = block.decode(), False
            except UnicodeDecodeError:
                text, dirty = block.decode("utf-8", "replace"), True
            rows = text.encode() if dirty else block
            if not names and rows.strip():
                names, rows = _header(rows, delimiter)
            for decoded in _decoded(rows, names, delimiter, dirty, schema, needs, first, limits):
                yield decoded
                first += len(decoded.rows) + len(decoded.rejected)


def _decoded(
    rows: bytes, names: list[str], delimiter: str, dirty: bool, schema: Schema, needs: Needs, first: int, limits: Limits
) -> Iterator[Decoded]:
    """The events of a block of whole rows."""
    invalid: list[Any] = []
    try:
        table = _parsed(rows, names, delimiter, invalid)
    except pa.ArrowInvalid as problem:
        if "Empty CSV file" not in str(problem):
            yield _nothing(
                schema, [Problem(schema.stream, first, "csv", f"{len(rows):,} bytes cannot be read: {problem}")]
            )
        return
    numbers = first + np.setdiff1d(np.arange(table.num_rows + len(invalid)), [row.number - 1 for row in invalid])
    for start in range(0, table.num_rows, limits.batch_rows):
        part, at = table.slice(start, limits.batch_rows), numbers[start : start + limits.batch_rows]
        decoded = assemble(_Fields(part, dirty, limits), schema, needs, int(at[0]), {}, numbers=at)
        before = [row for row in invalid if first + row.number - 1 < at[-1]]
        del invalid[: len(before)]
        problems = [*decoded.rejected, *(_wrong_width(row, schema, first) for row in before)]
        yield replace(decoded, rejected=tuple(sorted(problems, key=attrgetter("event"))))
    if invalid:
        yield _nothing(schema, [_wrong_width(row, schema, first) for row in invalid])


def _header(rows: bytes, delimiter: str) -> tuple[list[str], bytes]:
    """The names in the first row of a file, and the rows behind it."""
    rows = rows.lstrip(b"\r\n")
    row = re.match(_row(delimiter).encode(), rows)
    end = len(rows) if row is None else row.end()
    try:
        names: list[str] = _parsed(rows[:end], None, delimiter, []).schema.names
    except pa.ArrowInvalid as problem:
        raise SchemaError(f"the CSV header cannot be read: {problem}") from None
    if len(set(names)) != len(names):
        raise SchemaError(f"the CSV header names a column twice: {', '.join(names)[:200]}")
    return names, rows[end:]


def _parsed(rows: bytes, names: list[str] | None, delimiter: str, invalid: list[Any]) -> pa.RecordBatch:
    """All rows as texts; `invalid` gets those of another width."""

    def note(row: Any) -> Literal["skip"]:
        invalid.append(row)
        return "skip"

    read = arrow_csv.ReadOptions(use_threads=False, block_size=len(rows) + 2, column_names=names)
    parse = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note)
    convert = arrow_csv.ConvertOptions(
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        column_types=dict.fromkeys(names or (), pa.string()),
    )
    table = arrow_csv.read_csv(io.BytesIO(b"\n" + rows), read, parse, convert)
    columns: list[Any] = [pa.concat_arrays(c.chunks) if c.num_chunks else pa.array([], c.type) for c in table.columns]
    return pa.record_batch(columns, table.schema.names)


def _row(delimiter: str) -> str:
    """A row and its end, as a pattern. Possessive, so that no text makes it try twice. A quote counts where a field begins."""
    text = f"[^{re.escape(delimiter)}\\r\\n]*+"
    field = f'(?:"(?:[^"]++|"")*+"{text}|(?!"){text})'
    return f"{field}(?:{re.escape(delimiter)}{field})*+(?:\\r?\\n|\\r(?=[^\\n]))"


def _blocks(file: Any, delimiter: str, limit: int) -> Iterator[bytes | Misfit]:
    """Blocks of whole rows, and what stands for a row that is not given: too long, or a quote without an end."""
    row = re.compile(_row(delimiter).encode())
    rows = re.compile(b"(?:" + row.pattern + b")*+")
    held = b""
    # As much again as is held: a long row is looked at a few times, not once for each chunk.
    while chunk := file.read(max(sources.CHUNK, len(held))):
        held += chunk
        end = _end(rows, held)
        yield from _within(held[:end], row, limit)
        held = held[end:]
        if len(held) > limit:
            size, rest = _skipped(held, file)
            yield _too_long(held, size, limit)
            held = rest
    end = _end(rows, held + b"\n")
    yield from _within(held[:end], row, limit)
    if b"\n" in held[end:]:
        reason = "a quote is opened and never closed, so the rest of the file is one field"
        yield _shown(Misfit(reason, "csv"), held[end:])
    else:
        yield held[end:]


def _end(rows: re.Pattern[bytes], held: bytes) -> int:
    """Where the last whole row ends."""
    if b'"' not in held and (end := held.rfind(b"\n") + 1):
        return end  # without quotes every line is a row, and the pattern is slow
    whole = rows.match(held)
    assert whole is not None, "no row is a match too"
    return whole.end()


def _within(block: bytes, row: re.Pattern[bytes], limit: int) -> Iterator[bytes | Misfit]:
    """A block without the rows that are too long."""
    start = 0
    if len(block) > limit:
        for one in row.finditer(block):
            if one.end() - one.start() > limit:
                yield block[start : one.start()]
                yield _too_long(one[0], len(one[0]), limit)
                start = one.end()
    yield block[start:]


def _skipped(held: bytes, file: Any) -> tuple[int, bytes]:
    """The size of a row whose beginning is held, and what was read behind its end: a line that ends outside quotes."""
    inside, size = bool(held.count(b'"') % 2), len(held)
    while chunk := file.read(sources.CHUNK):
        at = 0
        for part in chunk.split(b'"'):
            if not inside and b"\n" in part:
                end = at + part.index(b"\n")
                return size + end, chunk[end + 1 :]
            at, inside = at + len(part) + 1, not inside
        inside, size = not inside, size + len(chunk)
    return size, b""


def _too_long(row: bytes, size: int, limit: int) -> Misfit:
    return _shown(too_large(size, Limits(event_bytes=limit)), row)


def _shown(problem: Misfit, row: bytes) -> Misfit:
    problem.shown = shown_text(row[: 4 * SHOWN])
    return problem


class _Fields:
    """A batch of rows as columns of text, by the names in the header."""

    def __init__(self, batch: pa.RecordBatch, dirty: bool, limits: Limits) -> None:
        self.rows = batch.num_rows
        self._batch = batch
        self._dirty = dirty
        self._limits = limits

    def text(self, row: int) -> str:
        fields = zip(self._batch.schema.names, self._batch.slice(row, 1).columns, strict=True)
        return show({name: f[0].as_py() for name, f in fields if f[0].is_valid})

    def column(self, attribute: Attribute) -> tuple[Column, Mask | None]:
        array = self._array(attribute)
        if attribute.type is None:
            return of_objects([None] * self.rows if array is None else [written(v) for v in array.to_pylist()]), None
        if array is None:
            return Column.missing(attribute.type, self.rows), None
        column, bad = text_column(array, attribute.type, self._limits)
        if self._dirty:
            broken: Any = pc.match_substring(array, "\ufffd")
            mask: Mask = broken.fill_null(False).to_numpy(zero_copy_only=False)
            bad = mask if bad is None else bad | mask
        return column, bad

    def misfit(self, row: int, attribute: Attribute) -> Misfit:
        array = self._array(attribute)
        assert array is not None and attribute.type is not None
        text = array[row].as_py()
        if self._dirty and "\ufffd" in text:
            return Misfit("the text is not UTF-8", "encoding")
        try:
            fit_text(text, attribute.type, self._limits)
        except Misfit as problem:
            return problem
        return Misfit(f"the field is not a {attribute.type}")

    def typed(self, attribute: Attribute) -> bool:
        return False

    def _array(self, attribute: Attribute) -> Any:
        names = self._batch.schema.names
        for name in (attribute.name, ".".join(attribute.path)):
            if name in names:
                return self._batch.column(names.index(name))
        return None


def _wrong_width(row: Any, schema: Schema, first: int) -> Problem:
    reason = f"the row has {row.actual_columns} fields, the header has {row.expected_columns}"
    return Problem(schema.stream, first + row.number - 1, "csv", reason, shown_text(row.text))


def _nothing(schema: Schema, rejected: list[Problem]) -> Decoded:
    return replace(decode([], schema), rejected=tuple(rejected))

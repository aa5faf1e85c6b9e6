"""CSV with a header line. Everything is read as text and converted here, so that one bad field costs one row.

A header names attributes as a subscription does: `addr.city` is the path. An empty field is missing; a quoted empty
field of a STRING is the empty text. A quote that is never closed swallows rows, so the row that did it is rejected.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from headgate.columns import Column
from headgate.errors import SchemaError
from headgate.events.any_values import of_arrow
from headgate.events.decoder import assemble, decode
from headgate.events.outcome import DEFAULT_LIMITS, Decoded, Limits, Misfit, Needs, show, shown_text
from headgate.events.sources import Bytes, opened
from headgate.events.texts import fit_text, text_column
from headgate.results import Problem
from headgate.schema import Attribute, Schema

if TYPE_CHECKING:
    from headgate.columns import Ints, Mask

_HEAD = 1 << 20


def read_csv(
    source: Bytes,
    schema: Schema,
    needs: Needs = None,
    *,
    first: int = 0,
    limits: Limits = DEFAULT_LIMITS,
    delimiter: str = ",",
) -> Iterator[Decoded]:
    """Batches of events. Rejected are rows with too few or too many fields, and the rest of a file that breaks off."""
    needs = None if needs is None else list(needs)
    invalid: list[Any] = []
    row = 0
    with opened(source) as file:
        clean = _Clean(file)
        for batch, last in _batches(clean, delimiter, invalid, limits):
            if isinstance(batch, str):
                _, numbers = _numbers(1, row, invalid)
                reason = f"the rest of the file cannot be read: {batch}"
                yield _nothing(schema, [Problem(schema.stream, first + int(numbers[0]), "csv", reason)])
                break
            for start in range(0, batch.num_rows, limits.batch_rows):
                part = batch.slice(start, limits.batch_rows)
                before, numbers = _numbers(part.num_rows, row, invalid)
                row = int(numbers[-1]) + 1
                fields = _Fields(part, clean.dirty, limits)
                rejected = {}
                if last and start + part.num_rows == batch.num_rows and clean.odd and fields.swallowed():
                    at = part.num_rows - 1
                    reason = "a quote is opened and never closed, so the rest of the file is one field"
                    rejected[at] = Misfit(reason, "csv")
                number = first + numbers
                decoded = assemble(fields, schema, needs, int(number[0]), rejected, numbers=number)
                problems = [*decoded.rejected, *(_wrong_width(r, schema, first) for r in before)]
                yield replace(decoded, rejected=tuple(sorted(problems, key=attrgetter("event"))))
    if invalid:
        yield _nothing(schema, [_wrong_width(r, schema, first) for r in invalid])


def _batches(file: Any, delimiter: str, invalid: list[Any], limits: Limits) -> Iterator[tuple[Any, bool]]:
    """The batches of a file, each with whether it is the last; a text in place of a batch says why it broke off."""

    def options(handler: Any) -> arrow_csv.ParseOptions:
        return arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=handler)

    def note(row: Any) -> str:
        invalid.append(row)
        return "skip"

    read = arrow_csv.ReadOptions(use_threads=False, block_size=limits.field_bytes)
    convert = arrow_csv.ConvertOptions(null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False)
    held = None
    try:
        # The names must be known before the types can be given, and only a type given is a type kept.
        head = io.BytesIO(file.peek())
        names = arrow_csv.open_csv(head, read, options(lambda row: "skip"), convert).schema.names
        if len(set(names)) != len(names):
            raise SchemaError(f"the CSV header names a column twice: {', '.join(names)[:200]}")
        convert.column_types = dict.fromkeys(names, pa.string())
        for batch in arrow_csv.open_csv(file, read, options(note), convert):
            if held is not None:
                yield held, False
            held = batch if batch.num_rows else held
    except pa.ArrowInvalid as problem:
        if held is not None:
            yield held, False
        if "Empty CSV file" not in str(problem):
            yield str(problem), True
        return
    if held is not None:
        yield held, True


class _Clean:
    """A file as UTF-8 without fail. Arrow cannot hand over a malformed row that is not, so bad bytes become U+FFFD;
    from then on `dirty` is set and a field that holds one is rejected. Counts the quotes on the way."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = b""
        self.odd = self.dirty = self._ended = False

    def peek(self) -> bytes:
        self._held += self._more(_HEAD)
        return self._held

    def read(self, size: int = -1) -> bytes:
        while not self._held:
            self._held = self._more(_HEAD)
            if not self._held and self._ended:
                return b""
        cut = size if size >= 0 else len(self._held)
        chunk, self._held = self._held[:cut], self._held[cut:]
        self.odd ^= bool(chunk.count(b'"') % 2)
        return chunk

    def _more(self, size: int) -> bytes:
        if self._ended:
            return b""
        raw = self._file.read(size)
        text = self._decoder.decode(raw, final=not raw)
        self._ended = not raw
        self.dirty |= text.count("\ufffd") > raw.count("\ufffd".encode())
        return text.encode()


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

    def swallowed(self) -> bool:
        return "\n" in (self._batch.columns[-1][self.rows - 1].as_py() or "")

    def column(self, attribute: Attribute) -> tuple[Column, Mask | None]:
        array = self._array(attribute)
        if attribute.type is None:
            return of_arrow(pa.nulls(self.rows) if array is None else array), None
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

    def _array(self, attribute: Attribute) -> Any:
        names = self._batch.schema.names
        for name in (attribute.name, ".".join(attribute.path)):
            if name in names:
                return self._batch.column(names.index(name))
        return None


def _numbers(count: int, row: int, invalid: list[Any]) -> tuple[list[Any], Ints]:
    """Row numbers for the next `count` rows that are well formed, and the malformed ones before the last of them."""
    out: list[Any] = []
    numbers = np.arange(row, row + count)
    while invalid and invalid[0].number - 2 <= numbers[-1]:
        out.append(invalid.pop(0))
        numbers[numbers >= out[-1].number - 2] += 1
    return out, numbers


def _wrong_width(row: Any, schema: Schema, first: int) -> Problem:
    reason = f"the row has {row.actual_columns} fields, the header has {row.expected_columns}"
    return Problem(schema.stream, first + row.number - 2, "csv", reason, shown_text(row.text))


def _nothing(schema: Schema, rejected: list[Problem]) -> Decoded:
    return replace(decode([], schema), rejected=tuple(rejected))

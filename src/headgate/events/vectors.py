"""One Arrow array against one type, at once: a column, and a mask of the rows that do not fit.

Only what NumPy and Arrow decide exactly is decided here. Where they would round, truncate or wrap (Arrow turns 1.5 into
1 when asked for an integer), the value goes to `values.fit`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.columns import ARROW, Column, array_column, offsets_of
from headgate.events.instants import iso_column, scaled
from headgate.events.outcome import Limits, Misfit
from headgate.events.values import fit
from headgate.schema import Kind, Type, is_bytes, is_list, is_text

if TYPE_CHECKING:
    from headgate.columns import Array, Ints, Mask

EXACT = 2**53
_PER_UNIT = {"s": 1_000_000, "ms": 1000, "us": 1}


def convert(array: Array, type: Type, limits: Limits) -> tuple[Column, Mask | None]:
    """The column, with bad rows undefined, and the mask of bad rows; None where there are none."""
    array = plain(array, keep_dictionary=type.kind in (Kind.STRING, Kind.GRAPH) and not type.array)
    if pa.types.is_null(array.type):
        return Column.missing(type, len(array)), None
    if type.array:
        return _list(array, type, limits)
    if type.kind in ARROW:
        return _bytes(array, type, limits)
    defined = array.is_valid().to_numpy(zero_copy_only=False)
    found = _NUMBERS[type.kind](array)
    if found is None:
        if _hopeless(array.type, type):
            return Column.missing(type, len(array)), defined if defined.any() else None
        return by_value(array.to_pylist(), type, lambda value: fit(value, type, limits))
    values, bad = found
    if bad is not None:
        bad = bad & defined
        defined = defined & ~bad
        values[~defined] = 0
    return Column(type, defined, values), bad if bad is not None and bad.any() else None


def plain(array: Any, keep_dictionary: bool = False) -> Array:
    """Without chunks, extension types and encodings."""
    if isinstance(array, pa.ChunkedArray):
        array = _whole(array)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_run_end_encoded(array.type):
        array = pc.call_function("run_end_decode", [array])
    if pa.types.is_dictionary(array.type):
        if keep_dictionary and is_text(array.type.value_type):
            return _clean_dictionary(array)
        array = array.dictionary_decode()
    return array  # type: ignore[no-any-return]  # numpy and Arrow give Any here


def _whole(chunked: Any) -> Array:
    if chunked.num_chunks == 1:
        return chunked.chunk(0)  # type: ignore[no-any-return]  # numpy and Arrow give Any here
    if pa.types.is_dictionary(chunked.type):
        chunked = chunked.unify_dictionaries()
    wide = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(chunked.type)
    if wide is not None and chunked.nbytes >= 2**31 - 1:
        chunked = chunked.cast(wide)
    whole = chunked.combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)


def _clean_dictionary(array: Any) -> Array:
    """Codes of 32 bits into distinct values without null, as `Column.dictionary` promises; else plain text."""
    words = array.dictionary
    if words.null_count or len(words) != pc.count_distinct(words).as_py() or len(words) > 2 * len(array) + 1000:
        return array.dictionary_decode()  # type: ignore[no-any-return]  # numpy and Arrow give Any here
    if array.indices.type == pa.int32() and pa.types.is_string(words.type):
        return array  # type: ignore[no-any-return]  # numpy and Arrow give Any here
    return pa.DictionaryArray.from_arrays(array.indices.cast(pa.int32()), words.cast(pa.string()))


def by_value(values: Sequence[Any], type: Type, fits: Callable[[Any], Any]) -> tuple[Column, Mask | None]:
    """The slow path: each value by itself."""
    clean: list[Any] = []
    bad = np.zeros(len(values), np.bool_)
    for row, value in enumerate(values):
        try:
            clean.append(fits(value))
        except Misfit:
            clean.append(None)
            bad[row] = True
    return Column.of(type, clean), bad if bad.any() else None


def _list(array: Any, type: Type, limits: Limits) -> tuple[Column, Mask | None]:
    defined = array.is_valid().to_numpy(zero_copy_only=False)
    if not is_list(array.type):
        return Column.missing(type, len(array)), defined if defined.any() else None
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    elements, bad = convert(array.flatten(), type.element, limits)
    return list_column(type, defined, offsets_of(lengths), elements, bad)


def list_column(
    type: Type, defined: Mask, offsets: Ints, elements: Column, bad: Mask | None
) -> tuple[Column, Mask | None]:
    """An array with a bad element is bad as a whole."""
    column = array_column(type, defined, offsets, elements)
    if bad is None:
        return column, None
    count = offsets_of(bad)
    rows = count[offsets[1:]] > count[offsets[:-1]]
    return without(column, rows), rows


def without(column: Column, bad: Mask) -> Column:
    """The column with the bad rows missing."""
    if column.offsets is None:
        keep = np.flatnonzero(~bad)
        at = np.where(bad, -1, 0)
        at[keep] = keep
        if isinstance(column.values, np.ndarray):
            values: Any = column.values.copy()
            values[bad] = 0
        else:
            values = column.values.take(pa.array(at, mask=bad))  # type: ignore[arg-type]  # the stubs are narrower than the library
        return Column(column.type, column.defined & ~bad, values)
    assert column.elements is not None
    lengths = np.where(bad, 0, np.diff(column.offsets))
    inside = np.repeat(~bad, np.diff(column.offsets))
    kept = column.elements.take(np.flatnonzero(inside))
    return array_column(column.type, column.defined & ~bad, offsets_of(lengths), kept)


def _bytes(array: Any, type: Type, limits: Limits) -> tuple[Column, Mask | None]:
    """STRING, GRAPH and BINARY stay in Arrow."""
    defined = array.is_valid().to_numpy(zero_copy_only=False)
    encoded = pa.types.is_dictionary(array.type)
    if not encoded and not (is_bytes if type.kind is Kind.BINARY else is_text)(array.type):
        if type.kind is Kind.BINARY and is_text(array.type):
            return by_value(array.to_pylist(), type, lambda value: fit(value, type, limits))
        return Column.missing(type, len(array)), defined if defined.any() else None
    if not encoded and array.type != ARROW[type.kind]:
        wide = array.type in (pa.large_string(), pa.large_binary())
        if not wide or array.nbytes < 2**31 - 1:
            array = array.cast(ARROW[type.kind])
    words = array.dictionary if encoded else array
    try:
        words.validate(full=True)
        wrong = None
    except pa.ArrowInvalid:
        wrong = np.fromiter((not _is_utf8(word.as_buffer()) for word in words), np.bool_, len(words))
    sizes = pc.binary_length(words).fill_null(0).to_numpy(zero_copy_only=False)
    if wrong is None and (not len(sizes) or sizes.max() <= limits.field_bytes):
        return Column(type, defined, array), None
    bad = (sizes > limits.field_bytes) | (False if wrong is None else wrong)
    if encoded:
        bad = defined & bad[array.indices.fill_null(0).to_numpy(zero_copy_only=False)]
        array = array.dictionary_decode()
    return without(Column(type, defined, array), bad), bad if bad.any() else None


def _is_utf8(buffer: pa.Buffer | None) -> bool:
    try:
        return buffer is None or bool(str(buffer.to_pybytes(), "utf-8") is not None)
    except UnicodeDecodeError:
        return False


def _hopeless(kind: Any, type: Type) -> bool:
    """Whether no value of an Arrow type can ever fit, so that none need be tried."""
    t = pa.types
    if type.kind in (Kind.BIGINT, Kind.DOUBLE):
        return not t.is_decimal(kind) and not t.is_integer(kind)
    return not (type.kind is Kind.TIMESTAMP and is_text(kind))


def _ints(array: Any) -> Ints:
    return array.fill_null(0).cast(pa.int64(), safe=False).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]  # numpy and Arrow give Any here


def _boolean(array: Any) -> tuple[Any, Mask | None] | None:
    if not pa.types.is_boolean(array.type):
        return None
    return array.fill_null(False).to_numpy(zero_copy_only=False), None


def _bigint(array: Any) -> tuple[Any, Mask | None] | None:
    if pa.types.is_integer(array.type):
        values = _ints(array)
        if array.type != pa.uint64():
            return values, None
        return values.copy(), values < 0
    if not pa.types.is_floating(array.type):
        return None
    floats = array.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        bad = ~((floats == np.trunc(floats)) & (floats >= -(2.0**63)) & (floats < 2.0**63))
        return np.where(bad, 0, floats).astype(np.int64), bad


def _double(array: Any) -> tuple[Any, Mask | None] | None:
    if pa.types.is_floating(array.type):
        return array.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False), None
    if not pa.types.is_integer(array.type):
        return None
    values = _ints(array)
    inexact = (values > EXACT) | (values < -EXACT) | ((values < 0) if array.type == pa.uint64() else False)
    return None if inexact.any() else (values.astype(np.float64), None)


def _timestamp(array: Any) -> tuple[Any, Mask | None] | None:
    kind = array.type
    if pa.types.is_timestamp(kind):
        values = _ints(array)
        if kind.unit == "ns":
            return np.floor_divide(values, 1000), None
        return scaled(values, _PER_UNIT[kind.unit]) if kind.unit != "us" else (values, None)
    if pa.types.is_date32(kind):
        return scaled(_ints(array.cast(pa.int32())), 86_400_000_000)
    if pa.types.is_date64(kind):
        return scaled(_ints(array), 1000)
    if pa.types.is_integer(kind):
        return _bigint(array)
    if is_text(kind):
        values_or_none = iso_column(array)
        return None if values_or_none is None else (values_or_none, None)
    return None


_NUMBERS: dict[Kind, Callable[[Any], tuple[Any, Mask | None] | None]] = {
    Kind.BOOLEAN: _boolean,
    Kind.BIGINT: _bigint,
    Kind.DOUBLE: _double,
    Kind.TIMESTAMP: _timestamp,
}

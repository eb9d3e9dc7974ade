"""64-bit hashes of texts, a column at a time. Equal texts have equal hashes; equal hashes only suggest equal texts."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
NO_TEXT_HASH = np.uint64(0x5851F42D4C957F2D)


def _mixed(values: Hashes) -> Hashes:
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(31))) * _MIX
        return values ^ (values >> np.uint64(29))


def of_texts(column: Any) -> Hashes:
    """A hash per row of an Arrow text column (plain or dictionary)."""
    if isinstance(column, pa.ChunkedArray):
        parts = [of_texts(chunk) for chunk in column.chunks]
        return np.concatenate(parts) if parts else np.zeros(0, np.uint64)
    if pa.types.is_dictionary(column.type):
        words = np.append(of_texts(column.dictionary), NO_TEXT_HASH)
        spelt: Hashes = words[np.asarray(column.indices.fill_null(-1))]
        return spelt
    if column.null_count:  # what is left are mostly ids of one length
        hashes = np.full(len(column), NO_TEXT_HASH)
        hashes[np.asarray(column.is_valid())] = of_texts(column.drop_null())
        return hashes
    if pa.types.is_large_string(column.type):  # written by others, so that its offsets are wider
        column = column.cast(pa.string())
    offsets = np.frombuffer(
        column.buffers()[1], np.int32, len(column) + 1, 4 * column.offset
    ).astype(np.int64)
    data = column.buffers()[2]
    return _of_bytes(
        np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8), offsets
    )


def _of_bytes(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> Hashes:
    lengths = np.diff(offsets)
    hashes = _mixed(lengths.astype(np.uint64) + _ODD)
    are_alike = len(lengths) and lengths.min() == lengths.max()
    for length in lengths[:1].tolist() if are_alike else np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        words = -(-length // 8)
        padded = np.zeros((len(rows), words * 8), np.uint8)
        padded[:, :length] = (
            data[offsets[0] : offsets[-1]].reshape(-1, length)
            if len(rows) == len(lengths) and length  # as ids mostly are
            else data[offsets[rows][:, None] + np.arange(length)]
        )
        state = hashes[rows]
        with np.errstate(over="ignore"):
            for word in padded.view(np.uint64).T:
                state = _mixed((state ^ word) * _ODD)
        hashes[rows] = state
    return hashes


def together(*columns: Hashes) -> Hashes:
    """A hash per row of several columns. One that is a single hash counts for every row."""
    state = np.full(1, _ODD, np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            state = _mixed((state ^ column) * _ODD + column)
    return state


def of_numbers(values: npt.NDArray[np.int64]) -> Hashes:
    with np.errstate(over="ignore"):
        return _mixed(values.astype(np.uint64) * _ODD)

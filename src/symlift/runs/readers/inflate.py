"""What packed bytes unpack to, known before a library unpacks them whole.

A file declares the size of an array, but nothing keeps a packed piece of it from being larger: a
library unpacks the piece first and compares later.  Here its size is read from its header, or the
piece is unpacked bit by bit and forgotten, up to a limit.
"""

from __future__ import annotations

import bz2
import io
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from symlift.errors import InputError
from symlift.storage.free_memory import size_of

__all__ = ["PACKERS", "arrow_sizes", "check_packed"]

_BLOCK = 1 << 20
#: below this, in bytes, what a piece unpacks to does no harm
_HARMLESS = 256 << 20
#: no deflated piece unpacks to more than so many times its size
_DEFLATE = 1_032


def _of_stream(start: Callable[[], Any]) -> Callable[[bytes], Iterator[int]]:
    def sizes(packed: bytes) -> Iterator[int]:
        decoder = start()
        block = decoder.decompress(packed, _BLOCK)
        while block:
            yield len(block)
            if isinstance(decoder, bz2.BZ2Decompressor | lzma.LZMADecompressor):
                if decoder.eof:
                    return
                block = decoder.decompress(b"", _BLOCK)
            else:
                block = decoder.decompress(decoder.unconsumed_tail, _BLOCK)

    return sizes


def _of_zstd(packed: bytes) -> Iterator[int]:
    try:
        from pyarrow import input_stream
    except ImportError:  # pragma: no cover - both are in the extra `data`
        return
    with input_stream(io.BytesIO(packed), compression="zstd") as stream:
        while block := stream.read(_BLOCK):
            yield len(block)


def _of_lz4(packed: bytes) -> Iterator[int]:
    if len(packed) >= 4:
        yield int(struct.unpack_from("<I", packed, 0)[0])


def _of_blosc(packed: bytes) -> Iterator[int]:
    # the library believes the length in the header, and reads beyond the end where that is wrong
    if len(packed) < 16 or struct.unpack_from("<I", packed, 12)[0] != len(packed):
        raise ValueError("a piece has another length than it says")
    yield int(struct.unpack_from("<I", packed, 4)[0])


_SIZES: dict[str, Callable[[bytes], Iterator[int]]] = {
    "zlib": _of_stream(zlib.decompressobj),
    "gzip": _of_stream(lambda: zlib.decompressobj(47)),
    "bz2": _of_stream(bz2.BZ2Decompressor),
    "lzma": _of_stream(lzma.LZMADecompressor),
    "zstd": _of_zstd,
    "blosc": _of_blosc,
    "lz4": _of_lz4,
}
#: names of what packs, as zarr has them
PACKERS = frozenset(_SIZES)


def check_packed(path: Path, packer: str, packed: bytes, declared: int) -> None:
    """Refuse a piece that unpacks to far more than the ``declared`` bytes that it should hold."""
    limit = max(_HARMLESS, 2 * declared)
    if packer in ("zlib", "gzip") and len(packed) * _DEFLATE <= limit:
        return
    size = 0
    for more in _SIZES[packer](packed):
        size += more
        if size > limit:
            raise InputError(
                f"{path} holds a piece of {size_of(len(packed))} that unpacks to more than"
                f" {size_of(limit)}, where {size_of(declared)} are declared: save the array again"
            )


# -- messages of Apache Arrow ----------------------------------------------------------------------


def arrow_sizes(message: Any, columns: int) -> int:
    """Return the bytes that a message of an Arrow file unpacks to, from its header alone.

    The header is a flatbuffer: a table of offsets to a record batch, in which each buffer has a
    place in the body; a packed buffer begins with its size.
    """
    header, body = memoryview(message.metadata), memoryview(message.body or b"")
    root = _Table.root(header)
    batch = root.table(2)
    if message.type == "dictionary" and batch is not None:
        batch, columns = batch.table(1), 1
    if batch is None:
        return len(body)
    packed, total = batch.table(3) is not None, 0
    for offset, length in batch.pairs(2):
        if not 0 <= offset <= offset + length <= len(body):
            raise ValueError("a buffer lies outside of its message")
        size = length
        if packed and length >= 8:
            size = max(size, int(struct.unpack_from("<q", body, offset)[0]))
        total += size
    # also where nothing is stored, as for columns of nulls
    return max(total, batch.number(0) * columns * 8)


class _Table:
    """A table of a flatbuffer; what is missing is 0 or None."""

    def __init__(self, data: memoryview, at: int) -> None:
        self.data, self.at = data, at
        self.index = at - struct.unpack_from("<i", data, at)[0]
        self.count = (struct.unpack_from("<H", data, self.index)[0] - 4) // 2

    @classmethod
    def root(cls, data: memoryview) -> _Table:
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def _place(self, field: int) -> int | None:
        if field >= self.count:
            return None
        offset = struct.unpack_from("<H", self.data, self.index + 4 + 2 * field)[0]
        return self.at + offset if offset else None

    def number(self, field: int) -> int:
        place = self._place(field)
        return 0 if place is None else int(struct.unpack_from("<q", self.data, place)[0])

    def table(self, field: int) -> _Table | None:
        place = self._place(field)
        if place is None:
            return None
        return _Table(self.data, place + struct.unpack_from("<I", self.data, place)[0])

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        place = self._place(field)
        if place is None:
            return
        start = place + struct.unpack_from("<I", self.data, place)[0]
        for i in range(struct.unpack_from("<I", self.data, start)[0]):
            one, other = struct.unpack_from("<qq", self.data, start + 4 + 16 * i)
            yield int(one), int(other)

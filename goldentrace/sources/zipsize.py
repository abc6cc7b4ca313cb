"""What a zip really unpacks to. The sizes in its table are what its writer claims: a bomb claims little.

Must not keep what it unpacks, nor know what the members are.
"""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

BLOCK_BYTES: Final = 1 << 20
ZIP_ZSTANDARD: Final = 93
"""The number of zstd in a zip (APPNOTE 6.3.8, section 4.4.5); the standard library has no name for it before 3.14."""
_HEADER: Final = struct.Struct("<26xHH")
"""The header before a member's data: 26 bytes that the table says too, the lengths of its name and its extra field."""


def is_larger(path: Path, max_bytes: int) -> bool:
    """Whether the members of a zip unpack to more than that, found out by unpacking them up to there.

    Raises: what damage makes the decoders raise (zipfile.BadZipFile, zlib.error, zstandard.ZstdError, struct.error).
    """
    left_bytes = max_bytes
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for entry in archive.infolist():
            for size_bytes in _block_sizes(file, entry):
                left_bytes -= size_bytes
                if left_bytes < 0:
                    return True
    return False


def _block_sizes(file: IO[bytes], entry: zipfile.ZipInfo) -> Iterator[int]:
    file.seek(entry.header_offset)
    name_bytes, extra_bytes = _HEADER.unpack(file.read(_HEADER.size))
    file.seek(name_bytes + extra_bytes, 1)
    if entry.compress_type == zipfile.ZIP_STORED:
        yield entry.compress_size
    elif entry.compress_type == zipfile.ZIP_DEFLATED:
        yield from _inflated(file, entry.compress_size)
    elif entry.compress_type == ZIP_ZSTANDARD:
        import zstandard

        with zstandard.ZstdDecompressor().stream_reader(file.read(entry.compress_size)) as reader:
            while block := reader.read(BLOCK_BYTES):
                yield len(block)
    else:
        raise zipfile.BadZipFile(f"{entry.filename} is packed by method {entry.compress_type}")


def _inflated(file: IO[bytes], packed_bytes: int) -> Iterator[int]:
    decoder = zlib.decompressobj(-zlib.MAX_WBITS)
    while packed_bytes > 0 and not decoder.eof:
        packed = file.read(min(packed_bytes, BLOCK_BYTES))
        if not packed:
            break
        packed_bytes -= len(packed)
        while packed and not decoder.eof:
            yield len(decoder.decompress(packed, BLOCK_BYTES))
            packed = decoder.unconsumed_tail

"""Compressed streams: gzip of any number of members, zstd of any number of frames, in bounded memory."""

import gzip
import io
from typing import Any, BinaryIO, TypeAlias, cast

import pyarrow as pa
from isal import igzip
from isal.igzip_lib import IsalError

from mobility.errors import BatchFormatError

BUFFER_BYTES = 64 << 10
GZIP, ZSTD = "gzip", "zstd"
ZSTD_SKIPPABLE = range(0x184D2A50, 0x184D2A60)  # frames of metadata, which parallel compressors put first
MAGIC_BYTES = 8
PARQUET_MAGIC = b"PAR1"
MAGIC = {GZIP: b"\x1f\x8b", ZSTD: b"\x28\xb5\x2f\xfd"}
# What people send by mistake, and what to do about it.
REFUSED = {
    **dict.fromkeys(
        (b"BZh%d1AY" % level for level in range(1, 10)),
        "compressed with bzip2: compress it with gzip or zstd",
    ),
    b"PK\x03\x04": "a zip archive or a spreadsheet: send the text in it, plain or with gzip or zstd",
    b"\xfd7zXZ\x00": "compressed with xz: compress it with gzip or zstd",
    b"\x04\x22\x4d\x18": "compressed with lz4: compress it with gzip or zstd",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive: send the text in it, plain or with gzip or zstd",
    b"Obj\x01": "an Avro file: send CSV or Parquet",
    b"ARROW1\x00\x00": "an Arrow file: send CSV or Parquet",
    b"PARE": "an encrypted Parquet file: write it without encryption (it is sealed when it arrives)",
    b"\xff\xfe": "text in UTF-16: save it as UTF-8",
    b"\xfe\xff": "text in UTF-16: save it as UTF-8",
    b"\x00\x00\xfe\xff": "text in UTF-32: save it as UTF-8",
}

Buffered: TypeAlias = "io.BufferedReader[io.RawIOBase]"


def is_of_storage(error: OSError) -> bool:
    """Whether what holds the file has failed, and not the file: readers of formats raise OSError, too."""
    return error.errno is not None or isinstance(error, ConnectionError)


def buffered(stream: BinaryIO | io.RawIOBase) -> Buffered:
    return io.BufferedReader(cast(io.RawIOBase, stream), BUFFER_BYTES)


def with_head(source: Buffered) -> tuple[bytes, Buffered]:
    """The first bytes, however small the pieces are in which they come, and the stream with them."""
    head = source.read(MAGIC_BYTES)
    return head, buffered(_Rejoined(head, source))


class _Rejoined(io.RawIOBase):
    """Bytes that were read already, and then the rest of their stream."""

    def __init__(self, head: bytes, rest: Buffered) -> None:
        super().__init__()
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        if not self._head:
            return self._rest.readinto1(buffer)
        count = min(len(buffer), len(self._head))
        buffer[:count] = self._head[:count]
        self._head = self._head[count:]
        return count


def compression_of(head: bytes) -> str:
    """Name of the compression that a file beginning with `head` has; empty if none."""
    for name, magic in MAGIC.items():
        if head.startswith(magic):
            return name
    return ZSTD if int.from_bytes(head[:4], "little") in ZSTD_SKIPPABLE else ""


def refuse_other(head: bytes, *, inside: str = "") -> None:
    """Refuse what is no text by its first bytes; `inside` names the compression around it.

    Raises
    ------
    BatchFormatError : with what the file is instead
    """
    where = f"the content of the {inside} stream is" if inside else "the file is"
    for magic, what in REFUSED.items():
        if head.startswith(magic):
            raise BatchFormatError(f"{where} {what}, and send it again")
    if inside and compression_of(head):
        raise BatchFormatError(f"{where} compressed once more: compress the text once, and send it again")
    if inside and head.startswith(PARQUET_MAGIC):
        raise BatchFormatError(f"{where} a Parquet file: send it as it is, without {inside} around it")


def decompressed(source: Buffered, *, compression: str) -> Buffered:
    """The plain stream; it never holds more than a few buffers, whatever the ratio is."""
    if not compression:
        return source
    gunzip: Any = igzip.IGzipFile
    plain = gunzip(fileobj=source) if compression == GZIP else _zstd(source)
    return buffered(_Checked(plain, compression=compression))


def _zstd(source: Buffered) -> pa.NativeFile:
    return pa.CompressedInputStream(pa.PythonFile(source, mode="r"), ZSTD)


class _Checked(io.RawIOBase):
    """A stream of a decompressor whose complaints say what to do."""

    def __init__(self, plain: igzip.IGzipFile | pa.NativeFile, *, compression: str) -> None:
        super().__init__()
        self._plain = plain
        self._compression = compression

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        try:
            return int(self._plain.readinto(buffer))
        except (EOFError, IsalError, gzip.BadGzipFile):  # type: ignore[misc]
            raise self._damaged() from None
        except OSError as error:
            if is_of_storage(error):
                raise
            if "too much memory" in str(error):
                raise BatchFormatError(
                    "the zstd stream needs a window of more than 128 MB: compress it without --long"
                ) from None
            raise self._damaged() from None

    def _damaged(self) -> BatchFormatError:
        return BatchFormatError(
            f"the {self._compression} stream is damaged or ends early: "
            "compress the file again and send it whole"
        )

"""Compressed streams: gzip of any number of members, zstd of any number of frames, in bounded memory."""

import gzip
import io
from typing import Any, BinaryIO, TypeAlias, cast

import pyarrow as pa
from django.utils.translation import gettext_noop as _
from isal import igzip
from isal.igzip_lib import IsalError

from mobility.base.errors import BatchFormatError
from reports.base.reasons import Reason

BUFFER_BYTES = 64 << 10
GZIP, ZSTD = "gzip", "zstd"
ZSTD_SKIPPABLE = range(0x184D2A50, 0x184D2A60)  # frames of metadata, which parallel compressors put first
HEAD_BYTES = 512  # of a tar archive, the format is at 257
PARQUET_MAGIC = b"PAR1"
MAGIC = {GZIP: b"\x1f\x8b", ZSTD: b"\x28\xb5\x2f\xfd"}
UNPACK = _("%(what)s, not CSV or Parquet: extract the file, and send it alone")
SAVE_AS_CSV = _("%(what)s, not CSV or Parquet: save the table as CSV")
EXPORT = _("%(what)s, not CSV or Parquet: export the rows in one of these formats")
RECOMPRESS = _("compressed with %(what)s, not gzip or zstd: compress it with one of these")
RECODE = _("text in %(what)s, not UTF-8: save it as UTF-8")
_OFFICE = Reason(SAVE_AS_CSV, what=Reason(_("an Office document (xlsx, docx)")))
# Files that people send by mistake, and the remedy.
REFUSED = {
    **{b"BZh%d1AY" % level: Reason(RECOMPRESS, what="bzip2") for level in range(1, 10)},
    b"PK\x03\x04": Reason(UNPACK, what=Reason(_("a zip archive"))),
    b"PK\x05\x06": Reason(EXPORT, what=Reason(_("an empty zip archive"))),
    b"Rar!\x1a\x07": Reason(UNPACK, what=Reason(_("a RAR archive"))),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": Reason(
        SAVE_AS_CSV, what=Reason(_("an old Office document (xls, doc)"))
    ),
    b"%PDF-": Reason(EXPORT, what=Reason(_("a PDF document"))),
    b"{\\rtf": Reason(EXPORT, what=Reason(_("an RTF document"))),
    b"SQLite format 3\x00": Reason(EXPORT, what=Reason(_("an SQLite database"))),
    b"ORC": Reason(EXPORT, what=Reason(_("an ORC file"))),
    b"\x89HDF\r\n\x1a\n": Reason(EXPORT, what=Reason(_("an HDF5 file"))),
    b"\x89PNG\r\n\x1a\n": Reason(EXPORT, what=Reason(_("an image (PNG)"))),
    b"\xff\xd8\xff": Reason(EXPORT, what=Reason(_("an image (JPEG)"))),
    b"GIF8": Reason(EXPORT, what=Reason(_("an image (GIF)"))),
    b"\x7fELF": Reason(EXPORT, what=Reason(_("a program (ELF)"))),
    b"MZ\x90": Reason(EXPORT, what=Reason(_("a program (Windows)"))),
    b"\xfd7zXZ\x00": Reason(RECOMPRESS, what="xz"),
    b"\x04\x22\x4d\x18": Reason(RECOMPRESS, what="lz4"),
    b"7z\xbc\xaf\x27\x1c": Reason(UNPACK, what=Reason(_("a 7-Zip archive"))),
    b"Obj\x01": Reason(EXPORT, what=Reason(_("an Avro file"))),
    b"ARROW1\x00\x00": Reason(EXPORT, what=Reason(_("an Arrow file"))),
    b"PARE": _("an encrypted Parquet file: write it without encryption (it is encrypted when it arrives)"),
    b"\xff\xfe": Reason(RECODE, what="UTF-16"),
    b"\xfe\xff": Reason(RECODE, what="UTF-16"),
    b"\x00\x00\xfe\xff": Reason(RECODE, what="UTF-32"),
}
# Names of the first part of a zip archive that is a document.
OFFICE = {
    b"[Content_Types].xml": _OFFICE,
    b"_rels/.rels": _OFFICE,
    b"docProps/": _OFFICE,
    b"xl/": Reason(SAVE_AS_CSV, what=Reason(_("a spreadsheet (xlsx)"))),
    b"mimetypeapplication/vnd.oasis.opendocument": Reason(
        SAVE_AS_CSV, what=Reason(_("an OpenDocument file (ods, odt)"))
    ),
}
ZIP_NAME = 30  # where the name of the first part begins
TAR_MAGIC, TAR_AT = b"ustar", 257

Buffered: TypeAlias = "io.BufferedReader[io.RawIOBase]"


def is_of_storage(error: OSError) -> bool:
    """Return whether the storage of the file has failed, and not the file: readers raise OSError, too."""
    return error.errno is not None or isinstance(error, ConnectionError)


def buffered(stream: BinaryIO | io.RawIOBase) -> Buffered:
    return io.BufferedReader(cast(io.RawIOBase, stream), BUFFER_BYTES)


def with_head(source: Buffered) -> tuple[bytes, Buffered]:
    """The first bytes, however small the pieces are in which they come, and the stream with them."""
    head = source.read(HEAD_BYTES)
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
    if what := _what_else(head):
        text = _("the file is %(what)s")
        if inside:
            text = _("the content of the %(compression)s stream is %(what)s")
        raise BatchFormatError(text, what=what, compression=inside)
    if inside and compression_of(head):
        raise BatchFormatError(
            _(
                "the content of the %(compression)s stream is compressed a second time: compress the file "
                "once"
            ),
            compression=inside,
        )
    if inside and head.startswith(PARQUET_MAGIC):
        raise BatchFormatError(
            _(
                "the content of the %(compression)s stream is a Parquet file: send it without "
                "%(compression)s compression"
            ),
            compression=inside,
        )


def _what_else(head: bytes) -> Reason:
    """Describe a file that is no text, and the remedy; empty if its first bytes do not show it."""
    if head.startswith(b"PK\x03\x04"):
        for name, what in OFFICE.items():
            if head.startswith(name, ZIP_NAME):
                return what
    if head.startswith(TAR_MAGIC, TAR_AT):
        return Reason(UNPACK, what=Reason(_("a tar archive")))
    return Reason(next((what for magic, what in REFUSED.items() if head.startswith(magic)), ""))


def decompressed(source: Buffered, *, compression: str) -> Buffered:
    """The plain stream; it never holds more than a few buffers, for any ratio."""
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
                    _("the zstd stream needs a window of more than 128 MB: compress the file without --long")
                ) from None
            raise self._damaged() from None

    def _damaged(self) -> BatchFormatError:
        return BatchFormatError(
            _(
                "the %(compression)s stream is damaged or ends early: compress the file again and send it in "
                "full"
            ),
            compression=self._compression,
        )

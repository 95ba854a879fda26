"""Staged bytes of a batch: an upload and the chunks read from it. Ciphertext from first byte to last."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

from mobility.keystore import keystore
from mobility.models import Batch
from mobility.runtime import private_folder
from mobility.sealing import SealedReader, SealingWriter, seal, stream_key, unseal

UPLOAD = "upload"
CHUNKS = "chunks"


def folder_of(batch: Batch) -> Path:
    return Path(settings.MOBILITY_STAGING_DIR) / str(batch.pk)


def create_key(batch: Batch) -> None:
    """Make the one-time key under which everything staged for the batch is sealed."""
    keystore().create(batch.key_id)


@contextmanager
def upload_writer(batch: Batch) -> Iterator[SealingWriter]:
    """Write the upload; it is complete only if the block ends without an exception."""
    private_folder(Path(settings.MOBILITY_STAGING_DIR))
    path = private_folder(folder_of(batch)) / UPLOAD
    with _new_private_file(path) as file:
        writer = SealingWriter(file, key=stream_key(keystore().read(batch.key_id), UPLOAD))
        yield writer
        writer.close()
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def upload_reader(batch: Batch) -> Iterator[SealedReader]:
    with (folder_of(batch) / UPLOAD).open("rb") as file:
        yield SealedReader(file, key=stream_key(keystore().read(batch.key_id), UPLOAD))


def write_chunk(batch: Batch, index: int, segments: dict[int, bytes]) -> dict[str, list[int]]:
    """Seal the segment of each shard into one file; returns {shard: [offset, length]}."""
    key = chunk_key(batch)
    places: dict[str, list[int]] = {}
    with _new_private_file(_chunk_path(batch, index)) as file:
        for shard, plain in segments.items():
            sealed = seal(plain, key=key, context=_segment_context(batch, index, shard))
            places[str(shard)] = [file.tell(), len(sealed)]
            file.write(sealed)
    return places


def chunk_key(batch: Batch) -> bytes:
    """Key of the batch's chunks: read once, used for every segment."""
    return stream_key(keystore().read(batch.key_id), CHUNKS)


def read_segment(batch: Batch, index: int, shard: int, place: list[int], *, key: bytes) -> bytes:
    """Plain bytes of one shard's segment of a chunk; `key` is `chunk_key`."""
    offset, length = place
    with _chunk_path(batch, index).open("rb") as file:
        file.seek(offset)
        sealed = file.read(length)
    return unseal(sealed, key=key, context=_segment_context(batch, index, shard))


def discard_chunks(batch: Batch) -> None:
    """Forget what an interrupted reading left."""
    batch.chunks.all().delete()
    for path in folder_of(batch).glob(f"{CHUNKS}-*"):
        path.unlink(missing_ok=True)


def destroy(batch: Batch) -> None:
    """Destroy key and bytes; the key first, so that nothing readable is left whenever this is interrupted."""
    keystore().destroy(batch.key_id)
    shutil.rmtree(folder_of(batch), ignore_errors=True)


def _chunk_path(batch: Batch, index: int) -> Path:
    return folder_of(batch) / f"{CHUNKS}-{index}"


def _segment_context(batch: Batch, index: int, shard: int) -> str:
    return f"{batch.pk}/{index}/{shard}"


def _new_private_file(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")

"""First half of a batch: the staged extract is read once, checked, and left as sealed events per shard."""

import time
from collections.abc import Iterator
from decimal import Decimal

from django.conf import settings

from mobility.errors import BatchFormatError, TooManyBadRowsError
from mobility.ingest.events import Events, concatenate, split_by_shard
from mobility.ingest.rows import RowCoder, RowCounts
from mobility.models import Batch, Chunk
from mobility.readers import Source, opening
from mobility.sealing import SealedReader
from mobility.services import staging
from mobility.services.leases import Lease
from mobility.services.vault import OpenStudy

PROGRESS_S = 0.5


def read_extract(batch: Batch, study: OpenStudy, lease: Lease) -> None:
    """Read the upload of `batch` into chunks and note its counts.

    Raises
    ------
    BatchFormatError : the file is not what the study file describes
    TooManyBadRowsError : the batch is refused whole
    """
    staging.discard_chunks(batch)
    counts, source = RowCounts(), Source()
    coder = study.row_coder()
    days: set[int] = set()
    with staging.upload_reader(batch) as stream:
        events = _events(stream, coder, counts, source, lease)
        for index, chunk in enumerate(_chunks(events, slots=coder.slots)):
            days.update(int(day) for day in set(chunk.day.tolist()))
            segments = {
                shard: part.pack()
                for shard, part in split_by_shard(chunk, n_shards=study.row.n_shards).items()
            }
            places = staging.write_chunk(batch, index, segments)
            Chunk.objects.create(batch=batch, index=index, counts={"rows": len(chunk)}, segments=places)
    _note(batch, counts, source, days)
    check_counts(counts, max_bad_share=study.definition.extract.max_bad_share, places=batch.places)


def _events(
    stream: SealedReader, coder: RowCoder, counts: RowCounts, source: Source, lease: Lease
) -> Iterator[Events]:
    noted = time.monotonic()
    for block in opening.read_extract(stream, layout=coder.layout, source=source):
        yield coder.events_of(block, counts)
        if time.monotonic() - noted > PROGRESS_S:
            noted = time.monotonic()
            lease.renew(rows_read=counts.rows_read, bytes_read=stream.bytes_read)


def _chunks(parts: Iterator[Events], *, slots: int) -> Iterator[Events]:
    """Join blocks into chunks of about `MOBILITY_CHUNK_ROWS` rows, the bound of what memory holds."""
    held: list[Events] = []
    rows = 0
    for part in parts:
        held.append(part)
        rows += len(part)
        if rows >= settings.MOBILITY_CHUNK_ROWS:
            yield concatenate(held, slots=slots)
            held, rows = [], 0
    if rows:
        yield concatenate(held, slots=slots)


def _note(batch: Batch, counts: RowCounts, source: Source, days: set[int]) -> None:
    batch.source = source.facts()
    batch.rows_read = counts.rows_read
    batch.rows_accepted = counts.accepted
    batch.rows_ignored = dict(counts.ignored)
    batch.rows_rejected = dict(counts.rejected)
    batch.rejected_lines = counts.lines
    batch.days_touched = sorted(days)
    batch.bytes_read = batch.bytes_received
    batch.save(
        update_fields=[
            "rows_read", "rows_accepted", "rows_ignored", "rows_rejected", "rejected_lines", "days_touched",
            "bytes_read", "source",
        ]
    )  # fmt: skip


def check_counts(counts: RowCounts, *, max_bad_share: Decimal, places: str) -> None:
    """Refuse an extract whole.

    Raises
    ------
    BatchFormatError : it has no rows
    TooManyBadRowsError : the share of rejected rows is above `max_bad_share`
    """
    if counts.rows_read == 0:
        raise BatchFormatError("the file has a header but no rows: nothing was published")
    rejected = counts.rejected.total()
    if rejected > max_bad_share * counts.rows_read:
        share = 100 * rejected / counts.rows_read
        worst, rows = counts.rejected.most_common(1)[0]
        first = ", ".join(str(line) for line in counts.lines[worst])
        raise TooManyBadRowsError(
            f"{rejected} of {counts.rows_read} rows ({share:.1f} %) cannot be used, above max_bad_share of "
            f"{100 * max_bad_share:.1f} %: nothing was published. Most often: {worst} ({rows} rows, "
            f"first {places} {first}). Correct the file and upload it again"
        )

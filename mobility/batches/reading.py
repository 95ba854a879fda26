"""First half of a batch: the staged file is read in chunks, checked, and left as sealed pieces per shard."""

import secrets
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext_noop as _

from mobility.base import memory
from mobility.base.errors import BatchFormatError, TooManyBadRowsError
from mobility.batches import staging
from mobility.batches.coding import Parts, Reading, parts_of
from mobility.batches.dispatching import ask
from mobility.batches.quality.facts import checks_of, columns_of_reasons, columns_of_unknown
from mobility.batches.staging import UploadReader
from mobility.batches.states import move, next_sign, show_life
from mobility.batches.texts import reason_of_rows
from mobility.extracts.chunk_plans import BYTES, WHOLE, ChunkPlan
from mobility.extracts.profiles.definition import Profile
from mobility.extracts.readers import RowBlock, Source
from mobility.extracts.readers.chunks import plan_chunks
from mobility.extracts.rows.counts import RowCounts
from mobility.vault.models.batch import Batch, Chunk
from mobility.vault.profiles import find_profile
from mobility.vault.studies import OpenStudy
from reports.base.reasons import Reason

PROGRESS_S = 0.5
CHUNKS_WANTED = 8  # of a small file: enough for several workers
MIN_CHUNK_BYTES = 8 << 20
TEXT_ROW_BYTES, PACKED_ROW_BYTES = 32, 4  # of a row at least, as plain text and compressed
MAX_PIECES, MAX_SPLIT = 64, 65_536  # of a shard, and of a chunk in all
PIECE_ROWS = 2_000_000  # of a shard that are in memory at once
State = Batch.State


def same_content(batch: Batch) -> Batch | None:
    """Return an earlier batch with the same bytes that has published at least as much as this one would."""
    if batch.validate_only:  # anyone who asks for a check wants to see it
        return None
    # A feed must not learn which files others have sent: only its own count as the same.
    of_whom = {"created_by": batch.created_by} if batch.is_of_feed else {}
    earlier = Batch.objects.filter(
        study_id=batch.study_id, kind=batch.kind, content_hash=batch.content_hash, profile=batch.profile,
        state=State.DONE, validate_only=False, duplicate_of__isnull=True, **of_whom,
    )  # fmt: skip
    if not batch.more_to_come:
        earlier = earlier.filter(more_to_come=False)
    return earlier.exclude(pk=batch.pk).order_by("created_at").first()


def chunk_bytes(size: int) -> int:
    """About how long the chunks of a file of `size` bytes are."""
    return int(min(max(size // CHUNKS_WANTED, MIN_CHUNK_BYTES), settings.MOBILITY_CHUNK_BYTES))


def begin(batch: Batch, study: OpenStudy) -> bool:
    """Cut the file into chunks; False if another worker has."""
    with UploadReader(batch) as stream:
        size = batch.bytes_total or 0
        plans = plan_chunks(stream, size=size, target_bytes=chunk_bytes(size))
    if batch.kind == Batch.Kind.OPT_OUT:  # no header, and never large
        plans = [ChunkPlan.whole(size)]
    is_split = batch.kind == Batch.Kind.EXTRACT
    pieces = _pieces(size, plans=plans, n_shards=study.row.n_shards) if is_split else 1
    with transaction.atomic(using="vault"):
        mine = move(batch, "read", pieces=pieces)
        if mine:
            _create_chunks(batch, plans)
    return mine is not None


def read_as_a_whole(batch: Batch) -> None:
    """Start again with one chunk: only reading from beginning to end tells what is unusual, and where."""
    with transaction.atomic(using="vault"):
        mine = Batch.objects.filter(pk=batch.pk, state=State.READING, reads_whole=False).update(
            reads_whole=True, rows_read=0, bytes_read=0, alive_until=next_sign()
        )
        if mine:
            batch.chunks.all().delete()
            _create_chunks(batch, [ChunkPlan.whole(batch.bytes_total or 0)])
    if mine:
        ask("advance", str(batch.pk))


def _create_chunks(batch: Batch, plans: list[ChunkPlan]) -> None:
    Chunk.objects.bulk_create(
        Chunk(batch=batch, index=index, plan=plan.to_json()) for index, plan in enumerate(plans)
    )


def _pieces(size: int, *, plans: list[ChunkPlan], n_shards: int) -> int:
    """Parts that the rows of a shard are grouped in, so that memory has a bound for any size of the file."""
    rows = size // (TEXT_ROW_BYTES if plans[0].kind == BYTES else PACKED_ROW_BYTES)
    pieces = 1
    while pieces < MAX_PIECES and rows > pieces * n_shards * PIECE_ROWS:
        pieces *= 2
    return min(pieces, MAX_SPLIT // n_shards)


def is_whole(chunk: Chunk) -> bool:
    """Return whether this chunk is read from the beginning of the file to its end."""
    return ChunkPlan.from_json(chunk.plan).kind == WHOLE


def read_chunk(batch: Batch, chunk: Chunk, study: OpenStudy) -> None:
    """Read a chunk, and note what became of its rows.

    Raises
    ------
    SupersededError : the batch has ended meanwhile
    SupersededError : the batch has ended meanwhile
    """
    memory.reset_peak()
    name = f"chunk-{chunk.index:06d}-{secrets.token_hex(8)}"
    counts, source, plan = RowCounts(), Source(), ChunkPlan.from_json(chunk.plan)
    with UploadReader(batch) as stream:
        if plan.kind == BYTES and plan.begin:
            stream.expect(0, plan.begin - 1, plan.begin)  # the header, and the end of the line before
        reading = Reading(
            batch=batch,
            study=study,
            profile=find_profile(study.row, batch.profile, study.definition),
            plan=plan,
            stream=stream,
            counts=counts,
            source=source,
            watched=partial(_living, batch=batch, chunk=chunk, stream=stream),
        )
        segments = _staged(reading, name)
    kept = Chunk.objects.filter(pk=chunk.pk, is_done=False).update(
        is_done=True,
        staged=name,
        segments=segments,
        counts={"rows": counts.to_json(), "source": source.facts(), "encoding": source.encoding},
        peak_rss_mb=memory.peak_mb(),
    )
    if not kept:  # another task was first, or the file is read in another way by now
        _delete(batch, name, len(segments))


def _staged(reading: Reading, name: str) -> list[dict[str, list[list[int]]]]:
    """Read, and stage what comes out; of work that breaks off nothing stays, or tries would fill the disk.

    The disk is slow: while it takes a part after which more may come, the next one is read.
    """
    batch, segments, n_begun, n_rows = reading.batch, [], 0, 0
    storing: Future[dict[str, list[list[int]]]] | None = None
    try:
        with ThreadPoolExecutor(1, thread_name_prefix="store") as pool:
            for parts in parts_of(reading):
                if storing is not None:
                    segments.append(storing.result())
                place, n_begun = f"{name}-{n_begun}", n_begun + 1
                is_full = reading.counts.accepted - n_rows >= settings.MOBILITY_CHUNK_ROWS
                n_rows = reading.counts.accepted
                storing = pool.submit(_store, batch, place, parts) if is_full else None
                if storing is None:
                    segments.append(_store(batch, place, parts))
                del parts  # or it would be held until the next one is there
            if storing is not None:
                segments.append(storing.result())
    except Exception:
        _delete(batch, name, n_begun)
        raise
    return segments


def _store(batch: Batch, name: str, parts: Parts) -> dict[str, list[list[int]]]:
    packed = ((shard, piece.pack()) for shard, pieces in parts.items() for piece in pieces)
    return staging.write_chunk(batch, name, packed)


def _delete(batch: Batch, name: str, n_segments: int) -> None:
    """Remove useless staged data; the rest goes when the batch ends."""
    for number in range(n_segments):
        with suppress(OSError):
            staging.delete_chunk(batch, f"{name}-{number}")


def _living(
    blocks: Iterator[RowBlock], *, batch: Batch, chunk: Chunk, stream: UploadReader
) -> Iterator[RowBlock]:
    """Yield the same blocks, and record progress and signs of life of the chunk."""
    rows = noted_rows = noted_bytes = 0
    noted = renewed = time.monotonic()
    for block in blocks:
        yield block
        rows += len(block.lines)
        if time.monotonic() - noted > PROGRESS_S:
            noted = time.monotonic()
            more_rows, more_bytes = rows - noted_rows, stream.bytes_read - noted_bytes
            noted_rows, noted_bytes = rows, stream.bytes_read
            show_life(
                batch,
                state=State.READING,
                rows_read=F("rows_read") + more_rows,
                bytes_read=F("bytes_read") + more_bytes,
            )
            if noted - renewed > settings.MOBILITY_BATCH_LEASE_S / 4:
                renewed = noted
                chunk.alive_until = next_sign()
                Chunk.objects.filter(pk=chunk.pk).update(alive_until=chunk.alive_until)


def judge(batch: Batch, study: OpenStudy) -> bool:
    """Add up all chunks and store the facts of the file; False if it must be read in another way.

    Raises
    ------
    BatchFormatError : the file has no rows
    TooManyBadRowsError : the batch is refused whole
    """
    chunks = list(batch.chunks.all())
    if not all(chunk.is_done for chunk in chunks):  # another task has judged it, and begun again
        return False
    # A chunk that is all ASCII says nothing about the file.
    encodings = {chunk.counts["encoding"] for chunk in chunks} - {""}
    if len(encodings) > 1:
        read_as_a_whole(batch)
        return False
    counts = RowCounts()
    for chunk in chunks:
        counts.add(RowCounts.from_json(chunk.counts["rows"]))
    batch.source = chunks[0].counts["source"]
    if encodings:
        batch.source["encoding"] = encodings.pop()
    profile = find_profile(study.row, batch.profile, study.definition)
    _note(batch, counts, checks_of(counts, profile=profile))
    check_counts(counts, profile=profile, places=batch.places, of_events=batch.study.of_events)
    return True


def _note(batch: Batch, counts: RowCounts, checks: dict[str, Any]) -> None:
    Batch.objects.filter(pk=batch.pk, state=State.READING).update(
        source=batch.source,
        rows_read=counts.rows_read,
        rows_accepted=counts.accepted,
        rows_ignored=dict(counts.ignored),
        rows_rejected=dict(counts.rejected),
        rejected_lines=counts.lines,
        checks=checks,
        days_touched=(np.flatnonzero(counts.hours.sum(axis=1)) + 1).tolist(),
        bytes_read=batch.bytes_total,
    )


def check_counts(counts: RowCounts, *, profile: Profile, places: str, of_events: bool) -> None:
    """Refuse a file whole.

    Raises
    ------
    BatchFormatError : it has no rows
    TooManyBadRowsError : the share of rejected rows is above `max_bad_share`
    """
    if counts.rows_read == 0 and profile.kind == "opt_out":
        raise BatchFormatError(_("the opt-out list is empty: no subscriber was opted out"))
    if counts.rows_read == 0:
        raise BatchFormatError(_("the file has a header but no rows, so nothing was published"))
    rejected = counts.rejected.total()
    if rejected > profile.max_bad_share * counts.rows_read:
        worst, rows = counts.rejected.most_common(1)[0]
        columns = (columns_of_reasons(profile) | columns_of_unknown(counts)).get(worst, [])
        text = _(
            "%(share)s of rows were rejected (%(rejected)s of %(read)s; limit %(limit)s), so nothing was "
            "published. Most common reason: %(reason)s%(where)s (%(rows)s rows, first %(places)s %(first)s). "
            "Correct the file or its profile, and send it again"
        )
        raise TooManyBadRowsError(
            text,
            share=rejected / counts.rows_read,
            rejected=rejected,
            read=counts.rows_read,
            limit=float(profile.max_bad_share),
            reason=reason_of_rows(worst, of_events=of_events),
            where=Reason(_(" in column %(names)s"), names=columns) if columns else "",
            rows=rows,
            places=Reason(_("lines") if places == "lines" else _("rows")),
            first=", ".join(str(line) for line in counts.lines[worst]),
        )

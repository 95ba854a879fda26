"""Output of a chunk of each kind of file: pieces of shards, ready to be sealed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from mobility.batches.staging import UploadReader
from mobility.extracts.chunk_plans import WHOLE, ChunkPlan
from mobility.extracts.profiles.definition import Profile
from mobility.extracts.readers import Layout, RowBlock, Source
from mobility.extracts.readers.chunks import read_chunk
from mobility.extracts.rows.counts import RowCounts
from mobility.extracts.rows.events import Events, concatenate, split
from mobility.extracts.rows.opt_out_lists import opted_out_of, read_list
from mobility.extracts.rows.pipeline import blocks_in_use, coded
from mobility.vault.models.batch import Batch
from mobility.vault.optouts import OptOuts
from mobility.vault.state.subscribers import SubscriberRows, join_rows
from mobility.vault.studies import OpenStudy, Packable

Parts = dict[int, list[Packable]]  # pieces by shard
Part = TypeVar("Part", Events, SubscriberRows, NDArray[np.uint64])


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One chunk that is being read; `counts` and `source` grow with it.

    watched : passes blocks on, and sees how far the reading is
    """

    batch: Batch
    study: OpenStudy
    profile: Profile
    plan: ChunkPlan
    stream: UploadReader
    counts: RowCounts
    source: Source
    watched: Callable[[Iterator[RowBlock]], Iterator[RowBlock]]

    @property
    def n_shards(self) -> int:
        return self.study.row.n_shards

    @property
    def threads(self) -> int:
        """Read a chunk that is the whole file, in threads: the other cores have nothing else to do."""
        return int(settings.MOBILITY_READ_THREADS) if self.plan.kind == WHOLE else 1

    def blocks(self, layout: Layout, *, in_use: int = 1) -> Iterator[RowBlock]:
        """Blocks of rows of the chunk, `in_use` of them valid at a time."""
        blocks = read_chunk(self.stream, self.plan, layout=layout, source=self.source, in_use=in_use)
        return self.watched(blocks)


def parts_of(reading: Reading) -> Iterator[Parts]:
    """Pieces of shards, of about `MOBILITY_CHUNK_ROWS` rows at a time: the bound of what memory holds."""
    makers: dict[str, Callable[[Reading], Iterator[Parts]]] = {
        Batch.Kind.EXTRACT: _events,
        Batch.Kind.SUBSCRIBERS: _subscribers,
        Batch.Kind.OPT_OUT: _opt_outs,
    }
    return makers[reading.batch.kind](reading)


def _events(reading: Reading) -> Iterator[Parts]:
    coder = reading.study.row_coder(reading.profile, is_blind=reading.batch.is_read_blindly)
    threads = reading.threads
    blocks = reading.blocks(coder.layout, in_use=blocks_in_use(threads))
    for held in _held(coded(blocks, coder, reading.counts, threads=threads)):
        events = concatenate(held, slots=coder.slots)
        held.clear()  # three copies at a time would be too many
        pieces = split(events, n_shards=reading.n_shards, pieces=reading.batch.pieces)
        del events
        yield {shard: list[Packable](of_shard) for shard, of_shard in pieces.items()}


def _subscribers(reading: Reading) -> Iterator[Parts]:
    coder = reading.study.subscriber_coder(reading.profile, is_blind=reading.batch.is_read_blindly)
    people = (coder.rows_of(block, reading.counts) for block in reading.blocks(coder.layout))
    for held in _held(people):
        rows = join_rows(held, words=coder.words)
        yield {shard: [part] for shard, part in rows.split(n_shards=reading.n_shards).items()}


def _opt_outs(reading: Reading) -> Iterator[Parts]:
    name, key = reading.profile.subscriber, reading.study.pseudonym_key
    blocks = reading.watched(read_list(reading.stream, name=name, source=reading.source))
    named = (opted_out_of(block, reading.counts, name=name, pseudonym_key=key) for block in blocks)
    for held in _held(named):
        people = OptOuts.of(np.concatenate(held))
        yield {shard: [part] for shard, part in people.split(n_shards=reading.n_shards).items()}


def _held(parts: Iterator[Part]) -> Iterator[list[Part]]:
    held: list[Part] = []
    rows = 0
    for part in parts:
        held.append(part)
        rows += len(part)
        if rows >= settings.MOBILITY_CHUNK_ROWS:
            yield held
            held, rows = [], 0
    if rows:
        yield held

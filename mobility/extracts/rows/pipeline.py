"""Blocks of rows to events on several threads, in order, with few blocks in memory."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from mobility.extracts.readers import RowBlock
from mobility.extracts.rows.counts import RowCounts
from mobility.extracts.rows.events import Events
from mobility.extracts.rows.rows import RowCoder


def blocks_in_use(threads: int) -> int:
    """Return how many blocks `coded` uses at once: one per coding thread, and the one being read."""
    return max(threads, 1)


def coded(
    blocks: Iterator[RowBlock], coder: RowCoder, counts: RowCounts, *, threads: int = 1
) -> Iterator[Events]:
    """Events of each block, in the order of the blocks; `counts` grows by all their rows.

    Parameters
    ----------
    blocks : of a reader with `in_use=blocks_in_use(threads)`
    threads : one reads (and decompresses), the others code; with one everything happens in the caller's
    """
    if threads <= 1:
        for block in blocks:
            yield coder.events_of(block, counts)
        return
    waiting: deque[Future[tuple[Events, RowCounts]]] = deque()
    with ThreadPoolExecutor(threads - 1) as pool:
        try:
            for block in blocks:
                waiting.append(pool.submit(coder.code, block))
                # One per coding thread, and the one being read: no older block may be in use by then.
                if len(waiting) == blocks_in_use(threads):
                    yield _next(waiting, counts)
            while waiting:
                yield _next(waiting, counts)
        finally:
            for future in waiting:
                future.cancel()


def _next(waiting: deque[Future[tuple[Events, RowCounts]]], counts: RowCounts) -> Events:
    events, counts_of_block = waiting.popleft().result()
    counts.join(counts_of_block)
    return events

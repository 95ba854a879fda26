"""Uploads that are staged without a database: what a reader is given."""

from uuid import uuid4

from mobility.batches import staging
from mobility.vault.models.batch import Batch


def staged(plain: bytes) -> Batch:
    batch = Batch(id=uuid4(), bytes_total=len(plain))
    staging.create_key(batch)
    for index, start in enumerate(range(0, len(plain), staging.FRAME_BYTES)):
        staging.write_frame(batch, index, plain[start : start + staging.FRAME_BYTES])
    return batch

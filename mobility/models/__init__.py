"""The vault: batches, day state, presence and outbox of the operator zone. Blobs are sealed."""

from mobility.models.batch import Applied, Batch, Chunk
from mobility.models.outbox import OutboxDelta, VaultPublication
from mobility.models.vault import DayState, PresenceShard, VaultDay, VaultStudy

__all__ = [
    "Applied",
    "Batch",
    "Chunk",
    "DayState",
    "OutboxDelta",
    "PresenceShard",
    "VaultDay",
    "VaultPublication",
    "VaultStudy",
]

"""The vault: batches, day state, presence and outbox of the operator zone. Blobs are sealed."""

from mobility.models.batch import Applied, Batch, Chunk, ShardRun
from mobility.models.drafts import PlanDraft
from mobility.models.feeds import ExtractProfile, FeedToken
from mobility.models.handover import Handover
from mobility.models.outbox import OutboxDelta, VaultPublication
from mobility.models.undo import DayUndo
from mobility.models.vault import AnswerShard, DayState, OptOutShard, PresenceShard, VaultDay, VaultStudy

__all__ = [
    "AnswerShard",
    "Applied",
    "Batch",
    "Chunk",
    "DayState",
    "DayUndo",
    "ExtractProfile",
    "FeedToken",
    "Handover",
    "OptOutShard",
    "OutboxDelta",
    "PlanDraft",
    "PresenceShard",
    "ShardRun",
    "VaultDay",
    "VaultPublication",
    "VaultStudy",
]

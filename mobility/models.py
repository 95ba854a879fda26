"""The vault: batches, day state, presence and outbox of the operator zone. Blobs are sealed."""

# ruff: noqa: F401 - Django looks for the models of the app here

from mobility.plans.models import PlanDraft
from mobility.tables.models import TableRequest
from mobility.vault.models.batch import Applied, Batch, Chunk, ShardRun
from mobility.vault.models.handover import Handover
from mobility.vault.models.outbox import OutboxDelta, OutboxSlots, VaultPublication
from mobility.vault.models.profiles import ExtractProfile, FeedToken
from mobility.vault.models.subscribers import (
    AnswerShard,
    DayState,
    OptOutShard,
    PresenceShard,
    VaultDay,
    VaultStudy,
)
from mobility.vault.models.undo import DayUndo

"""State of a separate analyst server."""

from django.db import models

from mobility.vault.models.subscribers import VaultStudy
from reports.base.reasons import ReasonField


class Handover(models.Model):
    """State of the handover of one study; publications have their own state."""

    study = models.OneToOneField(VaultStudy, on_delete=models.CASCADE, related_name="handover")
    plan_hash = models.CharField(max_length=64, blank=True, help_text="of the plan that the server has")
    is_closed = models.BooleanField(default=False, help_text="the server knows that the study is closed")
    is_ahead = models.BooleanField(
        default=False, help_text="the server claims publications, or an end, that this vault does not know"
    )
    tried_at = models.DateTimeField(null=True, blank=True)
    problem = ReasonField(blank=True, help_text="why the last try failed; empty: it did not")

    def __str__(self) -> str:
        return f"handing over {self.study}"

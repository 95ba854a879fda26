"""How far the analyst server is, where it runs apart."""

from django.db import models

from mobility.vault.models.subscribers import VaultStudy


class Handover(models.Model):
    """What is known of handing over one study; publications say themselves whether they were taken."""

    study = models.OneToOneField(VaultStudy, on_delete=models.CASCADE, related_name="handover")
    plan_hash = models.CharField(max_length=64, blank=True, help_text="of the plan that the server has")
    is_closed = models.BooleanField(default=False, help_text="the server knows that the study is closed")
    is_ahead = models.BooleanField(
        default=False, help_text="the server claims publications, or an end, that this vault does not know"
    )
    tried_at = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(
        max_length=500, blank=True, help_text="why the last try failed; empty: it did not"
    )

    def __str__(self) -> str:
        return f"handing over {self.study}"

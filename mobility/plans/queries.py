"""Knowledge of studies that were closed."""

from mobility.batches.publication import certificate
from mobility.vault.models.subscribers import VaultStudy


def unerased() -> list[VaultStudy]:
    """Studies that were closed, and of which not everything is erased yet."""
    closed = VaultStudy.objects.exclude(closed_at=None).order_by("slug")
    return [study for study in closed if not certificate.is_complete(study.certificate)]

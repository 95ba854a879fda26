"""Studies that stopped after a restore, since their vault does not fit what analysts have."""

from collections.abc import Iterator

from mobility.operations.findings import Finding, Level, finding
from mobility.vault.consistency import PASSING
from mobility.vault.models.subscribers import VaultStudy


def stopped() -> Iterator[Finding]:
    """Open studies that take nothing in until databases that fit are there."""
    studies = VaultStudy.objects.filter(certificate__isnull=True).exclude(stopped="").order_by("slug")
    found = [
        finding("study_stopped", Level.ERROR, slug, **({} if why in PASSING else {"why": "presence"}))
        for slug, why in studies.values_list("slug", "stopped")
    ]
    yield from found or [finding("study_stopped")]

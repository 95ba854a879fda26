"""Studies as looks need them: a vault row with a key, batches and days, without any row of a file."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.utils import timezone

from mobility.keystore import keystore
from mobility.models import Batch, VaultStudy
from mobility.operations.findings import Finding, Level


def make_study(slug: str = "fair", *, first_day: date | None = None, **definition: Any) -> VaultStudy:
    """An open study of 7 days, in UTC; by default it began ten days ago."""
    first = first_day or (timezone.now() - timedelta(days=10)).date()
    key_id = f"study-{slug}"
    keystore().create(key_id)
    return VaultStudy.objects.create(
        slug=slug, plan={}, plan_hash="0" * 64, key_id=key_id, n_shards=1,
        definition={
            "first_day": first.isoformat(), "days": 7, "timezone": "UTC",
            "visitor": {"from_minute": 0, "to_minute": 1439}, "key_until": None, **definition,
        },
    )  # fmt: skip


def make_batch(study: VaultStudy, state: str, *, ago_h: float = 1.0, **values: Any) -> Batch:
    """A batch that was made, and ended if it did, `ago_h` hours ago."""
    at = timezone.now() - timedelta(hours=ago_h)
    given = {"filename": "day.csv", "finished_at": at if state in Batch.FINAL else None}
    if state == Batch.State.FAILED:
        given["failure"] = "for this test"
    batch = Batch.objects.create(study=study, state=state, **given | values)
    Batch.objects.filter(pk=batch.pk).update(created_at=at)
    return batch


def trouble(findings: Any) -> list[tuple[str, str, Level]]:
    """What is not fine: code, subject, level."""
    return [(each.code, each.subject, each.level) for each in findings if each.level > Level.OK]


def only(findings: Any) -> Finding:
    """The one that there is."""
    (found,) = findings
    return found


def midnight(day: date) -> datetime:
    return datetime.combine(day, datetime.min.time(), UTC)

"""Studies as looks need them: a vault row with a key, batches and days, without any row of a file."""

from datetime import timedelta

from django.utils import timezone

from mobility.models import Batch, VaultStudy
from mobility.operations.findings import Finding, Level
from mobility.vault.keystore import keystore


def make_study(slug="fair", *, first_day=None, **definition):
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


def make_batch(study, state, *, ago_h=1.0, **values):
    at = timezone.now() - timedelta(hours=ago_h)
    given = {"filename": "day.csv", "finished_at": at if state in Batch.FINAL else None}
    if state == Batch.State.FAILED:
        given["failure"] = "for this test"
    batch = Batch.objects.create(study=study, state=state, **given | values)
    Batch.objects.filter(pk=batch.pk).update(created_at=at)
    return batch


def vault_row(slug="fair", key_id=""):
    row = {"key_id": key_id or f"study-{slug}-0a1b2c3d", "definition": {}, "plan": {}, "plan_hash": "0" * 64}
    return VaultStudy.objects.create(slug=slug, n_shards=4, **row)


def disk(level=Level.WARNING):
    facts = {"free_bytes": 5, "total_bytes": 100, "free_percent": 5}
    return Finding(code="disk_low", level=level, subject="data", facts=facts)


def trouble(findings):
    return [(each.code, each.subject, each.level) for each in findings if each.level > Level.OK]


def only(findings):
    (found,) = findings
    return found

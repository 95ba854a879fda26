"""What waits is counted by subscribers who count otherwise than before, no more by those who were touched."""

from typing import Any

from django.db import migrations, models


def count_net(apps: Any, schema_editor: Any) -> None:
    """Let what the earlier release left waiting count no more subscribers than it truly changes.

    It counted whoever lost a day to `void_day`, also when the day came again: each may be one too many. Of
    opt-outs it did not note who was published: all who had presence may be.
    """
    alias = schema_editor.connection.alias
    outbox = apps.get_model("mobility", "OutboxDelta").objects.using(alias)
    applied = apps.get_model("mobility", "Applied").objects.using(alias)
    for part in outbox.filter(batch__kind__in=("void_day", "opt_out")).select_related("batch"):
        taken = applied.filter(batch=part.batch_id, shard=part.shard).first()
        counts = taken.counts if taken else {}
        if part.batch.kind == "void_day":
            part.subscribers += counts.get("subscriber_days", -max(part.subscribers, 0))
        else:
            part.opted_out = -counts.get("subscribers_new", 0)
        part.save(update_fields=["subscribers", "opted_out"])
    batches = apps.get_model("mobility", "Batch").objects.using(alias)
    waiting = set(outbox.values_list("batch", flat=True))
    batches.filter(waiting_subscribers__gt=0).exclude(pk__in=waiting).update(waiting_subscribers=0)


class Migration(migrations.Migration):
    dependencies = [("mobility", "0011_handover_ahead")]
    operations = [
        migrations.AddField(
            "outboxdelta",
            "opted_out",
            models.PositiveIntegerField(
                default=0,
                help_text="subscribers who have opted out, and whom the totals count until this crosses",
            ),
        ),
        migrations.AlterField(
            "outboxdelta",
            "subscribers",
            models.IntegerField(
                help_text="by how many more the state differs from what is published; negative for fewer"
            ),
        ),
        migrations.AlterField(
            "vaultpublication",
            "subscribers",
            models.PositiveIntegerField(
                help_text="subscribers who count otherwise than in the publications before"
            ),
        ),
        migrations.AlterField(
            "batch",
            "waiting_subscribers",
            models.PositiveIntegerField(
                default=0,
                help_text="subscribers who waited for min_publication at its end; 0 once that is published",
            ),
        ),
        migrations.RunPython(count_net, migrations.RunPython.noop),
    ]

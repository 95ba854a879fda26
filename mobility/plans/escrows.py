"""Days on which keys went into an escrow."""

from datetime import date

from django.apps import apps

from mobility.vault.keystore import keystore


def escrow_days(key_id: str) -> tuple[date, ...]:
    """Days on which a key went into an escrow, in order: by the database, and by the list with the keys."""
    backups = apps.get_model("operations", "Backup")  # by name: operations are above plans
    made = backups.objects.filter(kind=backups.Kind.ESCROW).order_by("made_at")
    days = {each.made_at.date() for each in made if key_id in each.contents}
    return tuple(sorted(days.union(keystore().escrow_days(key_id))))

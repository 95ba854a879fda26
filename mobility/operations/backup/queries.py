"""What is known of backups and escrows."""

from datetime import date

from mobility.operations.models import Backup
from mobility.vault.keystore import keystore


def escrow_days(key_id: str) -> tuple[date, ...]:
    """Days on which a key went into an escrow, in order: by the database, and by the list beside the keys."""
    made = Backup.objects.filter(kind=Backup.Kind.ESCROW).order_by("made_at")
    days = {each.made_at.date() for each in made if key_id in each.contents}
    return tuple(sorted(days.union(keystore().escrow_days(key_id))))

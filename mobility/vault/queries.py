"""Finding a study, and saying why there is none to work with: without its key."""

from datetime import date, datetime

from django.utils.translation import gettext_noop as _

from mobility.base.errors import StudyClosedError, StudyMissingError
from mobility.vault.models.subscribers import VaultStudy
from reports.privacy.retention import closed_on
from reports.studies.slots import SlotClock


def find_study(slug: str) -> VaultStudy:
    """The study of that slug.

    Raises
    ------
    StudyMissingError
    """
    study = VaultStudy.objects.filter(slug=slug).first()
    if study is None:
        known = ", ".join(VaultStudy.objects.order_by("slug").values_list("slug", flat=True)) or "none yet"
        raise StudyMissingError(f"no study {slug!r}; studies: {known}")
    return study


def closed_error(at: datetime) -> StudyClosedError:
    """Return why a closed study accepts nothing."""
    return StudyClosedError(
        _("the study was closed on %(date)s: its key is destroyed, and you cannot add data"),
        date=closed_on(at),
    )


def clock_of(study: VaultStudy) -> SlotClock:
    """Times of the slots of a study that has them."""
    told = study.definition
    return SlotClock.of(
        told["timezone"],
        first_day=date.fromisoformat(told["first_day"]),
        days=told["days"],
        minutes=told["slots"]["minutes"],
    )

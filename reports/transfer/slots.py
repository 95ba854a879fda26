"""Counts by slot come in: each slot once, in order."""

from collections.abc import Sequence

import numpy as np
from django.conf import settings

from ldp.errors import LdpError
from ldp.estimation.series.counts import SlotCounts
from reports.base.tasks import send_on_commit
from reports.studies.models import Study
from reports.studies.slot_models import SlotDay, StudySlots


class PublicationError(Exception):
    """A publication does not fit the study; nothing was added."""


def put_zones(study: Study, zones: Sequence[str]) -> None:
    """Give the slots of a study that a message describes the zones of its area, which come apart.

    Raises
    ------
    LdpError : a larger zone is not the union of some of them
    """
    of_study = StudySlots.objects.filter(study=study).first()
    if of_study is None:
        return
    if not zones:
        raise LdpError("a study with slots must have zones")
    for level in of_study.levels:
        within = [None, *range(len(level["zones"]))]
        if len(level["within"]) != len(zones) or not all(place in within for place in level["within"]):
            raise LdpError(f"within must name a larger zone or null for each of {len(zones)} zones")
    of_study.zones = [*zones, *of_study.zones]
    of_study.save(update_fields=["zones"])


def slots_of(study: Study, packed: bytes) -> SlotCounts:
    """Counts of slots as a message brings them.

    Raises
    ------
    PublicationError : the study has no slots
    LdpError : they are not of its slots and zones
    """
    of_study = StudySlots.objects.filter(study=study).first()
    if of_study is None:
        raise PublicationError(f"study {study.slug!r} has no slots, and the publication has some")
    return SlotCounts.unpack(packed, slots=len(of_study.clock), zones=len(of_study.zones))


def add_slots(study: Study, slots: SlotCounts) -> int:
    """Write the next slots of a study, in the transaction of their publication; returns how many it has.

    Raises
    ------
    PublicationError : the study has no slots, or these are not the next ones, or not of its zones
    """
    of_study = StudySlots.objects.select_for_update(no_key=True).filter(study=study).first()
    if of_study is None:
        raise PublicationError(f"study {study.slug!r} has no slots, and the publication has some")
    clock, n_zones = of_study.clock, len(of_study.zones)
    first, through = slots.first_slot, slots.first_slot + len(slots.counts)
    is_next = first == of_study.closed and first < through <= len(clock)
    if not is_next or slots.counts.shape[1] != n_zones:
        raise PublicationError(
            f"study {study.slug!r} has {of_study.closed} of {len(clock)} slots, of {n_zones} zones: the next "
            f"ones must follow, got {first} to {through} of {slots.counts.shape[1]} zones"
        )
    days = clock.day[first:through]
    for day in np.unique(days).tolist():
        row, _ = SlotDay.objects.get_or_create(slots=of_study, day=day, defaults={"counts": b""})
        row.counts = bytes(row.counts) + slots.counts[days == day].astype("<i8").tobytes()
        row.save(update_fields=["counts"])
    of_study.closed = through
    of_study.save(update_fields=["closed"])
    if settings.HAS_REPORTS:
        # Each hour a worker looks for forecasts that no one could ask for.
        send_on_commit("reports.tasks.refresh_forecasts", study.pk, robust=True)
    return through

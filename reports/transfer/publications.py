"""The door of the analyst zone: sanitised deltas come in, totals stay."""

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from uuid import UUID

import numpy as np
from django.db import transaction
from numpy.typing import NDArray

from ldp.estimation.series.counts import SlotCounts
from ldp.estimation.tallies import Delta
from reports.ledger.actions import record
from reports.ledger.chain import Json
from reports.ledger.models import LedgerKind
from reports.studies.location_models import LocationTally
from reports.studies.models import Study
from reports.studies.plan_models import Plan
from reports.studies.tally_models import Publication, Tally, VisitorTally
from reports.transfer.slots import PublicationError, add_slots


def known_publications(study_slug: str) -> set[UUID]:
    """Publications of a study that are in its totals."""
    known = Publication.objects.filter(study__slug=study_slug)
    return set(known.values_list("publication_id", flat=True))


@transaction.atomic
def apply_publication(
    *,
    study_slug: str,
    publication_id: UUID,
    plan_hash: str,
    delta: Delta,
    voided_days: int,
    slots: SlotCounts | None = None,
) -> bool:
    """Add a delta to the totals; False when it had been added before.

    Parameters
    ----------
    plan_hash : of the plan by which the answers were sanitised; it must be the published one
    voided_days : published days undone so far
    slots : counts of the next slots; the delta is zero then, and may be of a day that is not here yet

    Raises
    ------
    PublicationError : unknown study, another plan, a total that would become negative, or, with presence
        noise, days whose totals are here already; slots that are not the next ones
    """
    # `no_key`: rows that name the study may be written meanwhile; their writers may hold the ledger's head.
    study = Study.objects.select_for_update(no_key=True).filter(slug=study_slug).first()
    if study is None:
        raise PublicationError(f"no study {study_slug!r} in the main database")
    _, is_new = Publication.objects.get_or_create(publication_id=publication_id, defaults={"study": study})
    if not is_new:
        return False
    in_force = Plan.objects.filter(study=study, superseded_at=None)
    plan = in_force.select_for_update(no_key=True).filter(spec_hash=plan_hash).first()
    if plan is None:
        raise PublicationError(f"study {study_slug!r} has no plan with the hash of the vault's approved copy")
    facts: dict[str, Json] = {
        "publication": str(publication_id),
        "plan_sha256": plan_hash,
        "voided_days": voided_days,
    }
    if slots is None:
        _check_days(study, delta, has_noise=plan.parsed.presence is not None)
        _add_counts(plan, delta)
    else:
        facts["slots_through"] = add_slots(study, slots)
        facts["slots_sha256"] = sha256(slots.pack()).hexdigest()
    if voided_days > plan.voided_days:
        plan.voided_days = voided_days
        plan.save(update_fields=["voided_days"])
    if delta.noisy_through:
        study.noisy_through = delta.noisy_through
        study.save(update_fields=["noisy_through"])
    # With a limit, anyone who knows all but a few hidden counts could try which ones fit.
    if slots is None and not (study.small_cell or study.small_category):
        facts["delta_sha256"] = sha256(delta.pack()).hexdigest()
    record(LedgerKind.PUBLICATION_APPLIED, study=study.slug, facts=facts)
    return True


def noisy_through(study_slug: str) -> int:
    """Last day whose noisy totals are here; 0 = none, or the study is unknown, or its totals are exact."""
    return Study.objects.filter(slug=study_slug).values_list("noisy_through", flat=True).first() or 0


def _add_counts(plan: Plan, delta: Delta) -> None:
    add = partial(_sum, may_be_negative=delta.noisy_through > 0)
    visitors = VisitorTally.objects.get(study=plan.study_id)
    visitors.counts = _added(visitors.counts, delta.visitors, add=add, what="visitors")
    visitors.stays = _added(visitors.stays, delta.stays, add=add, what="stays")
    visitors.save(update_fields=["counts", "stays"])
    tallies = list(Tally.objects.filter(plan=plan).order_by("indicator__position"))
    locations = LocationTally.objects.filter(plan=plan).first()
    n = len(delta.counts) - (locations is not None)  # the last tally is that of the locations
    for tally, counts, n_reports in zip(tallies, delta.counts[:n], delta.n_reports[:n], strict=True):
        what = f"indicator {tally.indicator_id}"
        tally.counts = _added(tally.counts, counts, add=add, what=what)
        tally.n_reports = _added(tally.n_reports, n_reports, add=add, what=what)
        tally.save(update_fields=["counts", "n_reports"])
    if locations is not None:
        locations.set(add(locations.array, delta.counts[n], what="the locations"))


def _check_days(study: Study, delta: Delta, *, has_noise: bool) -> None:
    """Raise PublicationError unless the delta brings noisy cells, each for the first time, or exact ones.

    A cell that came twice would show, as the difference of both, what its noise hides.
    """
    if not has_noise:
        if delta.noisy_through:
            raise PublicationError(f"study {study.slug!r} has exact totals, and the delta has noisy ones")
        return
    known, through = study.noisy_through, delta.noisy_through
    if not known < through <= study.days:
        raise PublicationError(
            f"study {study.slug!r} has noisy totals through day {known}: a delta must bring later days and "
            f"their noise, got days through {through}"
        )
    arrays = (delta.visitors, *delta.counts, *delta.n_reports)
    if any(array[..., : known + 1].any() or array[..., through + 1 :].any() for array in arrays):
        raise PublicationError(
            f"a delta of study {study.slug!r} must have days {known + 1} to {through} only: the totals of "
            "each day come once, with their noise"
        )


def _added(
    stored: bytes | memoryview,
    change: NDArray[np.int64],
    *,
    add: Callable[..., NDArray[np.int64]],
    what: str,
) -> bytes:
    total = add(np.frombuffer(stored, "<i8").reshape(change.shape), change, what=what)
    return total.astype("<i8").tobytes()


def _sum(
    stored: NDArray[np.int64], change: NDArray[np.int64], *, what: str, may_be_negative: bool
) -> NDArray[np.int64]:
    total = stored + change
    if (total < 0).any() and not may_be_negative:
        raise PublicationError(f"the totals of {what} would become negative: the delta is not of this state")
    return total

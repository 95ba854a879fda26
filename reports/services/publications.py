"""The door of the analyst zone: sanitised deltas come in, totals stay."""

from uuid import UUID

import numpy as np
from django.db import transaction
from numpy.typing import NDArray

from ldp.tallies import Delta
from reports.models import LocationTally, Plan, Publication, Study, Tally, VisitorTally


class PublicationError(Exception):
    """A delta does not fit the study; nothing was added."""


def known_publications(study_slug: str) -> set[UUID]:
    """Publications of a study that are in its totals."""
    known = Publication.objects.filter(study__slug=study_slug)
    return set(known.values_list("publication_id", flat=True))


@transaction.atomic
def apply_publication(
    *, study_slug: str, publication_id: UUID, plan_hash: str, delta: Delta, voided_days: int
) -> bool:
    """Add a delta to the totals; False when it had been added before.

    Parameters
    ----------
    plan_hash : of the plan by which the answers were sanitised; it must be the published one
    voided_days : published days undone so far

    Raises
    ------
    PublicationError : unknown study, another plan, or a total that would become negative
    """
    study = Study.objects.select_for_update().filter(slug=study_slug).first()
    if study is None:
        raise PublicationError(f"no study {study_slug!r} in the main database")
    _, is_new = Publication.objects.get_or_create(publication_id=publication_id, defaults={"study": study})
    if not is_new:
        return False
    plan = Plan.objects.select_for_update().filter(study=study, spec_hash=plan_hash).first()
    if plan is None:
        raise PublicationError(f"study {study_slug!r} has no plan with the hash of the vault's approved copy")
    visitors = VisitorTally.objects.get(study=study)
    visitors.counts = _added(visitors.counts, delta.visitors, what="visitors")
    visitors.save(update_fields=["counts"])
    tallies = list(Tally.objects.filter(plan=plan).order_by("indicator__position"))
    locations = LocationTally.objects.filter(plan=plan).first()
    n = len(delta.counts) - (locations is not None)  # the last tally is that of the locations
    for tally, counts, n_reports in zip(tallies, delta.counts[:n], delta.n_reports[:n], strict=True):
        tally.counts = _added(tally.counts, counts, what=f"indicator {tally.indicator_id}")
        tally.n_reports = _added(tally.n_reports, n_reports, what=f"indicator {tally.indicator_id}")
        tally.save(update_fields=["counts", "n_reports"])
    if locations is not None:
        locations.set(_sum(locations.array, delta.counts[n], what="the locations"))
    if voided_days > plan.voided_days:
        plan.voided_days = voided_days
        plan.save(update_fields=["voided_days"])
    return True


def _added(stored: bytes | memoryview, change: NDArray[np.int64], *, what: str) -> bytes:
    total = _sum(np.frombuffer(stored, "<i8").reshape(change.shape), change, what=what)
    return total.astype("<i8").tobytes()


def _sum(stored: NDArray[np.int64], change: NDArray[np.int64], *, what: str) -> NDArray[np.int64]:
    total = stored + change
    if (total < 0).any():
        raise PublicationError(f"the totals of {what} would become negative: the delta is not of this state")
    return total

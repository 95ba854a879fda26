"""Comparison of both zones: the same studies, plans and publications, and totals that fit presence.

The deep look computes the tallies of every study again from the presence that the vault holds. They must be
the totals of the analyst zone and what waits to be published, number by number: a file that was counted
twice, or not at all, or a restore of one database alone, would show.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.estimation.tallies import Delta
from mobility.base.errors import SealBrokenError
from mobility.batches import queries
from mobility.batches.publication.event_changes import exact_events
from mobility.operations.doctor.diagnosis import Diagnoses, Diagnosis, error, error_if, fine, note, warning
from mobility.operations.doctor.sealed import open_studies
from mobility.operations.findings import Level
from mobility.vault.models.outbox import OutboxDelta, OutboxSlots, VaultPublication
from mobility.vault.models.subscribers import DayState, PresenceShard, VaultDay, VaultStudy
from mobility.vault.state.changes import exact_tallies
from mobility.vault.studies import OpenStudy
from reports.studies.location_models import LocationTally
from reports.studies.models import Study
from reports.studies.plan_models import Plan
from reports.studies.slot_models import StudySlots
from reports.studies.tally_models import Tally, VisitorTally
from reports.transfer.publications import known_publications

TOGETHER: Final = "restore both databases from one backup (docs/backup.md)"
Arrays = list[NDArray[np.int64]]


def studies() -> Diagnoses:
    """Studies, and plans in force, in both zones."""
    vault = dict(VaultStudy.objects.filter(closed_at=None).values_list("slug", "plan_hash"))
    ours = set(Study.objects.filter(closed_at=None, sent=None).values_list("slug", flat=True))
    known = set(Study.objects.values_list("slug", flat=True))
    for slug in sorted(vault.keys() - known):
        what = "the vault has the study, but the main database does not"
        todo = f"create the study again from its file, or {TOGETHER}"
        yield error("study_missing", what, todo, subject=slug)
    for slug in sorted(ours - set(VaultStudy.objects.values_list("slug", flat=True))):
        what = "the main database has the study, but the vault does not"
        yield error("study_missing", what, TOGETHER, subject=slug)
    in_force = Plan.objects.filter(superseded_at=None, study__slug__in=vault)
    hashes = dict(in_force.values_list("study__slug", "spec_hash"))
    for slug in sorted(vault.keys() & hashes.keys()):
        what = "the vault sanitises with a plan that differs from the plan shown to analysts"
        todo = f"upload nothing until the cause is known; {TOGETHER}"
        yield error_if(vault[slug] != hashes[slug], "plan_differs", what, todo, subject=slug)


def publications() -> Diagnoses:
    """Compare the publications of both zones."""
    for study in VaultStudy.objects.filter(closed_at=None).order_by("slug"):
        known = known_publications(study.slug)  # first: each is in the vault before it is there
        sent = set(VaultPublication.objects.filter(study=study).values_list("pk", flat=True))
        if missing := len(sent - known):
            what = f"{missing} publications are not yet in the totals"
            todo = "no action needed if workers run: each worker start and each batch sends the "
            todo += "missing publications"
            yield warning("publication_missing", what, todo, subject=study.slug)
        if strange := len(known - sent):
            what = f"the totals contain {strange} publications that the vault does not know"
            what += ": the vault was restored from an older dump"
            yield error("publication_unknown", what, TOGETHER, subject=study.slug)
        if sent == known:
            yield fine("publication_missing", study.slug)


def slots() -> Diagnoses:
    """Compare the slots that are closed with those that analysts have."""
    for study in VaultStudy.objects.filter(closed_at=None, plan__has_key="slots").order_by("slug"):
        there = StudySlots.objects.filter(study__slug=study.slug).values_list("closed", flat=True).first()
        known = known_publications(study.slug)
        sent = VaultPublication.objects.filter(study=study).exclude(slots_through=None)
        ends = {pk: end or 0 for pk, end in sent.values_list("pk", "slots_through")}
        arrived = max([0, *(end for pk, end in ends.items() if pk in known)])
        waits = OutboxSlots.objects.filter(batch__study=study).exists()
        is_cut = waits or max([0, *ends.values()]) == study.slots_closed
        what = f"{study.slots_closed} slots are closed, but analysts have {there or 0}, and no "
        what += "publication brings the others"
        is_wrong = not is_cut or there is None or there != arrived
        yield error_if(is_wrong, "slots_differ", what, TOGETHER, subject=study.slug)


def negative() -> Diagnoses:
    """Exact totals count people: none is below zero."""
    for study in Study.objects.filter(noisy_through=0).order_by("slug"):
        blobs = [
            *(blob for row in VisitorTally.objects.filter(study=study) for blob in (row.counts, row.stays)),
            *Tally.objects.filter(plan__study=study).values_list("counts", flat=True),
        ]
        is_negative = any((np.frombuffer(blob, "<i8") < 0).any() for blob in blobs)
        what = "a total is below zero"
        yield error_if(is_negative, "totals_negative", what, TOGETHER, subject=study.slug)


def recomputed() -> Diagnoses:
    """Compare totals from the presence of the vault with those of the analyst zone."""
    for study in open_studies():
        slug = study.row.slug
        if queries.is_noisy(study.row):
            what = "the totals have noise, so they were not recomputed"
            yield note("totals_differ", what, "nothing", subject=slug)
            continue
        before = _moment(study)
        found = None if before is None else _compared(study)
        if found is None or (found.level > Level.OK and _moment(study) != before):
            what = "a batch is running, or the totals changed during the check, so they were not recomputed"
            found = note("totals_differ", what, "run the check again when no batch is running", subject=slug)
        yield found


def _moment(study: OpenStudy) -> tuple[object, ...] | None:
    """Return a version of a study's presence, deltas and totals; None while a batch changes it."""
    now = VaultStudy.objects.filter(pk=study.row.pk, closed_at=None, active_batch=None).first()
    if now is None:
        return None
    table, _ = study.kept_units
    shards = table._default_manager.filter(study=now).order_by("pk")
    waiting = OutboxDelta.objects.filter(batch__study=now)
    return (
        now.plan_hash,
        now.publication_number,
        tuple(shards.values_list("pk", "version")),
        frozenset(waiting.values_list("pk", flat=True)),
        frozenset(known_publications(now.slug)),
    )


def _compared(study: OpenStudy) -> Diagnosis:
    slug = study.row.slug
    try:
        expected = _of_presence(study)
        published = _published(slug)
        for delta in _on_the_way(study):
            published = [total + part for total, part in zip(published, _arrays(delta), strict=True)]
    except (SealBrokenError, Plan.DoesNotExist, VisitorTally.DoesNotExist):
        what = "the totals could not be recomputed: some parts cannot be opened or are missing"
        return warning("totals_differ", what, "see the other findings", subject=slug)
    if study.plan.events:  # a day that is closed has no state
        closed = VaultDay.objects.filter(study=study.row, state=VaultDay.State.CLOSED)
        days = list(closed.values_list("day", flat=True))
        for array in (*expected, *published):
            array.reshape(-1, study.plan.days + 1)[:, days] = 0
    differ = sum(int(np.count_nonzero(was != now)) for was, now in zip(published, expected, strict=True))
    what = f"{differ} numbers in the totals differ from the presence data in the vault"
    todo = f"publish nothing from this study until the cause is known; {TOGETHER}"
    return error_if(differ, "totals_differ", what, todo, subject=slug)


def _of_presence(study: OpenStudy) -> Arrays:
    if study.plan.events:
        return _arrays(_of_events(study))
    total = Delta.zero(study.plan)
    for shard in PresenceShard.objects.filter(study=study.row).iterator(chunk_size=4):
        total.add(exact_tallies(study.unseal_presence(shard), study.sanitiser))
    return _arrays(total)


def _of_events(study: OpenStudy) -> Delta:
    """Counts of the days whose state is kept."""
    total = Delta.zero(study.plan)
    for row in DayState.objects.filter(study=study.row).iterator(chunk_size=64):
        total.add(exact_events(study, {row.day: study.unseal_events(row)}))
    return total


def _published(slug: str) -> Arrays:
    plan = Plan.objects.get(study__slug=slug, superseded_at=None)
    tallies = list(Tally.objects.filter(plan=plan).order_by("indicator__position"))
    row = VisitorTally.objects.get(study__slug=slug)
    visitors, stays = (np.frombuffer(blob, "<i8") for blob in (row.counts, row.stays))
    location = LocationTally.objects.filter(plan=plan).first()
    counts = [np.frombuffer(tally.counts, "<i8") for tally in tallies]
    reports = [np.frombuffer(tally.n_reports, "<i8") for tally in tallies]
    if location is not None:
        counts.append(location.array.ravel())
        reports.append(np.frombuffer(location.n_reports, "<i8"))
    return [each.astype(np.int64) for each in (visitors, stays, *counts, *reports)]


def _on_the_way(study: OpenStudy) -> Iterator[Delta]:
    """Report publications that the analyst zone lacks."""
    known = known_publications(study.row.slug)
    for row in VaultPublication.objects.filter(study=study.row).exclude(pk__in=known):
        yield Delta.unpack(bytes(row.delta))
    waiting = OutboxDelta.objects.filter(batch__study=study.row)
    for part in waiting.iterator(chunk_size=16):
        yield study.unseal_delta(part)


def _arrays(delta: Delta) -> Arrays:
    return [each.ravel() for each in (delta.visitors, delta.stays, *delta.counts, *delta.n_reports)]

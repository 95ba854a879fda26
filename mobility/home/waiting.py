"""Tasks that wait for a reader: failed files, late feeds, requests to decide, drafts to review or publish."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.contrib.auth.models import User
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, ngettext

from mobility.batches.publication import undoing
from mobility.batches.quality.coverage import unmended_files
from mobility.batches.queries import study_head
from mobility.operations.probes.feeds import late_days
from mobility.plans.models import PlanDraft
from mobility.plans.pages.draft_state import DraftState, Next
from mobility.plans.pages.drafts import open_drafts
from mobility.tables import approvals as tables
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultStudy
from reports.base.formats import day_title
from reports.privacy.budget.actions import confirmation_obstacle
from reports.privacy.models import BudgetCap
from reports.studies.labels import label_of
from reports.studies.policies import OVERSEERS, Role, roles_of, studies_for

FAILED_SINCE: Final = timedelta(days=30)  # the calendar of a study shows older failures
FAILED_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One line on the first page: the action, the address of its page, and the reason."""

    title: str
    address: str
    detail: str


def tasks_of(reader: User) -> list[Task]:
    """Tasks that an account can do now in its roles; empty if nothing waits."""
    roles, tasks = roles_of(reader), []
    if Role.OPERATOR in roles:
        slugs = set(studies_for(reader, Role.OPERATOR).values_list("slug", flat=True))
        studies = dict(VaultStudy.objects.filter(slug__in=slugs, closed_at=None).values_list("pk", "slug"))
        tasks += [*_failed(studies, reader), *_late(studies.values(), reader)]
    if roles & OVERSEERS:
        by = reader.get_username()
        tasks += [*_undos(reader), *_tables(reader), *_caps(by=by), *_drafts(reader)]
    return tasks


def _failed(studies: Iterable[int], reader: User) -> list[Task]:
    """Failed batches of some studies that nothing has made up for, newest first."""
    since = timezone.now() - FAILED_SINCE
    recent = Batch.objects.filter(
        study__in=list(studies), state=Batch.State.FAILED, validate_only=False, finished_at__gt=since
    )
    # The calendar of a study is costly: only of those in which something failed.
    of_files = recent.filter(kind=Batch.Kind.EXTRACT).order_by().values_list("study", flat=True).distinct()
    waiting = {pk for study_id in of_files for pk in unmended_files(study_id, since=since)}
    waiting |= {each.pk for each in recent.exclude(kind=Batch.Kind.EXTRACT) if _is_last(each)}
    shown = Batch.objects.filter(pk__in=waiting).order_by("-finished_at")[:FAILED_SHOWN]
    return [
        Task(
            title=_failed_title(each, reader),
            address=reverse("operator:batch", args=[each.pk]),
            detail=each.failure.words,
        )
        for each in shown
    ]


def _is_last(batch: Batch) -> bool:
    """Return whether no batch of its kind has ended since; a file is corrected by its name or content."""
    later = Batch.objects.filter(
        study=batch.study_id, kind=batch.kind, validate_only=False, finished_at__gt=batch.finished_at,
        state__in=(Batch.State.DONE, Batch.State.FAILED),
    )  # fmt: skip
    if batch.kind in Batch.FILES:
        same = Q(filename=batch.filename)
        later = later.filter(same | Q(content_hash=batch.content_hash) if batch.content_hash else same)
    return not later.exists()


def _failed_title(batch: Batch, reader: User) -> str:
    values = {"file": batch.filename, "study": label_of(study_head(batch.study_id), reader)}
    if batch.filename:
        return gettext("Check the failed file %(file)s in %(study)s") % values
    return gettext("Check the failed batch in %(study)s") % values


def _late(slugs: Iterable[str], reader: User) -> Iterator[Task]:
    for each in late_days(among=slugs):
        detail = ngettext(
            "The automatic upload for %(n)d day is missing: %(date)s.",
            "The automatic uploads for %(n)d days are missing. The first of these days is %(date)s.",
            each.days,
        )
        yield Task(
            title=gettext("Find the overdue files for %(study)s")
            % {"study": label_of(study_head(each.study), reader)},
            address=reverse("operator:coverage", args=[each.slug]),
            detail=detail % {"n": each.days, "date": day_title(each.first)},
        )


def _undos(reader: User) -> Iterator[Task]:
    for each in undoing.waiting():
        if undoing.obstacle(each, by=reader.get_username()):
            continue
        head = study_head(each.study_id)
        values = {"date": day_title(head.date_of(each.day)), "study": label_of(head, reader)}
        yield Task(
            title=gettext("Decide whether to undo the uploads to %(study)s for %(date)s") % values,
            address=reverse("administrator:study", args=[head.slug]),
            detail=_requested(each.asked_by),
        )


def _tables(reader: User) -> Iterator[Task]:
    for each in tables.waiting():
        if not tables.obstacle(each, by=reader.get_username()):
            head = study_head(each.study_id)
            yield Task(
                title=gettext("Decide whether to release the sanitised table %(file)s of %(study)s")
                % {"file": each.file_name, "study": label_of(head, reader)},
                address=reverse("administrator:study", args=[head.slug]),
                detail=_requested(each.asked_by),
            )


def _caps(*, by: str) -> Iterator[Task]:
    waiting = BudgetCap.objects.filter(needs_second=True, decision=None).select_related("population")
    for each in waiting:
        if not confirmation_obstacle(each, by=by):
            yield Task(
                title=gettext("Decide on the proposed privacy budget cap for %(population)s")
                % {"population": each.population.name},
                address=reverse("budget:budget"),
                detail=_requested(each.set_by),
            )


def _drafts(reader: User) -> Iterator[Task]:
    for state in open_drafts(reader):
        if title := _draft_title(state, by=reader.get_username()):
            yield Task(
                title=title % {"study": label_of(state.draft, reader)},
                address=reverse("administrator:draft", args=[state.draft.pk]),
                detail=state.words,
            )


def _draft_title(state: DraftState, *, by: str) -> str:
    """Next step of a reader; empty if it is another person's, such as an author who is still writing."""
    if not state.is_mine:
        return ""
    if state.next == Next.REVIEW:
        return gettext("Review the draft plan for %(study)s")
    if state.next == Next.FINISH or state.draft.state == PlanDraft.State.REVIEWED:
        return gettext("Publish the draft plan for %(study)s")
    return gettext("Complete your draft plan for %(study)s") if state.draft.edited_by == by else ""


def _requested(by: str) -> str:
    return gettext("Requested by %(by)s.") % {"by": by}

"""Progress and end of a batch, in words."""

from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone
from django.utils.translation import gettext

from mobility.batches import queries
from mobility.batches.pages import unit_texts
from mobility.batches.quality.batch_checks import misfits_of
from mobility.batches.quality.deliveries import calendar_of
from mobility.batches.queries import StudyHead, is_noisy
from mobility.batches.texts import state_of
from mobility.vault.models.batch import Batch
from reports.base.formats import day_title, number

QUEUE_PATIENCE = timedelta(seconds=15)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProgress:
    """Text of the page of a batch above the numbers.

    percent : how far the present step is, None where a step has no measure
    hint : what to do or to expect next, may be empty
    is_published : everything that the batch brought can be read by analysts
    """

    title: str
    badge: str
    sentence: str
    percent: int | None
    hint: str
    is_published: bool


def batch_progress(batch: Batch, study: StudyHead) -> BatchProgress:
    """Describe a batch, in the language of the reader."""
    done = batch.state == Batch.State.DONE
    sentence, hint = _done(batch, study) if done else _running(batch, study)
    brought_nothing = batch.duplicate_of_id is not None or batch.more_to_come or batch.validate_only
    title, badge = state_of(batch)
    brought_nothing = brought_nothing or batch.counts_nothing
    waits = (queries.waiting_subscribers, _waits_for_closing, _waits_for_server)
    return BatchProgress(
        title=title,
        badge=badge,
        sentence=sentence,
        percent=_percent(batch),
        hint=hint,
        is_published=done and not brought_nothing and not any(each(batch) for each in waits),
    )


def _percent(batch: Batch) -> int | None:
    parts = {
        Batch.State.RECEIVING: (batch.bytes_received, batch.bytes_total),
        Batch.State.READING: (batch.bytes_read, batch.bytes_total),
        Batch.State.MERGING: (batch.shards_done, len(batch.shards)),
    }
    done, total = parts.get(Batch.State(batch.state), (0, None))
    return min(100 * done // total, 100) if total else None


def _running(batch: Batch, study: StudyHead) -> tuple[str, str]:
    match batch.state:
        case Batch.State.FAILED | Batch.State.CANCELLED:
            return batch.failure.words, ""
        case Batch.State.RECEIVING:
            return gettext("The file is encrypted as it arrives."), ""
        case Batch.State.QUEUED:
            return _queued(batch)
        case Batch.State.READING:
            sentence = unit_texts.reading(of_events=study.of_events)
        case _ if batch.validate_only:
            sentence = unit_texts.checking(of_events=study.of_events)
        case Batch.State.MERGING if batch.kind == Batch.Kind.CLOSE_SLOTS:
            sentence = gettext("The worker counts the people in each zone during each time slot.")
        case Batch.State.MERGING:
            sentence = unit_texts.merging(of_events=study.of_events)
        case _:
            sentence = unit_texts.publishing(of_events=study.of_events)
    if batch.waits_since is not None:
        return sentence, _held_up(batch)
    return sentence, "" if batch.is_alive else _stalled()


def _stalled() -> str:
    return gettext(
        "The worker has not responded for a while. Another worker will resume this batch where "
        "processing stopped. If nothing changes within a few minutes, ask your site administrator "
        "whether a worker is running."
    )


def _held_up(batch: Batch) -> str:
    return gettext(
        "Processing has paused because a key or storage is unavailable. The worker tries again every "
        "minute, and no data is lost. Give your site administrator this message: %(what)s"
    ) % {"what": batch.waits_for.words}


def _queued(batch: Batch) -> tuple[str, str]:
    if queries.is_blocked(batch):
        return gettext(
            "Another batch for this study is being processed. This batch will start when the other batch has "
            "finished."
        ), ""
    hint = ""
    if timezone.now() - batch.created_at > QUEUE_PATIENCE:
        hint = gettext(
            "No worker has started this batch yet. The file is stored safely. If the batch still "
            "does not start, ask your site administrator whether a worker is running."
        )
    if batch.waits_since is not None:
        hint = _held_up(batch)
    if batch.kind in Batch.FILES:
        return gettext("The complete file has been received."), hint
    return gettext("The request to close days or time slots, or to undo uploads, has been received."), hint


def _done(batch: Batch, study: StudyHead) -> tuple[str, str]:
    if batch.duplicate_of_id is not None:
        return gettext("This file has already been processed, so it was not read again."), ""
    if batch.counts_nothing:
        return _nothing_counted(batch)
    if batch.validate_only:
        return (
            gettext("This was only a check. No data from the file was kept or published."),
            gettext("If the checks below look right, choose the file again to publish it."),
        )
    if batch.more_to_come:
        return (
            gettext(
                "The rows of this file have been merged into the study. You can still upload more files "
                "for the days that these rows cover."
            ),
            gettext(
                "The figures for the days in this file will be published when you close these days. "
                "They will also be published if you upload the next file without the option “More "
                "files will follow for these days”."
            ),
        )
    waiting = queries.waiting_subscribers(batch)
    if waiting:
        return _waiting(batch, waiting, study)
    if _waits_for_closing(batch):
        return _until_closed(batch)
    if _waits_for_server(batch):
        return gettext(
            "Processing is complete on this server. The analyst server has not received the totals yet."
        ), ""
    return _published(batch, study), ""


def _nothing_counted(batch: Batch) -> tuple[str, str]:
    hint = gettext("The reports have not changed.")
    if batch.validate_only:
        hint = gettext("This was only a check. No data from the file was kept or published.")
    return " ".join(misfits_of(batch)), hint


def _waits_for_server(batch: Batch) -> bool:
    """Return whether publications of the study wait for an analyst server that runs apart."""
    handover = queries.waiting_handover(batch.study_id)
    return handover is not None and handover.publications > 0


def _waits_for_closing(batch: Batch) -> bool:
    """Explain that with presence noise nothing crosses before its days are closed, or changes later."""
    return is_noisy(batch.study) and batch.kind not in Batch.CLOSINGS


def _until_closed(batch: Batch) -> tuple[str, str]:
    match batch.kind:
        case Batch.Kind.SUBSCRIBERS:
            sentence = gettext("The answers of the subscribers in this file have been added to the study.")
        case Batch.Kind.OPT_OUT:
            sentence = gettext(
                "The subscribers in this file have been removed from the vault, and any rows that arrive "
                "for them later are ignored. The totals for days that were already closed still include "
                "these subscribers."
            )
        case Batch.Kind.VOID_DAY:
            sentence = gettext(
                "All data uploaded for this day has been removed. None of it had been published."
            )
        case _:
            sentence = gettext(
                "The rows of this file have been merged into the study, but the reports do not include "
                "them yet."
            )
    return sentence, gettext(
        "This study adds noise to its totals (presence noise). The totals for a day are published "
        "once, after you close that day and all earlier days. They never change afterwards."
    )


def _waiting(batch: Batch, units: int, study: StudyHead) -> tuple[str, str]:
    has_left, is_enough = batch.kind == Batch.Kind.OPT_OUT, units >= study.min_publication
    least = number(study.min_publication)
    if study.closed_at is not None:
        hint = gettext(
            "The study is closed, so the people on the opt-out list remain in the reports, as the "
            "erasure certificate states."
        )
        text = unit_texts.never_published(least, is_enough=is_enough, of_events=study.of_events)
        return text, hint if has_left else ""
    sentence = unit_texts.not_yet(units, least, is_enough=is_enough, of_events=study.of_events)
    if has_left:
        return sentence, gettext(
            "The people on the opt-out list have been removed from the vault, and any rows that arrive "
            "for them later are ignored. The reports still include these people until the pending changes "
            "cover enough subscribers to be published. If the changes cover too few subscribers when the "
            "study is closed, these people remain in the reports. The erasure certificate will then say "
            "so."
        )
    hint = unit_texts.until_later(of_events=study.of_events)
    if is_enough:
        hint = (
            gettext(
                "To publish these changes now, upload more files for the day whose data was removed "
                "or for the next day."
            )
            + " "
            + hint
        )
    return sentence, hint


def _published(batch: Batch, study: StudyHead) -> str:
    if batch.kind == Batch.Kind.EXTRACT and not (batch.subscriber_days or batch.reports):
        return gettext("The file contains no new data. The reports have not changed.")
    match batch.kind:
        case Batch.Kind.SUBSCRIBERS:
            return gettext(
                "The answers of the subscribers in this file have been added to the study. They have "
                "been published for the days on which these subscribers were present."
            )
        case Batch.Kind.OPT_OUT:
            return gettext("The subscribers in this file are no longer counted on any day of the study.")
        case Batch.Kind.CLOSE_DAYS if is_noisy(batch.study):
            return gettext("The figures for these days are final. They have been published with noise.")
        case Batch.Kind.CLOSE_DAYS:
            return gettext(
                "The figures for these days are final. All data that was still pending has now been "
                "published."
            )
        case Batch.Kind.CLOSE_SLOTS if study.has_slot_noise:
            return gettext("The counts for these time slots are final. They have been published with noise.")
        case Batch.Kind.CLOSE_SLOTS:
            return gettext(
                "The counts for these time slots are final. They have been published without noise."
            )
        case Batch.Kind.VOID_DAY:
            return gettext(
                "All data uploaded for this day has been removed from the vault and from the reports. "
                "You can upload the files for this day again."
            )
        case _ if undone := _undone_days(batch):
            return gettext(
                "Published. These days were undone later, so the reports no longer include the data from "
                "this file for them: %(days)s. You can upload the file again."
            ) % {"days": undone}
        case _:
            return gettext("Published. The reports now include the data from this file.")


def _undone_days(batch: Batch) -> str:
    """Days of a batch that were undone after it, in words; "" if none was."""
    calendar = calendar_of(batch.study_id)
    undos = Batch.objects.filter(study=batch.study_id, kind=Batch.Kind.VOID_DAY)
    days = queries.undone_days(batch, undos)
    return ", ".join(day_title(calendar.date_of(day)) for day in days)

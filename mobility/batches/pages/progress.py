"""Progress and end of a batch, in words."""

from dataclasses import dataclass

from django.utils.translation import gettext, ngettext

from mobility.batches import queries
from mobility.batches.queries import StudyHead, is_noisy
from mobility.batches.texts import BATCH_BADGES, BATCH_STATES
from mobility.vault.models.batch import Batch
from reports.base.formats import number

QUEUE_PATIENCE_S = 15


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
    """Describe a batch; the text of a failure is the batch's own."""
    done = batch.state == Batch.State.DONE
    sentence, hint = _done(batch, study) if done else _running(batch)
    return BatchProgress(
        title=str(BATCH_STATES[batch.state]),
        badge=str(BATCH_BADGES[batch.state]),
        sentence=sentence,
        percent=_percent(batch),
        hint=hint,
        is_published=done
        and _brought_something(batch)
        and not queries.waiting_subscribers(batch)
        and not _waits_for_closing(batch)
        and not _waits_for_server(batch),
    )


def _percent(batch: Batch) -> int | None:
    parts = {
        Batch.State.RECEIVING: (batch.bytes_received, batch.bytes_total),
        Batch.State.READING: (batch.bytes_read, batch.bytes_total),
        Batch.State.MERGING: (batch.shards_done, len(batch.shards)),
    }
    done, total = parts.get(Batch.State(batch.state), (0, None))
    return min(100 * done // total, 100) if total else None


def _running(batch: Batch) -> tuple[str, str]:
    match batch.state:
        case Batch.State.FAILED | Batch.State.CANCELLED:
            return batch.failure, ""
        case Batch.State.RECEIVING:
            return gettext("The file is encrypted while it arrives."), ""
        case Batch.State.QUEUED:
            return _queued(batch)
        case Batch.State.READING:
            sentence = gettext("Rows are checked, and identifiers replaced by keyed pseudonyms.")
        case Batch.State.MERGING:
            sentence = gettext("Visits are merged into the days of the study, and answers sanitised.")
        case _:
            sentence = gettext("Sanitised totals cross to the analyst zone.")
    if batch.waits_since is not None:
        return sentence, _held_up(batch)
    return sentence, "" if batch.is_alive else _stalled()


def _stalled() -> str:
    return gettext(
        "The worker has not reported for a while. Another one goes on where it stopped; "
        "if nothing moves for minutes, ask the people who run this site whether a worker is running."
    )


def _held_up(batch: Batch) -> str:
    """Describe the delay for people; the pipeline's own text names what it waits for."""
    return gettext(
        "It waits for a key or a storage, is tried again every minute, and loses nothing. Tell the people "
        "who run this site: %(what)s"
    ) % {"what": batch.waits_for}


def _queued(batch: Batch) -> tuple[str, str]:
    if queries.is_blocked(batch):
        return gettext("Another batch of this study is at work. This one starts when it has ended."), ""
    hint = ""
    if queries.waits_s(batch) > QUEUE_PATIENCE_S:
        hint = gettext(
            "No worker has taken it yet. It is safe and will not be lost; if this lasts, ask the people "
            "who run this site whether a worker is running."
        )
    if batch.waits_since is not None:
        hint = _held_up(batch)
    if batch.kind in Batch.FILES:
        return gettext("The file has arrived completely."), hint
    return gettext("The change is asked for."), hint


def _brought_something(batch: Batch) -> bool:
    return batch.duplicate_of_id is None and not batch.more_to_come and not batch.validate_only


def _done(batch: Batch, study: StudyHead) -> tuple[str, str]:
    if batch.duplicate_of_id is not None:
        return gettext("Nothing new: the same file was taken in before, and was not read again."), ""
    if batch.validate_only:
        return (
            gettext("The file was only checked: nothing of it was kept or published."),
            gettext("If the checks below are as they should be, upload it for real."),
        )
    if batch.more_to_come:
        return (
            gettext("Its rows are merged, and its days stay open for more files."),
            gettext(
                "They are published by the next file of these days that is sent without the mark, "
                "or when the days are closed."
            ),
        )
    waiting = queries.waiting_subscribers(batch)
    if waiting:
        return _waiting(batch, waiting, study)
    if _waits_for_closing(batch):
        return _until_closed(batch)
    if _waits_for_server(batch):
        return gettext("It is done here. The analyst server does not have its totals yet."), ""
    return _published(batch), ""


def _waits_for_server(batch: Batch) -> bool:
    """Return whether publications of the study wait for an analyst server that runs apart."""
    handover = queries.waiting_handover(batch.study_id)
    return handover is not None and handover.publications > 0


def _waits_for_closing(batch: Batch) -> bool:
    """Explain that with presence noise nothing crosses before its days are closed, or changes later."""
    return is_noisy(batch.study) and batch.kind != Batch.Kind.CLOSE_DAYS


def _until_closed(batch: Batch) -> tuple[str, str]:
    match batch.kind:
        case Batch.Kind.SUBSCRIBERS:
            sentence = gettext("The answers of these subscribers are known from now on.")
        case Batch.Kind.OPT_OUT:
            sentence = gettext(
                "These subscribers have left the vault, and their later rows are ignored. The totals of days "
                "that were closed before still count them."
            )
        case Batch.Kind.VOID_DAY:
            sentence = gettext("The day was undone. Nothing of it had been published.")
        case _:
            sentence = gettext("Its rows are merged. Analysts see nothing of it yet.")
    return sentence, gettext(
        "The study has presence noise: the totals of a day are published once, with their noise, when the "
        "day and all days before it are closed. Closed days never change."
    )


def _waiting(batch: Batch, subscribers: int, study: StudyHead) -> tuple[str, str]:
    has_left = batch.kind == Batch.Kind.OPT_OUT
    if study.closed_at is not None:
        hint = gettext("The study is closed, so they remain in the reports. The erasure certificate says so.")
        return _too_few(subscribers, study), hint if has_left else ""
    sentence = ngettext(
        "Not published yet: what waits covers %(n)s subscriber, and a publication must cover %(least)s.",
        "Not published yet: what waits covers %(n)s subscribers, and a publication must cover %(least)s.",
        subscribers,
    )
    if subscribers >= study.min_publication:
        sentence = gettext(
            "Not published yet: %(n)s subscribers changed, but fewer than %(least)s may differ from earlier "
            "reports."
        )
    sentence %= {"n": number(subscribers), "least": number(study.min_publication)}
    if has_left:
        return sentence, gettext(
            "The people on the list have left the vault, and their later rows are ignored. The reports count "
            "them until enough subscribers have changed. If that never happens before the study is closed, "
            "they remain in the reports, and the erasure certificate says so."
        )
    hint = gettext(
        "These changes are published together with later ones. What is still too little when the study is "
        "closed is never published; the erasure certificate counts it."
    )
    if subscribers >= study.min_publication:
        hint = gettext("To publish them now, upload the undone day again, or the next day.") + " " + hint
    return sentence, hint


def _too_few(subscribers: int, study: StudyHead) -> str:
    text = gettext("Never published: fewer than %(least)s subscribers had changes when the study was closed.")
    if subscribers >= study.min_publication:
        text = gettext("Never published: fewer than %(least)s subscribers may differ from earlier reports.")
    return text % {"least": number(study.min_publication)}


def _published(batch: Batch) -> str:
    if batch.kind == Batch.Kind.EXTRACT and not (batch.subscriber_days or batch.reports):
        return gettext("It brought nothing new: the reports stay as they are.")
    match batch.kind:
        case Batch.Kind.SUBSCRIBERS:
            return gettext(
                "The answers of these subscribers are known, and published where they were present."
            )
        case Batch.Kind.OPT_OUT:
            return gettext("These subscribers are not counted any more, in no day of the study.")
        case Batch.Kind.CLOSE_DAYS if is_noisy(batch.study):
            return gettext("The days are final, and published with their noise.")
        case Batch.Kind.CLOSE_DAYS:
            return gettext("The days are final. What was still open is published.")
        case Batch.Kind.VOID_DAY:
            return gettext("The day was undone, in the vault and in the reports. It can be uploaded again.")
        case _:
            return gettext("Published: analysts can read it now.")

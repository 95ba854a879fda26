"""The upload form of a study: profiles to choose from, uploads that rest, and what its script says."""

from dataclasses import dataclass

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext

from mobility.extracts.profiles import DEFAULT, OPT_OUT, SUBSCRIBERS
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultStudy
from mobility.vault.profiles import profile_names


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedUpload:
    """An upload of this person that rests, as the page shows it and its script finds it again."""

    batch: Batch
    url: str

    def facts(self) -> dict[str, object]:
        batch = self.batch
        return {
            "url": self.url,
            "filename": batch.filename,
            "total": batch.bytes_total,
            "received": batch.bytes_received,
            "profile": batch.profile,
            "more_to_come": batch.more_to_come,
            "validate_only": batch.validate_only,
        }


def upload_context(study: VaultStudy, *, by: str) -> dict[str, object]:
    """Context of templates/uploads/_upload.html."""
    resting = study.batches.filter(
        state=Batch.State.RECEIVING, created_by=by, kind__in=Batch.FILES, bytes_total__isnull=False
    )
    unfinished = [
        UnfinishedUpload(batch=batch, url=reverse("operator:upload", args=[study.slug, batch.pk]))
        for batch in resting
    ]
    return {
        "profiles": [(name, _profile_words(name)) for name in profile_names(study)],
        "unfinished": unfinished,
        "upload_data": {"texts": upload_texts(), "unfinished": [upload.facts() for upload in unfinished]},
    }


def _profile_words(name: str) -> str:
    words = {
        DEFAULT: gettext("CDRs, as the study file says"),
        SUBSCRIBERS: gettext("attributes of subscribers"),
        OPT_OUT: gettext("subscribers who must not be counted"),
    }
    return words.get(name, "")


def upload_texts() -> dict[str, str]:
    """Texts of the upload form's script; it fills in the braces."""
    return {
        "progress": gettext("{sent} of {total} MB sent ({percent} %), {speed} MB/s, {left} left"),
        "sealing": gettext("{total} MB sent, the last of it is being stored"),
        "quarter": gettext("{percent} % sent"),
        "seconds": gettext("about {n} s"),
        "minutes": gettext("about {n} min"),
        "none": gettext("Choose a file first."),
        "empty": gettext("The file is empty: choose another one."),
        "known": gettext(
            "{received} of {total} MB of this file have arrived already: sending goes on from there."
        ),
        "waiting": gettext("The connection is lost. Trying again: what has arrived is kept."),
        "paused": gettext(
            "Paused: what has arrived is kept for {hours} hours. Go on here, or after loading the page again."
        ).format(hours=settings.MOBILITY_UPLOAD_EXPIRES_S // 3600),
        "pause": gettext("Pause"),
        "resume": gettext("Go on"),
        "cancelled": gettext("Cancelled. Nothing of the file was kept."),
        "broken": gettext(
            "The server cannot be reached. What has arrived is kept: press “Go on”, or load this page again "
            "later and choose the same file."
        ),
        "signed_out": gettext(
            "You are signed out. What has arrived is kept: load this page again, sign in, and choose the same"
            " file."
        ),
        "refused": gettext("The server refused the file (status {status}). Load this page again and retry."),
    }

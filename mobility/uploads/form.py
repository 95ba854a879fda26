"""The upload form of a study: profiles to choose from, uploads that rest, and what its script says."""

import json
from dataclasses import dataclass

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext

from mobility.extracts.profiles.definition import BUILT_IN, DEFAULT, OPT_OUT, SUBSCRIBERS, Profile
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultStudy
from mobility.vault.profiles import opt_out_refusal, profiles_of, usual_profile
from reports.studies.studyfile import StudyDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileChoice:
    """A profile as the form offers it; `columns` that its files must have, none of a list of people."""

    name: str
    words: str
    address: str
    columns: tuple[str, ...]

    @property
    def columns_json(self) -> str:
        return json.dumps(self.columns)


def upload_context(study: VaultStudy, *, by: str) -> dict[str, object]:
    """Context of templates/uploads/_upload.html."""
    resting = study.batches.filter(
        state=Batch.State.RECEIVING, created_by=by, kind__in=Batch.FILES, bytes_total__isnull=False
    )
    definition = StudyDefinition.from_json(study.definition)
    found = profiles_of(study, definition)
    profiles = [_choice(study, each) for each in found]
    usual = usual_profile(study.pk)
    return {
        "profiles": profiles,
        "chosen": next((each for each in profiles if each.name == usual), profiles[0]),
        "no_opt_outs": opt_out_refusal(definition),
        "unfinished": resting,
        "upload_data": {"texts": upload_texts(), "unfinished": [_facts(study, each) for each in resting]},
    }


def _facts(study: VaultStudy, batch: Batch) -> dict[str, object]:
    """An upload of this person that rests, as the script finds it again."""
    return {
        "url": reverse("operator:upload", args=[study.slug, batch.pk]),
        "filename": batch.filename,
        "total": batch.bytes_total,
        "received": batch.bytes_received,
        "profile": batch.profile,
        "more_to_come": batch.more_to_come,
        "validate_only": batch.validate_only,
    }


def _choice(study: VaultStudy, profile: Profile) -> ProfileChoice:
    return ProfileChoice(
        name=profile.name,
        words=_profile_words(profile.name),
        address=_profile_address(study, profile.name),
        columns=() if profile.kind == "opt_out" else profile.all_columns,
    )


def _profile_words(name: str) -> str:
    words = {
        DEFAULT: gettext("call detail records (CDRs), as described in the study file"),
        SUBSCRIBERS: gettext("subscriber attributes"),
        OPT_OUT: gettext("opt-out list"),
    }
    return words.get(name, "")


def _profile_address(study: VaultStudy, name: str) -> str:
    """Page of a profile; those built in have a place in the list."""
    if name in BUILT_IN:
        return f"{reverse('operator:profiles', args=[study.slug])}#built-in-{name}"
    return reverse("operator:profile", args=[study.slug, name])


def upload_texts() -> dict[str, str]:
    """Texts of the upload form's script; it fills in the braces."""
    return {
        "progress": gettext("{sent} of {total} MB sent ({percent}%), {speed} MB/s, {left} left"),
        "sealing": gettext("{total} MB sent; storing the last part"),
        "quarter": gettext("{percent}% sent"),
        "seconds": gettext("about {n} s"),
        "minutes": gettext("about {n} min"),
        "none": gettext("Choose a file first."),
        "empty": gettext("The file is empty. Choose another file."),
        "columns": gettext(
            "The first line of this file does not name these columns, which the profile expects: {columns}. "
            "Choose another profile, or create a profile from this file."
        ),
        "known": gettext(
            "{received} of {total} MB of this file have already been received. The upload resumes from there."
        ),
        "waiting": gettext("Connection lost. Trying again. Data already received is kept."),
        "paused": gettext(
            "The upload is paused. Data already received is kept for {hours} hours. Resume the "
            "upload now, or reload the page and resume it later."
        ).format(hours=settings.MOBILITY_UPLOAD_EXPIRES_S // 3600),
        "upload": gettext("Upload"),
        "check": gettext("Check the file"),
        "pause": gettext("Pause"),
        "resume": gettext("Resume"),
        "cancelled": gettext("Cancelled. No data from the file was kept."),
        "broken": gettext(
            "The server cannot be reached. Data already received is kept. Select “Resume”, or reload "
            "this page later and choose the same file."
        ),
        "signed_out": gettext(
            "You are signed out. Data already received is kept. Reload this page, sign in, and choose "
            "the same file."
        ),
        "refused": gettext("The server refused the file (status {status}). Reload this page and try again."),
    }

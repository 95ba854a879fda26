"""Making and removing extract profiles; none is ever changed, so that earlier batches stay explainable."""

from django.db import IntegrityError, transaction

from mobility.extracts.profiles.errors import ProfileExistsError, ProfileUsedError
from mobility.extracts.profiles.typed import TypedProfile
from mobility.vault.models.batch import Batch
from mobility.vault.models.profiles import ExtractProfile
from mobility.vault.models.subscribers import VaultStudy
from mobility.vault.queries import closed_error


def create_profile(typed: TypedProfile, *, study: VaultStudy, by: str) -> ExtractProfile:
    """Keep a profile under its name.

    Raises
    ------
    StudyClosedError : the study accepts no files
    ProfileExistsError : the study has one of that name
    """
    if study.closed_at is not None:
        raise closed_error(study.closed_at)
    try:
        with transaction.atomic(using="vault"):
            made = {"name": typed.name, "definition": typed.to_json(), "created_by": by}
            return ExtractProfile.objects.create(study=study, **made)
    except IntegrityError:
        raise ProfileExistsError(
            f"study {study.slug!r} already has a profile {typed.name!r}, and profiles never change: "
            "choose another name"
        ) from None


def delete_profile(profile: ExtractProfile) -> None:
    """Remove a profile that no batch was read with.

    Raises
    ------
    ProfileUsedError : a batch names it
    """
    with transaction.atomic(using="vault"):
        n_batches = Batch.objects.filter(study=profile.study_id, profile=profile.name).count()
        if n_batches:
            raise ProfileUsedError(
                f"profile {profile.name!r} cannot be removed, because {n_batches} batches were read "
                "with it. Create another profile for later files"
            )
        profile.delete()

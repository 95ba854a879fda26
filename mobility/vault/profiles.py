"""The profiles of a study by name: those built in, and those that someone made."""

from django.utils.translation import gettext_noop as _

from mobility.extracts.profiles.definition import BUILT_IN, DEFAULT, OPT_OUT, SUBSCRIBERS, Profile
from mobility.extracts.profiles.errors import ProfileMissingError
from mobility.extracts.profiles.typed import TypedProfile
from mobility.vault.models.batch import Batch
from mobility.vault.models.profiles import ExtractProfile
from mobility.vault.models.subscribers import VaultStudy
from reports.base.reasons import Reason
from reports.studies.studyfile import StudyDefinition


def find_profile(study: VaultStudy, name: str, definition: StudyDefinition | None = None) -> Profile:
    """Return the profile of that name, compiled.

    Parameters
    ----------
    definition : of the study, where the caller has it already

    Raises
    ------
    ProfileMissingError : the study has no such profile; names those that it has
    """
    definition = definition or StudyDefinition.from_json(study.definition)
    if name in BUILT_IN and _makes_sense(name, definition):
        return BUILT_IN[name](definition)
    row = ExtractProfile.objects.filter(study=study, name=name).first()
    profile = None if row is None else TypedProfile.from_json(row.definition).compiled(definition)
    if name == OPT_OUT and (reason := opt_out_refusal(definition)):
        raise ProfileMissingError(reason)
    if profile is None or (definition.of_events and profile.kind != "events"):
        known = ", ".join(profile_names(study, definition))
        raise ProfileMissingError(f"study {study.slug!r} has no profile {name!r}; profiles: {known}")
    return profile


def opt_out_refusal(definition: StudyDefinition) -> Reason | None:
    """Say why a study takes no opt-out list, and what to do instead; None if it takes them."""
    if not definition.of_events:
        return None
    if definition.plan.max_events is None:
        return Reason(
            _(
                "this study takes no opt-out list: it counts events and does not link them to people, so the "
                "events of a person cannot be found once a file is processed. Remove the rows of people who "
                "opt out from the files before you send them"
            )
        )
    return Reason(
        _(
            "this study takes no opt-out list: it counts events, and people are known only to limit how many "
            "of their events are answered. Remove the rows of people who opt out from the files before you "
            "send them. To remove events that were sent before, undo their days while these are open, and "
            "send these days again without the rows"
        )
    )


def profiles_of(study: VaultStudy, definition: StudyDefinition) -> list[Profile]:
    """Return the profiles of a study, compiled: those built in first."""
    built_in = [BUILT_IN[name](definition) for name in BUILT_IN if _makes_sense(name, definition)]
    made = ExtractProfile.objects.filter(study=study).order_by("name")
    return [*built_in, *(TypedProfile.from_json(row.definition).compiled(definition) for row in made)]


def profile_names(study: VaultStudy, definition: StudyDefinition | None = None) -> list[str]:
    """Names of the profiles of a study: those built in first."""
    definition = definition or StudyDefinition.from_json(study.definition)
    built_in = [name for name in BUILT_IN if _makes_sense(name, definition)]
    made = ExtractProfile.objects.filter(study=study).order_by("name").values_list("name", flat=True)
    return [*built_in, *made]


def usual_profile(study_id: int) -> str:
    """Return the profile of the last file of events that was not refused; before the first, the default."""
    files = Batch.objects.filter(study=study_id, kind=Batch.Kind.EXTRACT, state=Batch.State.DONE)
    return files.order_by("-created_at").values_list("profile", flat=True).first() or DEFAULT


def _makes_sense(name: str, definition: StudyDefinition) -> bool:
    """Without static indicators there is nothing to learn of subscribers; events have none.

    With classes each row of events says all of its subscriber.
    """
    if definition.of_events:
        return name == DEFAULT
    return name != SUBSCRIBERS or (bool(definition.static_indicators) and not definition.classes)

"""Pages of extract profiles: those of a study, one of them, and making one from the first rows of a file."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect

from mobility.base.errors import StudyClosedError
from mobility.batches.pages.access import crumbs_to, operators_only, vault_study_or_404
from mobility.extracts.profiles import errors
from mobility.extracts.profiles.definition import BUILT_IN, OPT_OUT
from mobility.extracts.profiles.parse import read_profile
from mobility.extracts.profiles.preview import CLASS, preview, roles_of
from mobility.extracts.profiles.proposals import Proposal
from mobility.extracts.profiles.sample import SAMPLE_BYTES, Sample, read_sample
from mobility.extracts.profiles.typed import TypedProfile
from mobility.extracts.profiles.uniqueness import uniqueness_of
from mobility.uploads.profile_pages.copies import built_in_as_typed, copy_of, without_rows
from mobility.uploads.profile_pages.draft import ROLES
from mobility.uploads.profile_pages.fields import profile_fields
from mobility.uploads.profile_pages.proposal import sent_proposal
from mobility.uploads.profile_pages.texts import (
    class_warnings,
    missing_parts,
    profile_words,
    rejected_words,
    rule_words,
    uniqueness_words,
)
from mobility.uploads.profiles import create_profile, delete_profile
from mobility.vault.models.batch import Batch
from mobility.vault.models.profiles import ExtractProfile
from mobility.vault.models.subscribers import VaultStudy
from mobility.vault.profiles import profile_names, profiles_of
from reports.studies.studyfile import Problem, StudyDefinition
from reports.studies.studyfile.formats import DELIMITERS
from reports.studies.studyfile.problems import Problems


@require_GET
@operators_only
def profiles(request: HttpRequest, slug: str) -> HttpResponse:
    """Every profile of a study: those built in, explained, and those that someone made."""
    row, definition = _study_or_404(request, slug)
    made = {each.name: each for each in ExtractProfile.objects.filter(study=row)}
    words = [profile_words(each, definition) for each in profiles_of(row, definition)]
    context = {
        "study": definition,
        "built_in": [each for each in words if each["name"] not in made],
        "made": [(each, made[each["name"]]) for each in words if each["name"] in made],
        "crumbs": _crumbs(definition)[:2],
    }
    return render(request, "uploads/profiles.html", context)


@require_GET
@operators_only
def profile(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Describe how a made profile reads files."""
    row, definition = _study_or_404(request, slug)
    found = get_object_or_404(ExtractProfile, study=row, name=name)
    typed = TypedProfile.from_json(found.definition)
    asked = {indicator.slug: indicator for indicator in definition.static_indicators}
    context = {
        "study": definition,
        "profile": found,
        "words": profile_words(typed.compiled(definition), definition),
        "warnings": missing_parts(typed.kind, typed.columns, definition),
        "rules": [
            (asked[key].shown_name, typed.columns[key], rule_words(rule, asked[key]))
            for key, rule in typed.rules.items()
        ],
        "n_batches": Batch.objects.filter(study=row, profile=name).count(),
        "crumbs": _crumbs(definition),
    }
    return render(request, "uploads/profile.html", context)


@require_POST
@operators_only
def delete(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Remove a profile that no batch was read with."""
    row, _ = _study_or_404(request, slug)
    found = get_object_or_404(ExtractProfile, study=row, name=name)
    try:
        delete_profile(found)
    except errors.ProfileUsedError as error:
        messages.error(request, error.reason.words)
        return redirect("operator:profile", slug=slug, name=name)
    messages.success(request, gettext("The profile %(name)s was removed.") % {"name": name})
    return redirect("operator:profiles", slug=slug)


@require_http_methods(["GET", "POST"])
@operators_only
def new(request: HttpRequest, slug: str) -> HttpResponse:
    """Make a profile, or a copy of one: the browser sends a file's first bytes and what was chosen so far."""
    row, definition = _study_or_404(request, slug)
    copied = _copied(request, row, definition)
    context = {
        "study": definition, "sample_bytes": SAMPLE_BYTES, "crumbs": _crumbs(definition), "copied": copied
    }  # fmt: skip
    if request.method == "GET":
        if copied is not None:
            copy = copy_of(copied, taken=profile_names(row, definition))
            context |= _mapping(copy, without_rows(copied), definition, [])
        return render(request, "uploads/profile_new.html", context)
    try:
        sample = _sample(request, copied)
    except errors.PreviewError as error:
        return _form(request, {**context, "refused": error.reason.words})
    problems = Problems("")
    proposal = sent_proposal(dict(request.POST.lists()), sample, definition=definition, problems=problems)
    found = problems.all()
    if request.POST.get("action") == "save":
        found = found + _save(request, proposal, row, definition, is_sound=not found)
        if not found:
            return _to(request, reverse("operator:profile", args=[slug, proposal.draft["profile"]["name"]]))
    return _form(request, context | _mapping(proposal, sample, definition, found))


def _save(
    request: HttpRequest, proposal: Proposal, row: VaultStudy, definition: StudyDefinition, *, is_sound: bool
) -> list[Problem]:
    """Keep the profile, or return what is wrong with it; without `is_sound` only the latter."""
    try:
        typed = read_profile(proposal.draft, filename="", definition=definition)
        if is_sound:
            create_profile(typed, study=row, by=request.user.get_username())
            messages.success(request, gettext("The profile was saved. Now use it to check a whole file."))
    except errors.ProfileFileError as error:
        return error.problems
    except (errors.ProfileExistsError, StudyClosedError) as error:
        return [Problem(file="", key="profile.name", rule=str(error))]
    return []


def _mapping(
    proposal: Proposal, sample: Sample, definition: StudyDefinition, problems: list[Problem]
) -> dict[str, object]:
    """Context of the fragment below the file."""
    columns = preview(sample, proposal.draft, definition=definition)
    kind = proposal.draft["profile"].get("kind", "")
    return {
        "sample": sample,
        "fields": profile_fields(proposal, sample, definition=definition, problems=problems),
        "columns": columns,
        "lines": list(zip(*(column.values for column in columns), strict=True)),
        "rejected": rejected_words(sample, columns, draft=proposal.draft, definition=definition),
        "uniqueness": uniqueness_words(uniqueness_of(sample, proposal.draft, definition=definition)),
        "warnings": [
            *class_warnings(sample, kind, definition),
            *missing_parts(kind, roles_of(proposal.draft, definition).keys() - {*ROLES, CLASS}, definition),
        ],
        "n_problems": len(problems),
        "was_timestamp": proposal.draft["columns"].get("timestamp", ""),
    }


def _copied(request: HttpRequest, row: VaultStudy, definition: StudyDefinition) -> TypedProfile | None:
    """The profile that the form copies, or None for a new one."""
    name = (request.POST if request.method == "POST" else request.GET).get("copy")
    if not name:
        return None
    if name in BUILT_IN and name in profile_names(row, definition) and name != OPT_OUT:
        return built_in_as_typed(BUILT_IN[name](definition))
    found = get_object_or_404(ExtractProfile, study=row, name=name)
    return TypedProfile.from_json(found.definition)


def _sample(request: HttpRequest, copied: TypedProfile | None) -> Sample:
    """The first rows of the chosen file; a copy needs none."""
    sent = request.FILES.get("sample")
    if sent is None and copied is not None:
        return without_rows(copied)
    if sent is None:
        raise errors.PreviewError(gettext("Choose a file first."))
    data = sent.read(SAMPLE_BYTES)
    size, delimiter = request.POST.get("size", ""), request.POST.get("delimiter")
    return read_sample(
        data,
        size=int(size) if size.isascii() and size.isdigit() else len(data),
        delimiter=delimiter if delimiter in DELIMITERS else None,
    )


def _form(request: HttpRequest, context: dict[str, object]) -> HttpResponse:
    is_fragment = bool(request.htmx)  # type: ignore[attr-defined]
    template = "uploads/_profile_mapping.html" if is_fragment else "uploads/profile_new.html"
    return render(request, template, context)


def _to(request: HttpRequest, address: str) -> HttpResponse:
    return HttpResponseClientRedirect(address) if request.htmx else redirect(address)  # type: ignore[attr-defined]


def _study_or_404(request: HttpRequest, slug: str) -> tuple[VaultStudy, StudyDefinition]:
    row = vault_study_or_404(request, slug)
    return row, StudyDefinition.from_json(row.definition)


def _crumbs(definition: StudyDefinition) -> list[tuple[str, str]]:
    profiles = (gettext("Profiles"), reverse("operator:profiles", args=[definition.slug]))
    return [*crumbs_to(definition.shown_name, definition.slug), profiles]

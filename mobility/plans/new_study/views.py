"""The page that makes a study file, and a draft from it: each change is answered with form and text."""

from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect

from mobility.base.errors import MobilityError, StudyMissingError
from mobility.batches.texts import megabytes
from mobility.extracts.profiles.errors import PreviewError
from mobility.extracts.profiles.sample import SAMPLE_BYTES, Sample
from mobility.plans.drafts import DraftOpenError, draft_new_study
from mobility.plans.models import PlanDraft
from mobility.plans.new_study.area_map import at_fields, map_of, read_area_of
from mobility.plans.new_study.checks import definition_of, quick_check
from mobility.plans.new_study.fields import listed_words, new_study_form
from mobility.plans.new_study.samples import (
    TIME_FORMAT,
    add_column,
    fill_in,
    fill_in_format,
    sample_of,
)
from mobility.plans.new_study.sent import NewStudyForm, StudyFormError, check_given, check_size
from mobility.plans.new_study.simulation import cap_of, simulator_query, used_values
from mobility.plans.new_study.text import (
    FORM_BYTES,
    FormTextError,
    blank_text,
    merged,
    tables_of_text,
    text_of,
    typed_of_text,
    with_names,
    without_field,
)
from mobility.plans.pages.draft_edit import ADDS
from mobility.plans.pages.draft_fields import certified_words
from mobility.plans.pages.draft_typed import DAILY, STATIC, Typed
from mobility.plans.pages.simulated import CAP, use_cap, use_classes
from mobility.plans.pages.simulator_form import recommendation_for
from mobility.plans.pages.simulator_source import typed_source
from mobility.vault.queries import find_study
from reports.accounts.access import administrators_only
from reports.base.reasons import words_of
from reports.privacy.location_texts import noise_words
from reports.privacy.statement.locations import location_protection
from reports.studies.models import Study
from reports.studies.studyfile import AreaDefinition, Problem, StudyDefinition, StudyFileError
from reports.studies.studyfile.numbers import NUMBER
from reports.studies.studyfile.redraft import Tables, tables_of
from reports.studies.studyfile.sections import known_timezones
from reports.transfer.studies import StudyExistsError, plan_hash

CREATE, SHOW_MAP, READ_SAMPLE = "create", "map", "sample"
MAX_NOTES: Final = 10  # on a page
IS_CAP_NEW: Final = "cap_is_new"  # not yet in the indicators that the text of this browser tab has


class UnconfirmedError(Exception):
    """The promise of places was not shown yet; `token` names the shown one."""

    def __init__(self, sentences: list[str], *, token: str) -> None:
        super().__init__("not confirmed yet")
        self.sentences = sentences
        self.token = token


@dataclass(slots=True)
class Answer:
    """Contents of the page.

    text : None = as it was sent, and nothing can be said of the form
    listed : problems as lines; `problems` are the same for the fields
    definition : the study, if it is valid and needs no files
    """

    text: str | None = None
    typed: Typed | None = None
    tables: Tables = field(default_factory=dict)
    definition: StudyDefinition | None = None
    problems: list[Problem] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    promise: UnconfirmedError | None = None
    other_draft: int | None = None
    area: AreaDefinition | None = None
    area_problems: list[Problem] = field(default_factory=list)
    refused_sample: str = ""
    doubt_of_times: str = ""
    is_too_long: bool = False
    new: str = ""
    cap: str = ""


@require_http_methods(["GET", "POST"])
@administrators_only
def create(request: HttpRequest) -> HttpResponse:
    """Show the form and the text, change one by the other, or draft the study."""
    if request.method == "GET":
        return _start(request)
    form = NewStudyForm.of(request)
    like = _like(form.like)
    answer, sample = Answer(), None
    try:
        sample = sample_of(request)
    except PreviewError as error:
        answer.refused_sample = words_of(error)
    is_final = form.action in ("", CREATE)
    try:
        _sync(form, answer, sample)
        if is_final:
            return _created(request, _create(request, form, answer, like=like))
        _check(request, form, answer, like=like)
    except UnconfirmedError as unconfirmed:
        answer.promise = unconfirmed
    except StudyFileError as error:
        answer.problems, answer.listed = error.problems, [listed_words(each) for each in error.problems]
    except (StudyFormError, StudyExistsError, MobilityError) as error:
        answer.listed = [words_of(error)]
        if isinstance(error, StudyExistsError | DraftOpenError):
            answer.problems = [Problem(file="", key="study.slug", rule=error.args[0])]
        answer.other_draft = error.draft_id if isinstance(error, DraftOpenError) else None
    return _page(request, form, answer, sample, is_final=is_final)


def _start(request: HttpRequest) -> HttpResponse:
    """A blank form, a copy of a study, or a form with values of the simulator."""
    like = _like(request.GET.get("copy", ""))
    if like is None:
        text = blank_text(timezone=_own_timezone(), first_day=timezone.localdate())
    else:
        tables = tables_of(like)
        del tables["study"]["slug"]  # the copy needs its own
        text = text_of(tables)
    tables = tables_of_text(text, filename="")
    typed = typed_of_text(tables)
    form = NewStudyForm(text=text.encode(), base=text, like="" if like is None else like.slug)
    answer = Answer(text=text, typed=typed, tables=tables)
    if used := used_values(request.GET):
        # Every value of the simulator is a change, also one that a blank form already has.
        bare = Typed({name: value for name, value in typed.values.items() if name not in used}, typed.rows)
        bare.values |= dict.fromkeys(used, "")
        use_classes(typed, request.GET)
        base = merged(text, bare, base=tables, filename="")
        form = NewStudyForm(text=base.encode(), base=base)
        typed.values |= used
        answer.text = merged(text, typed, base=tables, filename="")
        answer.tables = tables_of_text(answer.text, filename="")
        answer.cap = cap_of(request.GET.get(CAP, ""))
    answer.problems, answer.definition = quick_check(answer.tables, like=like, filename="")
    return _page(request, form, answer, None, is_final=False)


def _sync(form: NewStudyForm, answer: Answer, sample: Sample | None) -> None:
    """Bring text and form together; StudyFileError where the text is not TOML."""
    text = form.shown_text
    if not text and form.text:
        return  # the reader of study files says what is wrong with it
    if len(text) > FORM_BYTES:
        answer.is_too_long = True
        return
    base = tables_of_text(text if form.base is None else form.base, filename=form.filename)
    typed = typed_of_text(base) if form.base is None else Typed.sent(form.fields)
    answer.new = _act(form.action, typed, sample)
    answer.cap = cap_of(form.first(CAP))
    if answer.cap and typed.kind_of(answer.new) == DAILY:
        typed.values[f"{answer.new}.max_values"] = answer.cap
    try:
        text = merged(text, with_names(typed), base=base, filename=form.filename)
    except FormTextError:
        raise StudyFormError(
            gettext(
                "The form cannot change this text because of the way it is written. Edit the text "
                "directly, and the form will show the change."
            )
        ) from None
    answer.text, answer.tables = text, tables_of_text(text, filename=form.filename)
    answer.typed = typed_of_text(answer.tables)
    if answer.cap and form.first(IS_CAP_NEW):
        use_cap(answer.typed, answer.cap)
        _take_over(form, answer)
    if form.action == SHOW_MAP or (form.action == READ_SAMPLE and form.files):
        answer.area, answer.area_problems = read_area_of(
            answer.tables, read=form.read, filename=form.filename
        )
    if sample is not None:
        _fill_in(form, answer, sample)


def _fill_in(form: NewStudyForm, answer: Answer, sample: Sample) -> None:
    """Propose columns of the sample, and read its times again with the days that the form has now."""
    typed, study = answer.typed, answer.tables.get("study")
    if typed is None or answer.text is None:
        return
    days = _days_of(study if isinstance(study, dict) else {})
    if form.action in (READ_SAMPLE, SHOW_MAP):
        fill_in(typed, sample, area=answer.area, **days)
    answer.doubt_of_times = fill_in_format(typed, sample, **days)
    _take_over(form, answer)


def _take_over(form: NewStudyForm, answer: Answer) -> None:
    """Change the text as the form was changed."""
    if answer.typed is not None and answer.text is not None:
        answer.text = merged(answer.text, answer.typed, base=answer.tables, filename=form.filename)
        answer.tables = tables_of_text(answer.text, filename=form.filename)


def _act(action: str, typed: Typed, sample: Sample | None) -> str:
    """Add or remove an indicator or a class; returns the key of a new one."""
    if action in ADDS:
        return typed.add(ADDS[action])
    if action.startswith("remove-"):
        typed.remove(action.removeprefix("remove-"))
    what, _, place = action.rpartition("-")
    kinds = {"column": STATIC, "number": NUMBER}
    if sample is not None and what in kinds and place.isdecimal() and int(place) < len(sample.names):
        return add_column(typed, sample, place=int(place), kind=kinds[what])
    return ""


def _days_of(study: dict[str, Any]) -> dict[str, Any]:
    """Days of a study as far as they are valid: guesses about timestamps need some."""
    zone, first_day, days = (study.get(key) for key in ("timezone", "first_day", "days"))
    return {
        "timezone": zone if zone in known_timezones() else "UTC",
        "first_day": first_day if type(first_day) is date and first_day.year > 1990 else timezone.localdate(),
        "days": days if type(days) is int and 1 <= days <= 62 else 7,
    }


def _check(request: HttpRequest, form: NewStudyForm, answer: Answer, *, like: StudyDefinition | None) -> None:
    """Say what is wrong so far; read the files of the area if the page shows them."""
    answer.problems, answer.definition = quick_check(answer.tables, like=like, filename=form.filename)
    if form.action == SHOW_MAP:
        check_size(request)
        answer.problems += answer.area_problems


def _create(
    request: HttpRequest, form: NewStudyForm, answer: Answer, *, like: StudyDefinition | None
) -> PlanDraft:
    check_size(request)
    check_given(form)
    notes: list[str] = []
    text = form.shown_text if answer.text is None else answer.text
    definition = definition_of(form, text, like=like, note=notes.append)
    _check_confirmed(definition, form)
    made = draft_new_study(definition, by=request.user.get_username(), like=like)
    _show_notes(request, notes)
    return made


def _created(request: HttpRequest, made: PlanDraft) -> HttpResponse:
    said = gettext("The study file is valid. Nothing takes effect until the draft is published.")
    messages.success(request, said)
    address = reverse("administrator:draft", args=[made.pk])
    return HttpResponseClientRedirect(address) if request.htmx else redirect(address)  # type: ignore[attr-defined]


def _check_confirmed(definition: StudyDefinition, form: NewStudyForm) -> None:
    """Raise UnconfirmedError unless the noise of this study's places was seen: it is permanent."""
    spec = definition.plan_spec()
    located = location_protection(spec)
    if located is not None and form.confirmed != plan_hash(spec):
        raise UnconfirmedError(noise_words(located), token=plan_hash(spec))


def _show_notes(request: HttpRequest, notes: list[str]) -> None:
    """Say what was found in the files of a study that was created all the same."""
    for note in notes[:MAX_NOTES]:
        messages.warning(request, note)
    if len(notes) > MAX_NOTES:
        more = len(notes) - MAX_NOTES
        messages.warning(
            request,
            ngettext("%(n)s more note is not shown.", "%(n)s more notes are not shown.", more) % {"n": more},
        )


def _page(
    request: HttpRequest, form: NewStudyForm, answer: Answer, sample: Sample | None, *, is_final: bool
) -> HttpResponse:
    shown = form.shown_text if answer.text is None else answer.text
    context: dict[str, Any] = {
        "problems": answer.listed,
        "are_at_fields": bool(answer.problems),
        "promise": answer.promise,
        "other_draft": answer.other_draft,
        "form": form,
        "text": shown,
        "is_text_new": shown != form.shown_text or request.method == "GET",
        "base": form.base if request.method == "GET" else shown,
        "area": map_of(answer.area) if answer.area is not None and form.action == SHOW_MAP else None,
        "is_area_read": form.action == SHOW_MAP,
        "refused_sample": answer.refused_sample,
        "new": answer.new,
        "cap": answer.cap,
        "is_cap_new": request.method == "GET",
        "is_too_long": answer.is_too_long,
        "sample_bytes": SAMPLE_BYTES,
        "max_mb": megabytes(settings.FILE_UPLOAD_MAX_MEMORY_SIZE),
        "crumbs": [(gettext("Administration"), reverse("administrator:studies"))],
    }
    if answer.typed is not None:
        problems = at_fields(answer.problems, answer.tables, filename=form.filename)
        simulated = simulator_query(answer.tables)
        certified = {} if answer.definition is None else certified_words(answer.definition)
        fields = new_study_form(
            answer.typed,
            problems=problems,
            sample=sample,
            warnings={TIME_FORMAT: answer.doubt_of_times} if answer.doubt_of_times else {},
            recommendation=recommendation_for(typed_source(), query=simulated),
            notes=certified,
            is_final=is_final,
        )
        context |= {
            "fields": fields,
            "certified": certified.get("", ""),
            "without_field": without_field(answer.tables),
            "simulator": simulated,
        }
    if request.htmx:  # type: ignore[attr-defined]
        response = render(request, "plans/_new_study_answer.html", context)
        if answer.typed is None:  # keep the form as typed
            response["HX-Retarget"], response["HX-Reswap"] = "#outcome", "innerHTML"
        return response
    context["studies"] = Study.objects.filter(units=Study.Units.VISITORS).order_by("name")
    return render(request, "plans/create.html", context, status=422 if answer.listed else 200)


def _like(slug: str) -> StudyDefinition | None:
    """The study that is copied; None for none, 404 for one that is not there."""
    if not slug:
        return None
    try:
        return StudyDefinition.from_json(find_study(slug).definition)
    except StudyMissingError:
        raise Http404 from None


def _own_timezone() -> str:
    return settings.TIME_ZONE if settings.TIME_ZONE != "UTC" else "Europe/Paris"

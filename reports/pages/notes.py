"""Notes on the days of a study: outages and events. Operators and administrators write them."""

from datetime import date

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from reports.accounts.access import study_of_visitors
from reports.base import formats
from reports.estimates.models import DayNote
from reports.estimates.notes import MAX_TEXT, DayNoteError, note_day, remove_note
from reports.studies import policies
from reports.studies.models import Study
from reports.studies.policies import READERS, Role, require_role, study_for
from reports.studies.texts import Crumbs, crumbs_to

WRITERS = (Role.OPERATOR, Role.ADMINISTRATOR)
writers_only = require_role(*WRITERS)

KINDS = {
    DayNote.Kind.OUTAGE: _(
        "Outage: records for this day are missing. Do not rely on the figures for this day."
    ),
    DayNote.Kind.EVENT: _("Event: something that explains the number of visitors on this day"),
}


class NoteForm(forms.Form):
    """A day of the study, a kind, and one line of text."""

    kind = forms.TypedChoiceField(
        label=_("Type of note"),
        choices=[(kind.value, text) for kind, text in KINDS.items()],
        coerce=DayNote.Kind,
        widget=forms.RadioSelect,
    )
    text = forms.CharField(
        label=_("Text for readers"),
        max_length=MAX_TEXT,
        help_text=_("One line, shown with the figures and in the calendar. Do not name individuals."),
    )

    def __init__(self, data: object = None, *, study: Study) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        days = [study.date_of(day) for day in range(1, study.days + 1)]
        choices = [(day.isoformat(), formats.day_title(day)) for day in days]
        day = forms.TypedChoiceField(label=gettext("Day"), choices=choices, coerce=date.fromisoformat)
        self.fields = {"day": day, **self.fields}


@require_http_methods(["GET", "POST"])
@writers_only
def notes(request: HttpRequest, slug: str) -> HttpResponse:
    """All notes of a study, and a form for one more."""
    study = study_of_visitors(study_for(request.user, slug, *WRITERS))
    form = NoteForm(request.POST or None, study=study)
    if request.method == "POST" and form.is_valid():
        try:
            note = note_day(study, **form.cleaned_data, by=_name(request))
        except DayNoteError:  # of day, kind and length the form has made sure
            form.add_error("text", gettext("Enter one line without invisible characters."))
        else:
            day = formats.day_title(study.date_of(note.day))
            messages.success(request, gettext("The note on %(day)s was saved.") % {"day": day})
            return redirect("reports:notes", slug)
    is_reader = bool(policies.roles_of(request.user) & READERS)
    context = {
        "study": study,
        "form": form,
        "notes": [(study.date_of(note.day), note) for note in study.day_notes.all()],
        "crumbs": _crumbs(study, is_reader=is_reader),
    }
    return render(request, "estimates/notes.html", context, status=400 if form.errors else 200)


@require_POST
@writers_only
def remove(request: HttpRequest, slug: str, note_id: int) -> HttpResponse:
    """Take a note back."""
    study = study_of_visitors(study_for(request.user, slug, *WRITERS))
    if remove_note(study, note_id=note_id):
        messages.success(request, gettext("The note was removed."))
    else:
        messages.warning(request, gettext("The note had already been removed."))
    return redirect("reports:notes", slug)


def _name(request: HttpRequest) -> str:
    return request.user.get_username() if isinstance(request.user, User) else ""


def _crumbs(study: Study, *, is_reader: bool) -> Crumbs:
    """The way up: to the report pages for those who may read them, else to the uploads."""
    if is_reader:
        return crumbs_to(study)
    up = (gettext("Uploads"), reverse("operator:studies"))
    return [up, (study.shown_name, reverse("operator:study", args=[study.slug]))]

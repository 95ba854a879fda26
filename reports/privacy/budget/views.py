"""The budget of a population: what its studies reveal together, the caps on it, and who decides on them."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from reports.accounts.access import account, overseers_only
from reports.base.reasons import words_of
from reports.privacy.budget.actions import BudgetChangeError, confirmation_obstacle, decide_cap, propose_cap
from reports.privacy.budget.spending import BudgetLine, Period, Unit, in_force_since, standing
from reports.privacy.budget.texts import left_words, period_words, span_words, spent_words, unit_words
from reports.privacy.composition import counted, studies_of
from reports.privacy.models import BudgetCap, DeletedStudy
from reports.studies.models import Study
from reports.studies.policies import Role, roles_of
from reports.studies.studyfile.definition import DEFAULT_POPULATION


class CapForm(forms.Form):
    """Form of a cap: kind, period, limit."""

    unit = forms.ChoiceField(
        label=_("Type of privacy loss"), choices=lambda: [(u, unit_words(u)) for u in Unit]
    )
    period = forms.ChoiceField(label=_("Period"), choices=lambda: [(p, period_words(p)) for p in Period])
    epsilon = forms.DecimalField(
        label=_("Maximum epsilon"),
        min_value=Decimal("0.00000001"),
        error_messages={"min_value": _("Enter a number above 0.")},
        max_digits=12,
        decimal_places=8,
        required=False,
        help_text=_("Leave empty for no cap."),
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of the budget in words."""

    line: BudgetLine
    unit: str
    span: str
    spent: str
    left: str
    cap: str

    @classmethod
    def of(cls, line: BudgetLine) -> "_Row":
        return cls(
            line=line,
            unit=unit_words(line.unit),
            span=span_words(line.span),
            spent=spent_words(line.spent),
            left="" if line.left is None else left_words(line.left),
            cap="" if line.cap is None else left_words(line.cap),
        )


@require_http_methods(["GET", "POST"])
@overseers_only
def budget(request: HttpRequest) -> HttpResponse:
    """Show the state of the budget of a population; administrators set caps here."""
    populations = _populations()
    population = request.GET.get("population", populations[0])
    if population not in populations:
        raise Http404
    form, problem = CapForm(), ""
    if request.method == "POST":
        form = CapForm(request.POST)
        problem = _propose(request, form, population=population)
        if not problem and form.is_valid():
            return redirect(_address(population))
    me = account(request).get_username()
    context = _context(population, me=me) | {
        "populations": populations,
        "form": form,
        "problem": problem,
        "may_set": Role.ADMINISTRATOR in roles_of(request.user),
        "crumbs": [(gettext("Administration"), reverse("administrator:studies"))],
    }
    return render(request, "privacy/budget.html", context, status=422 if problem or form.errors else 200)


@require_POST
@overseers_only
def decide(request: HttpRequest, cap_id: int) -> HttpResponse:
    """Confirm or refuse a cap that waits for a second person."""
    cap = get_object_or_404(BudgetCap, pk=cap_id)
    confirm = request.POST.get("answer") == "confirm"
    try:
        decide_cap(cap, confirm=confirm, by=account(request).get_username())
    except BudgetChangeError as error:
        messages.error(request, words_of(error))
    else:
        done = gettext("The new cap is now in force.") if confirm else gettext("The change was refused.")
        messages.success(request, done)
    return redirect(_address(cap.population_id))


def _propose(request: HttpRequest, form: CapForm, *, population: str) -> str:
    """Set the cap of a valid form; returns the obstacle, or nothing."""
    if Role.ADMINISTRATOR not in roles_of(request.user):
        raise Http404
    if not form.is_valid():
        return ""
    try:
        cap = propose_cap(population=population, by=account(request).get_username(), **form.cleaned_data)
    except BudgetChangeError as error:
        return words_of(error)
    if cap.needs_second:
        messages.success(
            request,
            gettext(
                "The change is waiting for confirmation by a second person. Until then, nothing changes."
            ),
        )
    else:
        messages.success(request, gettext("The new cap is now in force."))
    return ""


def _populations() -> list[str]:
    """Return the populations of studies and of caps; the default one first."""
    found = set(Study.objects.values_list("population", flat=True))
    found |= set(BudgetCap.objects.values_list("population", flat=True))
    found |= set(DeletedStudy.objects.values_list("population", flat=True))
    return [DEFAULT_POPULATION, *sorted(found - {DEFAULT_POPULATION})]


def _context(population: str, *, me: str) -> dict[str, Any]:
    studies = studies_of(population)
    caps = BudgetCap.objects.filter(population=population).select_related("decision", "replaces")
    total = counted(studies)
    history = [_past(cap) for cap in caps.order_by("-pk")]
    return {
        "population": population,
        "rows": [_Row.of(line) for line in standing(population, studies, today=timezone.localdate())],
        "studies": studies,
        "total": total,
        "has_slots": any(each.losses.slots != 0 for each in studies),
        "has_places": any(each.losses.location for each in studies),
        "waiting": [past | _for_me(past["cap"], me=me) for past in history if past["is_waiting"]],
        "history": history,
    }


def _for_me(cap: BudgetCap, *, me: str) -> dict[str, Any]:
    """Return whether the reader asked for a cap that waits, and why they cannot confirm it."""
    return {"is_mine": cap.set_by == me, "obstacle": confirmation_obstacle(cap, by=me)}


def _past(cap: BudgetCap) -> dict[str, Any]:
    decision = getattr(cap, "decision", None)
    before = cap.replaces
    return {
        "cap": cap,
        "decision": decision,
        "is_waiting": cap.needs_second and decision is None,
        "since": in_force_since(cap),
        "unit": unit_words(cap.unit),
        "period": period_words(cap.period),
        "epsilon": gettext("no cap") if cap.epsilon is None else left_words(cap.epsilon),
        "before": gettext("no cap")
        if before is None or before.epsilon is None
        else left_words(before.epsilon),
    }


def _address(population: str) -> str:
    return f"{reverse('budget:budget')}?{urlencode({'population': population})}"
